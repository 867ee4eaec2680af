/** One history's world: its time, what is under way in it, what broke in it, and the trace of it. */
import { setImmediate } from 'node:timers/promises';
import type { Logger } from '../../src/platform/log/logger.js';
import type { RunMetrics } from '../../src/runs/run.metrics.js';
import { EPOCH_MS, type Lane } from './lane.js';
import type { Names } from './statement-names.js';

/** A start or an end that a holder's statement says it wrote. */
export interface Wrote extends Names {
  readonly statement: string;
  readonly worker: string;
}

/** A law that doesn't hold. */
export class Broken extends Error {
  override readonly name = 'Broken';

  constructor(
    readonly law: string,
    readonly fact: string,
  ) {
    super(`${law}: ${fact}`);
  }
}

/** A statement that is under way to the database and will be carried out some day. */
export interface Held {
  readonly name: string;
  readonly execute: () => Promise<unknown>;
  readonly answer: (rows: unknown) => void;
  readonly fail: (error: Error) => void;
}

export class World {
  /** True time, in milliseconds from the beginning of the history. */
  nowMs = 0;
  /** How far the database's clock is ahead of it. */
  clockAheadMs = 0;
  readonly held: Held[] = [];
  /** Since the last look. */
  readonly wrote: Wrote[] = [];
  readonly trace: string[] = [];
  broken: Broken | undefined;
  private queue: Promise<void> = Promise.resolve();
  private underWay = 0;
  private begun = 0;
  private hasWritten = false;
  private isOver = false;
  private hasCommittedLate = false;

  constructor(
    readonly lane: Lane,
    readonly log: Logger,
    readonly metrics: RunMetrics,
    private readonly isTracing: boolean,
  ) {}

  tell(line: () => string): void {
    if (this.isTracing) this.trace.push(line());
  }

  /** The first law that broke counts. */
  break(law: string, fact: string): void {
    this.broken ??= new Broken(law, fact);
  }

  noteWrite(): void {
    this.hasWritten = true;
  }

  /** What a holder's statement says that it has written. */
  noteWrites(statement: string, worker: string, names: readonly Names[], rows: unknown): void {
    const ids = new Set((Array.isArray(rows) ? rows : []).map((row: { runId?: string }) => row.runId));
    for (const { runId, fence } of names) if (ids.has(runId)) this.wrote.push({ statement, worker, runId, fence });
  }

  /** Whether anything was written since this was last asked. */
  takeWritten(): boolean {
    const { hasWritten } = this;
    this.hasWritten = false;
    return hasWritten;
  }

  noteLateCommit(): void {
    this.hasCommittedLate = true;
    this.hasWritten = true;
  }

  /** Whether a transaction was committed that began earlier, since this was last asked. */
  takeCommittedLate(): boolean {
    const { hasCommittedLate } = this;
    this.hasCommittedLate = false;
    return hasCommittedLate;
  }

  hold(held: Held): void {
    this.held.push(held);
  }

  /** Carries out a statement that was held. */
  release(held: Held): void {
    this.held.splice(this.held.indexOf(held), 1);
    this.tell(() => `    now ${held.name} is carried out`);
    this.soon(() => held.execute().then(held.answer, held.fail));
  }

  /** One after the other, and never in a history that is over. */
  soon(task: () => Promise<void>): void {
    this.underWay += 1;
    this.begun += 1;
    this.queue = this.queue
      .then(async () => {
        if (this.isOver) return;
        await this.lane.setClock(EPOCH_MS + this.nowMs + this.clockAheadMs);
        await task();
      })
      .catch((error: unknown) => this.break('the simulation works', String(error)))
      .finally(() => {
        this.underWay -= 1;
      });
  }

  /** Resolves when everybody waits for time to pass, for a statement that is held, or for being stepped. */
  async quiet(): Promise<void> {
    for (let idle = 0; idle < 2; ) {
      const { begun } = this;
      while (this.underWay > 0) await this.queue;
      await setImmediate();
      idle = this.begun === begun && this.underWay === 0 ? idle + 1 : 0;
    }
  }

  async end(): Promise<void> {
    this.isOver = true;
    await this.queue;
  }
}
