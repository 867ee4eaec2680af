/**
 * Checks the laws for ever, one statement a step: what waits, the newest runs, then all runs and keys in their turn.
 * Invariant: a violation counts when two looks at the same objects, with time between them, have found it, and no
 * longer than until a look finds it gone.
 */
import { decodeId, encodeId } from '../kernel/ids.js';
import { isTimeout, isTransient, type Pool } from '../platform/db/db.js';
import type { Logger } from '../platform/log/logger.js';
import type { Loop } from '../platform/loop.js';
import type { Timing } from '../platform/time.js';
import { WINDOW } from './invariants.js';
import { type KeyPlace, lookAtKeys, nextKey } from './keys.sql.js';
import { LAWS, type LawName, type Violation } from './laws.js';
import { lookAtRuns, nextRun } from './runs.sql.js';
import { lookAtStanding } from './standing.sql.js';

const STEP_EVERY_MS = 30_000;
/** Between two looks that confirm each other. */
const CONFIRM_AFTER_MS = 6_000;
/** Groups of violations that are looked at again; with more, the first ones count. */
const MOST_WATCHED = 100;

type Turn = 'standing' | 'newest' | 'older' | 'keys' | 'watched';
const TURNS: readonly Turn[] = ['standing', 'newest', 'older', 'watched', 'older', 'keys'];

/** Where something was found. */
interface Watched {
  /** The same look at the same objects; the runs among them, when it is about runs. */
  readonly again: () => Promise<readonly Violation[]>;
  readonly runs: readonly string[];
  lookedAtMs: number;
  /** What was found there and is there still. */
  found: ReadonlyMap<string, Violation>;
  /** A second look has found it as well. */
  isConfirmed: boolean;
}

export class InvariantsLoop implements Loop {
  readonly name = 'invariants';
  private turn = 0;
  private width = WINDOW;
  private before: string | undefined;
  private afterKey: KeyPlace | undefined;
  private watched: Watched[] = [];
  /** What couldn't be looked at, and was told; the same isn't told in each round. */
  private readonly untold = new Set<string>();

  constructor(
    private readonly pool: Pick<Pool, 'run'>,
    private readonly log: Pick<Logger, 'error' | 'warn' | 'info'>,
    private readonly timing: Pick<Timing, 'monotonicMs'>,
  ) {}

  /** Time to the next step, asked after each. */
  intervalMs(): number {
    return this.watched.some(({ isConfirmed }) => !isConfirmed) ? CONFIRM_AFTER_MS : STEP_EVERY_MS;
  }

  /** How many violations of each law are known to be there. */
  counts(): Map<LawName, number> {
    const counts = new Map<LawName, number>();
    for (const { found, isConfirmed } of this.watched) {
      if (isConfirmed) for (const { law } of found.values()) counts.set(law, (counts.get(law) ?? 0) + 1);
    }
    return counts;
  }

  /** One statement; one more where a single object takes too long, and is left behind. */
  async step(): Promise<'idle'> {
    const suspicion = this.watched.find(({ isConfirmed, lookedAtMs }) => !isConfirmed && this.isOld(lookedAtMs));
    if (suspicion) await this.lookAgain(suspicion);
    else await this.lookInTurn();
    return 'idle';
  }

  /** A window that takes too long is looked at in halves. Whatever fails for good gives the turn to the next. */
  private async lookInTurn(): Promise<void> {
    const turn = TURNS[this.turn % TURNS.length] ?? 'standing';
    try {
      this.turn += 1;
      await this.take(turn);
      if (turn === 'standing') this.untold.delete(turn);
      else this.width = Math.min(this.width * 2, WINDOW);
    } catch (error) {
      if (!isTimeout(error)) throw error;
      if (turn === 'standing') this.tellUntold(turn, 'what waits');
      else if (this.width === 1) await this.leaveBehind(turn);
      else {
        this.width = Math.floor(this.width / 2);
        this.turn -= 1;
      }
    }
  }

  /** Goes on behind the one object that takes too long; among the newest it isn't come to otherwise than in its turn. */
  private async leaveBehind(turn: Turn): Promise<void> {
    if (turn === 'newest') return;
    if (turn === 'keys') {
      this.afterKey = await nextKey(this.pool, this.afterKey);
      if (this.afterKey) this.tellUntold(JSON.stringify(this.afterKey), `the key ${JSON.stringify(this.afterKey.key)}`);
      return;
    }
    this.before = await nextRun(this.pool, this.before);
    const object = this.before && encodeId('run', this.before);
    if (object) this.tellUntold(object, object);
  }

  private tellUntold(name: string, what: string): void {
    if (this.untold.has(name) || this.untold.size >= MOST_WATCHED) return;
    this.untold.add(name);
    this.log.warn(
      { code: 'invariant_unchecked', object: name },
      `${what} can't be held against the laws: a statement about it alone takes too long`,
    );
  }

