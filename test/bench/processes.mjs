/** What processes take of the machine, as Linux counts it. */
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';

const EVERY_MS = 100;
/** `USER_HZ`, the same on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;
const RSS = /^VmRSS:\s+(\d+) kB$/m;
const run = promisify(execFile);

/** Looks every 100 ms until `stop()`, which says by how many bytes the peak was above the first look. */
export async function watchMemory(pid) {
  const idleBytes = await residentBytes(pid);
  const watch = { samples: 0, peakBytes: idleBytes, stop: () => 0 };
  let isStopped = false;
  const looking = async () => {
    while (!isStopped) {
      watch.peakBytes = Math.max(watch.peakBytes, await residentBytes(pid));
      watch.samples += 1;
      await pause(EVERY_MS);
    }
  };
  void looking().catch(() => undefined);
  watch.stop = () => {
    isStopped = true;
    return watch.peakBytes - idleBytes;
  };
  return watch;
}

export async function residentBytes(pid) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => undefined);
  const kib =
    status === undefined ? (await run('ps', ['-o', 'rss=', '-p', String(pid)])).stdout : status.match(RSS)?.[1];
  return Number(kib) * 1_024;
}

/** A process and all that it started, as far as they still know each other. */
export async function treeOf(pid) {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const stats = (await Promise.all(pids.map(statOf))).filter((stat) => stat !== undefined);
  const tree = [pid];
  for (const each of tree) tree.push(...stats.filter(({ parent }) => parent === each).map((stat) => stat.pid));
  return tree;
}

/** Seconds of CPU that these have used. */
export async function cpuSecondsOf(pids) {
  const stats = await Promise.all(pids.map(statOf));
  return stats.reduce((sum, stat) => sum + (stat?.ticks ?? 0), 0) / TICKS_PER_SECOND;
}

export async function isAlive(pid) {
  const stat = await statOf(pid);
  return stat !== undefined && stat.state !== 'Z';
}

/** The fields behind the name, which may hold anything. */
async function statOf(pid) {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { pid, state: fields[0], parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) };
}
