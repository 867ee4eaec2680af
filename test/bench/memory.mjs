/** How far the memory of a process grows above what it was. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';

const EVERY_MS = 100;
const run = promisify(execFile);

/** Looks every 100 ms until `stop()`, which says by how many bytes the peak was above the first look. */
export async function watchMemory(pid) {
  const idleBytes = await residentBytes(pid);
  const watch = { samples: 0, stop: () => 0 };
  let peakBytes = idleBytes;
  let isStopped = false;
  const looking = async () => {
    while (!isStopped) {
      peakBytes = Math.max(peakBytes, await residentBytes(pid));
      watch.samples += 1;
      await pause(EVERY_MS);
    }
  };
  void looking().catch(() => undefined);
  watch.stop = () => {
    isStopped = true;
    return peakBytes - idleBytes;
  };
  return watch;
}

async function residentBytes(pid) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => undefined);
  const kib =
    status === undefined ? (await run('ps', ['-o', 'rss=', '-p', String(pid)])).stdout : status.match(RSS)?.[1];
  return Number(kib) * 1_024;
}

const RSS = /^VmRSS:\s+(\d+) kB$/m;
