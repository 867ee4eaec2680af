/**
 * All processes of a tool: those of its process group and, where it has a cgroup, those that left the group; and a watch
 * that tells when none is left. Invariant: once the group was seen empty it isn't signalled any more, because its number
 * may then be anyone's.
 */
import { type Cgroup, signalProcess } from './cgroup.js';
import { groupExists, groupOf, signalGroup, zombieGroups } from './groups.js';

export class Processes {
  readonly pgid: number;
  readonly #cgroup: Cgroup | null;
  #isGroupGone = false;

  constructor(pgid: number, cgroup: Cgroup | null) {
    this.pgid = pgid;
    this.#cgroup = cgroup;
  }

  get isGroupGone(): boolean {
    return this.#isGroupGone;
  }

  /** TERM, once to each: many programs take a second one for impatience. */
  term(): void {
    const outside = (this.#cgroup?.members() ?? []).filter((pid) => groupOf(pid) !== this.pgid);
    // A process that was stopped gets TERM only when it goes on.
    for (const signal of ['SIGTERM', 'SIGCONT'] as const) {
      if (!this.#isGroupGone) signalGroup(this.pgid, signal);
      for (const pid of outside) signalProcess(pid, signal);
    }
  }

  kill(): void {
    if (!this.#isGroupGone) signalGroup(this.pgid, 'SIGKILL');
    this.#cgroup?.kill();
  }

  /** Looks; zombies in the group count until `forgetGroup`. */
  isEmpty(): boolean {
    if (!this.#isGroupGone && groupExists(this.pgid)) return false;
    this.#isGroupGone = true;
    return this.#cgroup === null || !this.#cgroup.isPopulated();
  }

  /** The same without zombies, at the price of reading all of /proc. */
  isDead(): boolean {
    if (this.isEmpty()) return true;
    if (!this.#isGroupGone && zombieGroups(new Set([this.pgid])).has(this.pgid)) this.forgetGroup();
    return this.isEmpty();
  }

  /** Nothing but zombies is left in it. */
  forgetGroup(): void {
    this.#isGroupGone = true;
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

/** Watches the processes of many tools with one timer and one reading of /proc for all of them. */
export class ProcessWatch {
  readonly #watched = new Map<Processes, Watched>();
  #timer: NodeJS.Timeout | null = null;
  #waitMs = FIRST_LOOK_MS;

  /** Calls `onEmpty` once; at once when none is left already. */
  whenEmpty(processes: Processes, onEmpty: () => void): void {
    if (processes.isEmpty()) {
      onEmpty();
      return;
    }
    this.#watched.set(processes, { sinceMs: performance.now(), onEmpty });
    this.#waitMs = FIRST_LOOK_MS;
    this.#arm();
  }

  #arm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = this.#watched.size === 0 ? null : setTimeout(() => this.#look(), this.#waitMs);
  }

  #look(): void {
    const startedMs = performance.now();
    const old: Processes[] = [];
    for (const [processes, { sinceMs }] of this.#watched) {
      if (processes.isEmpty()) this.#report(processes);
      else if (!processes.isGroupGone && startedMs - sinceMs > SCAN_AFTER_MS) old.push(processes);
    }
    if (old.length > 0) this.#scanFor(old);
    // A machine with very many processes must not spend its time here: at most a tenth of it.
    const spentMs = performance.now() - startedMs;
    this.#waitMs = Math.max(Math.min(this.#waitMs * 2, LAST_LOOK_MS), spentMs * 10);
    this.#arm();
  }

  #scanFor(old: readonly Processes[]): void {
    const dead = zombieGroups(new Set(old.map(({ pgid }) => pgid)));
    for (const processes of old.filter(({ pgid }) => dead.has(pgid))) {
      processes.forgetGroup();
      if (processes.isEmpty()) this.#report(processes);
    }
  }

  #report(processes: Processes): void {
    const watched = this.#watched.get(processes);
    this.#watched.delete(processes);
    watched?.onEmpty();
  }
}
