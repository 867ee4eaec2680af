/** A cgroup of a test's own, as a base for supervisors. */
import { mkdirSync, readdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { Cgroup, findOwnCgroup } from '../../../src/execution/supervisor/cgroup.js';

let made = 0;

/** Throws where none can be made: in most containers, and for a user whom systemd delegated none. */
export function needCgroups(): void {
  try {
    rmdirSync(makeOwn());
  } catch (cause) {
    throw new Error('these tests need root and a cgroup of version 2 below which others can be made', { cause });
  }
}

/** Gone after the test with all that is in it. */
export function ownCgroup(): Cgroup {
  const cgroup = new Cgroup(makeOwn());
  onTestFinished(async () => {
    await cgroup.empty();
    await cgroup.remove();
  });
  return cgroup;
}

/** Names of those directly below it. */
export function cgroupsIn(cgroup: Cgroup): string[] {
  const entries = readdirSync(cgroup.path, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

function makeOwn(): string {
  made += 1;
  const path = join(findOwnCgroup() ?? '/nowhere', `spec-${process.pid}-${made}`);
  mkdirSync(path);
  return path;
}