  private async take(turn: Turn): Promise<void> {
    const { pool, width } = this;
    switch (turn) {
      case 'standing':
        return this.note((await lookAtStanding(pool)).violations, () => lookAtStanding(pool));
      case 'newest':
        return this.noteRuns((await lookAtRuns(pool, { limit: width })).violations);
      case 'older': {
        const { violations, next } = await lookAtRuns(pool, { before: this.before, limit: width });
        this.before = next;
        return this.noteRuns(violations);
      }
      case 'keys': {
        const after = this.afterKey;
        const { violations, next } = await lookAtKeys(pool, after, width);
        this.afterKey = next;
        return this.note(violations, () => lookAtKeys(pool, after, width));
      }
      case 'watched': {
        const [oldest] = this.watched.filter(({ lookedAtMs }) => this.isOld(lookedAtMs)).sort(byAge);
        return oldest ? this.lookAgain(oldest) : this.take('older');
      }
    }
  }

  private noteRuns(violations: readonly Violation[]): void {
    const ids = [...new Set(violations.flatMap(({ object }) => decodeId('run', object) ?? []))];
    this.note(violations, () => lookAtRuns(this.pool, { ids }), ids);
  }

  /** Keeps an eye on what isn't watched already. */
  private note(
    violations: readonly Violation[],
    look: () => Promise<{ readonly violations: readonly Violation[] }>,
    runs: readonly string[] = [],
  ): void {
    const fresh = violations.filter((each) => !this.watched.some(({ found }) => found.has(nameOf(each))));
    if (fresh.length === 0 || this.watched.length >= MOST_WATCHED) return;
    this.watched.push({
      again: async () => (await look()).violations,
      runs,
      lookedAtMs: this.timing.monotonicMs(),
      found: byName(fresh),
      isConfirmed: false,
    });
  }

  private async lookAgain(watched: Watched): Promise<void> {
    let violations: readonly Violation[];
    try {
      violations = await watched.again();
    } catch (error) {
      if (isTimeout(error) || !isTransient(error)) this.giveWay(watched);
      if (isTimeout(error)) return;
      throw error;
    }
    const there = byName(violations);
    const before = watched.found;
    // What is new there is found by whoever's turn it is.
    watched.found = new Map([...before].filter(([name]) => there.has(name)));
    watched.lookedAtMs = this.timing.monotonicMs();
    if (watched.isConfirmed) this.tellGone([...before].filter(([name]) => !there.has(name)));
    else for (const violation of watched.found.values()) this.tell(violation);
    watched.isConfirmed = true;
    if (watched.found.size === 0) this.watched = this.watched.filter((each) => each !== watched);
  }

  /**
   * A look again that can't be made keeps nobody else from theirs: of several runs it is made in halves, what was
   * confirmed waits for its next turn, and a suspicion is dropped until it is found anew.
   */
  private giveWay(watched: Watched): void {
    watched.lookedAtMs = this.timing.monotonicMs();
    const { runs } = watched;
    const middle = Math.ceil(runs.length / 2);
    const rest = this.watched.filter((each) => each !== watched);
    if (runs.length > 1) {
      this.watched = [...rest, this.partOf(watched, runs.slice(0, middle)), this.partOf(watched, runs.slice(middle))];
    } else if (!watched.isConfirmed) this.watched = rest;
  }

  private partOf({ lookedAtMs, found, isConfirmed }: Watched, runs: readonly string[]): Watched {
    const objects = new Set(runs.map((id) => encodeId('run', id)));
    return {
      again: async () => (await lookAtRuns(this.pool, { ids: runs })).violations,
      runs,
      lookedAtMs,
      found: new Map([...found].filter(([, { object }]) => objects.has(object))),
      isConfirmed,
    };
  }

  private tellGone(gone: readonly (readonly [name: string, violation: Violation])[]): void {
    for (const [, { law, object }] of gone) {
      this.log.info({ code: 'invariant_holds', law, object }, `${object} obeys the law ${law} again`);
    }
  }

  private tell({ law, object, detail }: Violation): void {
    const { holds, remedy } = LAWS[law];
    this.log.error(
      { code: 'invariant_violated', law, object, detail },
      `${object} breaks a law (${holds}): ${detail}; ${remedy}`,
    );
  }

  private isOld(lookedAtMs: number): boolean {
    return this.timing.monotonicMs() - lookedAtMs >= CONFIRM_AFTER_MS;
  }
}

function nameOf({ law, object }: Violation): string {
  return `${law} ${object}`;
}

function byName(violations: readonly Violation[]): Map<string, Violation> {
  return new Map(violations.map((each) => [nameOf(each), each]));
}

function byAge(one: Watched, other: Watched): number {
  return one.lookedAtMs - other.lookedAtMs;
}
