/** A cgroup of a test's own, as a base for supervisors; and what a machine can do. */
import { mkdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { Cgroup, findOwnCgroup } from '../../../src/execution/supervisor/cgroup.js';

/** Whether cgroups can be made here: not in most containers, nor for a user whom systemd delegated none. */
export const HAS_CGROUPS = canMake();

let made = 0;

/** Gone after the test with all that is in it. */
export function ownCgroup(): Cgroup {
  made += 1;
  const cgroup = new Cgroup(join(findOwnCgroup() ?? '/nowhere', `spec-${process.pid}-${made}`));
  mkdirSync(cgroup.path);
  onTestFinished(() => cgroup.destroy());
  return cgroup;
}

function canMake(): boolean {
  const tried = join(findOwnCgroup() ?? '/nowhere', `spec-${process.pid}-0`);
  try {
    mkdirSync(tried);
    rmdirSync(tried);
    return true;
  } catch {
    return false;
  }
}
