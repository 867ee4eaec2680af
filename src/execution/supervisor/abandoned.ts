/**
 * Folders of supervisors that were killed together with their replica: nobody was left to remove them, and tools may
 * have left secrets there. Invariant: a folder goes only when no process reads its keeper pipe, which a supervisor holds
 * open for as long as it lives; a link of such a name, which anybody may make there, is never followed.
 */
import { closeSync, constants, openSync } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { removeTree } from './folder.js';

export const ROOT_PREFIX = 'capstan-tools-';
export const KEEPER_PIPE = 'keeper';

/** Younger ones may belong to a supervisor that is only about to open its pipe. */
const SURELY_OPENED_AFTER_MS = 60_000;

/**
 * Removes those beside `made`, a folder of this very moment: how old they are goes by its time, which is the file system's
 * for all of them, for processes may disagree about what time it is. Resolves also when something could not be looked at
 * or removed.
 */
export async function removeAbandoned(made: string): Promise<void> {
  const { mtimeMs: nowMs } = await lstat(made);
  const tempDir = dirname(made);
  const names = await readdir(tempDir).catch(() => []);
  for (const name of names.filter((name) => name.startsWith(ROOT_PREFIX))) {
    const root = join(tempDir, name);
    const info = await lstat(root).catch(() => undefined);
    if (!info?.isDirectory() || info.uid !== process.getuid?.()) continue;
    if (nowMs - info.mtimeMs > SURELY_OPENED_AFTER_MS && !hasReader(join(root, KEEPER_PIPE))) await removeTree(root);
  }
}

function hasReader(pipe: string): boolean {
  try {
    closeSync(openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK));
    return true;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    // ENXIO: a pipe that nobody reads; ENOENT: a start that was cut short. Anything else is left alone.
    return code !== 'ENXIO' && code !== 'ENOENT';
  }
}
