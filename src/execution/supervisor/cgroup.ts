/**
 * One cgroup (version 2) as a set of processes that none of them can leave by `setsid`, seen from outside.
 * Invariant: nothing here throws for a cgroup that is gone; what isn't there is empty.
 */
import { readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Half a second in all: a shutdown waits for it. */
const REMOVE_TRIES = 25;
const AGAIN_MS = 20;

/** The cgroup of this process where version 2 is mounted, as a path; null where it isn't or can't be seen. */
export function findOwnCgroup(mountinfo = readText('/proc/self/mountinfo'), own = readText('/proc/self/cgroup')) {
  const place = /^0::(\/.*)$/m.exec(own)?.[1];
  if (place === undefined) return null;
  for (const line of mountinfo.split('\n')) {
    // id parent device root mountpoint options … - type source options
    const [mount = '', type = ''] = line.split(' - ');
    const [, , , root = '', point] = mount.split(' ');
    if (!type.startsWith('cgroup2 ') || point === undefined) continue;
    const inside = root === '/' ? place : place.startsWith(`${root}/`) ? place.slice(root.length) : null;
    if (inside !== null || place === root) return resolve(unescaped(point), `.${inside ?? ''}`);
  }
  return null;
}

export class Cgroup {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Whether a process lives in it or in one below it; zombies don't count. */
  isPopulated(): boolean {
    try {
      return readFileSync(join(this.path, 'cgroup.events'), 'latin1').includes('populated 1');
    } catch (error) {
      // Anything else (no descriptor left) says nothing: what isn't known to be gone counts as there.
      return !isGone(error);
    }
  }

  /** Its processes and those of the cgroups below it. */
  members(): number[] {
    return [this.path, ...below(this.path)].flatMap((path) =>
      readText(join(path, 'cgroup.procs'))
        .split('\n')
        .map(Number)
        .filter((pid) => pid > 0),
    );
  }

  /** KILL to all of them at once; before Linux 5.14 one by one, so that whoever calls repeats it until none is left. */
  kill(): void {
    try {
      writeFileSync(join(this.path, 'cgroup.kill'), '1', { flag: 'r+' });
    } catch {
      for (const pid of this.members()) signalProcess(pid, 'SIGKILL');
    }
  }

  /** Removes it with those below it, if it is empty in time: the kernel lets go of a process a moment after its end. */
  async remove(): Promise<void> {
    for (let tries = 0; tries < REMOVE_TRIES; tries += 1) {
      try {
        // The first time without a look at what is below it: of nearly every tool there is nothing, and to list the
        // files of a cgroup takes longer than to remove it. All of it is in memory: nothing waits for a disk.
        if (tries > 0) for (const path of below(this.path)) rmdirSync(path);
        rmdirSync(this.path);
        return;
      } catch (error) {
        if (isGone(error)) return;
        if (tries > 0) await delay(AGAIN_MS);
      }
    }
  }

  /**
   * Kills whatever is in it until nothing is, or so many times; whether nothing is. Without a number it can take for
   * ever: another user's processes refuse, and one that waits for a dead disk does not die.
   */
  async empty(times = Number.POSITIVE_INFINITY): Promise<boolean> {
    for (let left = times; this.isPopulated(); left -= 1) {
      if (left <= 0) return false;
      this.kill();
      await delay(AGAIN_MS);
    }
    return true;
  }
}

/** Whoever is gone or not ours is no error, because there is nothing else to do about it. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // ESRCH or EPERM.
  }
}

/** Paths of all cgroups below, the deepest first. */
function below(path: string): string[] {
  try {
    const folders = readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return folders.flatMap(({ name }) => [...below(join(path, name)), join(path, name)]);
  } catch {
    return [];
  }
}

function isGone(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENODEV');
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** In mountinfo a blank is `\040`. */
function unescaped(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
