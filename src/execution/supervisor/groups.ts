/**
 * Facts about process groups, and a watch that tells when one is empty.
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
function groupExists(pgid: number): boolean {
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
function zombieGroups(pgids: ReadonlySet<number>): Set<number> {
  const dead = new Set<number>();
  const alive = new Set<number>();
  for (const name of listProcesses()) {
    const member = readMember(name);
    if (member !== null && pgids.has(member.pgid)) (member.isDead ? dead : alive).add(member.pgid);
  }
  for (const pgid of alive) dead.delete(pgid);
  return dead;
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

const FIRST_LOOK_MS = 5;
const LAST_LOOK_MS = 100;
/** Reading all of /proc is dear (about 10 µs a process), and nearly every group is gone long before. */
const SCAN_AFTER_MS = 100;

interface Watched {
  readonly sinceMs: number;
  readonly onEmpty: () => void;
}

/** Watches groups until they are empty, with one timer and one reading of /proc for all of them. */
export class GroupWatch {
  readonly #watched = new Map<number, Watched>();
  #timer: NodeJS.Timeout | null = null;
  #waitMs = FIRST_LOOK_MS;

  /** Calls `onEmpty` once; at once when the group is empty already. */
  whenEmpty(pgid: number, onEmpty: () => void): void {
    if (!groupExists(pgid)) {
      onEmpty();
      return;
    }
    this.#watched.set(pgid, { sinceMs: performance.now(), onEmpty });
    this.#waitMs = FIRST_LOOK_MS;
    this.#arm();
  }

  #arm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = this.#watched.size === 0 ? null : setTimeout(() => this.#look(), this.#waitMs);
  }

  #look(): void {
    const startedMs = performance.now();
    const old = new Set<number>();
    for (const [pgid, { sinceMs }] of this.#watched) {
      if (!groupExists(pgid)) this.#report(pgid);
      else if (startedMs - sinceMs > SCAN_AFTER_MS) old.add(pgid);
    }
    if (old.size > 0) for (const pgid of zombieGroups(old)) this.#report(pgid);
    // A machine with very many processes must not spend its time here: at most a tenth of it.
    const spentMs = performance.now() - startedMs;
    this.#waitMs = Math.max(Math.min(this.#waitMs * 2, LAST_LOOK_MS), spentMs * 10);
    this.#arm();
  }

  #report(pgid: number): void {
    const watched = this.#watched.get(pgid);
    this.#watched.delete(pgid);
    watched?.onEmpty();
  }
}
