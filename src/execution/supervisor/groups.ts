/**
 * Facts about process groups.
 * Invariant: a group counts as empty only when the kernel knows no such group, or nothing but zombies is left in it
 * (where process 1 reaps nobody, a zombie would keep `kill(-pgid, 0)` succeeding for ever).
 */
import { readdirSync, readFileSync } from 'node:fs';

/** `kill(-pgid)`: whoever is gone or not ours is no error, because there is nothing else to do about it. */
export function signalGroup(pgid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pgid, signal);
  } catch {
    // ESRCH: already empty. EPERM: the watch goes on until its owner ends it.
  }
}

/** Whether the kernel knows the group, zombies included. */
export function groupExists(pgid: number): boolean {
  try {
    process.kill(-pgid, 0);
    return true;
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
}

/**
 * Those of `pgids` in which /proc shows zombies and nothing else. A group of which it shows no member at all is not
 * among them: with `hidepid` a process of another user is there and cannot be seen.
 */
export function zombieGroups(pgids: ReadonlySet<number>): Set<number> {
  const dead = new Set<number>();
  const alive = new Set<number>();
  for (const name of listProcesses()) {
    const member = readMember(name);
    if (member !== null && pgids.has(member.pgid)) (member.isDead ? dead : alive).add(member.pgid);
  }
  for (const pgid of alive) dead.delete(pgid);
  return dead;
}

/** The group of a process, undefined when there is no such process. */
export function groupOf(pid: number): number | undefined {
  return readMember(String(pid))?.pgid;
}

function listProcesses(): string[] {
  try {
    return readdirSync('/proc').filter((name) => name >= '1' && name < ':');
  } catch {
    return [];
  }
}

function readMember(pid: string): { pgid: number; isDead: boolean } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // pid (name) state ppid pgrp …; the name may hold spaces and parentheses.
    const [state, , pgrp] = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 3);
    return { pgid: Number(pgrp), isDead: state === 'Z' || state === 'X' };
  } catch {
    return null;
  }
}
