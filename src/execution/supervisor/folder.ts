/**
 * The private folders of tools. Invariant: what a tool leaves behind is removed, whatever it did to the permissions,
 * the names or the number of its files, without ever following a link, be it in the folder or in its place.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { lstat, mkdir, readdir, rmdir, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PlanFile } from './plan.js';
import { findSystemProgram } from './program.js';

/** More than this is left to a process of its own, which is faster and costs no memory here. */
const FEW_ENTRIES = 200;

/** `chmod` first: in a folder without w and x nothing can be removed, except by root. */
const REMOVE_SCRIPT = 'chmod -R u+rwx -- "$1" 2>/dev/null; exec rm -rf -- "$1"';

/** Makes the folder (0700) and the files in it. Rejects with what the file system says. */
export async function createFolder(path: string, files: readonly PlanFile[]): Promise<void> {
  await mkdir(path, { mode: 0o700 });
  for (const file of files) {
    await writeFile(join(path, file.name), file.content, {
      flag: 'wx',
      mode: file.executable === true ? 0o700 : 0o600,
    });
  }
}

/**
 * Removes a folder and all in it; resolves also when something could not be removed. A path that is a link, or anything
 * else but a folder, is left alone.
 */
export async function removeTree(path: string): Promise<void> {
  const info = await lstat(path).catch(() => undefined);
  if (!info?.isDirectory()) return;
  try {
    await removeFew(path, { left: FEW_ENTRIES });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT' && !existsSync(path)) return;
    // No permission, too many, a name that is not UTF-8, a path too long for one call.
    await removeByShell(path);
  }
}

async function removeFew(path: string, budget: { left: number }): Promise<void> {
  for (const entry of await readdir(path, { withFileTypes: true })) {
    budget.left -= 1;
    if (budget.left < 0) throw new Error('too many entries');
    const child = join(path, entry.name);
    await (entry.isDirectory() ? removeFew(child, budget) : unlink(child));
  }
  await rmdir(path);
}

function removeByShell(path: string): Promise<void> {
  const shell = findSystemProgram('sh');
  if (shell === null) return Promise.resolve();
  return new Promise((resolve) => {
    const child = spawn(shell, ['-c', REMOVE_SCRIPT, 'sh', path], { env: { PATH: '/usr/bin:/bin' }, stdio: 'ignore' });
    child.once('error', () => resolve());
    child.once('exit', () => resolve());
  });
}
