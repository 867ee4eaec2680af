/**
 * Makes the cluster in a private folder and moves it into place in one step, so that a kill at any instant leaves
 * either no cluster or a whole one. Of several processes that do so at once, one wins and the others use its cluster.
 */
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { Binaries } from './binaries.js';
import { DataDirError, type DataDirectory, explain, hasCluster, makeUnfinished, noSpace } from './data-directory.js';
import { reasonIn, startGuarded } from './guarded-process.js';
import type { RunAs } from './run-as.js';

/** `durable: false` leaves out the flushes to disk. @throws DataDirError when initdb fails. */
export async function createCluster(
  dir: DataDirectory,
  options: { binaries: Binaries; runAs: RunAs; password: string; durable: boolean },
): Promise<void> {
  const { binaries, runAs } = options;
  const unfinished = makeUnfinished(dir);
  try {
    const passwordFile = join(unfinished, 'password');
    fs.writeFileSync(passwordFile, `${options.password}\n`, { mode: 0o600 });
    for (const path of [unfinished, passwordFile]) {
      if (runAs.account) fs.chownSync(path, runAs.account.uid, runAs.account.gid);
    }
    const made = join(unfinished, 'cluster');
    const args = [
      ...['--pgdata', made, '--username=postgres', `--pwfile=${passwordFile}`, '--auth=scram-sha-256'],
      ...['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
      ...['--no-instructions', ...(options.durable ? [] : ['--no-sync'])],
    ];
    const initdb = startGuarded({ program: binaries.initdb, args, runAs, binaries });
    const { code } = await initdb.exited;
    if (code !== 0) throw startFailure(dir, initdb.lastLines);
    moveIntoPlace(made, dir, options.durable);
  } catch (error) {
    // Another process was first: its cluster is as good, and it may have cleaned ours away under our feet.
    if (!hasCluster(dir, binaries.major)) throw explain(error, dir.path);
  } finally {
    fs.rmSync(unfinished, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** What the output of a failed initdb or postgres means for the person. */
export function startFailure(dir: DataDirectory, lines: readonly string[]): DataDirError {
  if (lines.some((line) => line.includes('No space left on device'))) return noSpace(dir.path);
  const reason = reasonIn(lines);
  const hint = /ermission denied/.test(reason)
    ? 'every folder above it has to be open to the user that runs PostgreSQL; else set CAPSTAN_DATA_DIR'
    : 'mend that, or set CAPSTAN_DATA_DIR to another folder or DATABASE_URL to a PostgreSQL of your own';
  return new DataDirError(`PostgreSQL does not start in ${dir.clusterPath} (${reason}): ${hint}`);
}

function moveIntoPlace(made: string, dir: DataDirectory, durable: boolean): void {
  // Replaces nothing but an empty folder, and fails when another process was first.
  fs.renameSync(made, dir.clusterPath);
  if (!durable) return;
  const folder = fs.openSync(dir.path, 'r');
  try {
    fs.fsyncSync(folder);
  } finally {
    fs.closeSync(folder);
  }
}
