/**
 * What one life of a worker may do with the runs it holds. Starts and ends go out in lanes of their own, so that a
 * wait of one kind never holds up another. Losing a run is a returned value.
 */

import { encodeId } from '../kernel/ids.js';
import type { JsonValue } from '../kernel/json.js';
import { isTransient } from '../platform/db/db.js';
import { Lane } from '../platform/db/lane.js';
import type { Platform } from '../platform/platform.js';
import { releaseIfHeld, startIfHeld } from './claim.sql.js';
import { type Claimed, Claimer } from './claimer.js';
import { type Finish, findOwnEnds, finishIfHeld } from './finish.sql.js';
import type { OutputBatch, OutputCut } from './output.js';
import { appendOutputIfHeld, dropOutputIfHeld } from './output.sql.js';
import { type Holding, holdingsOf, isDraining, type Pulse, pulse } from './pulse.sql.js';
import { appendReportsIfHeld, type RunReport } from './reports.sql.js';
import type { Hold, Outcome } from './run.js';
import type { RunMetrics } from './run.metrics.js';
import type { NewWorker } from './worker.js';

const LANE_ITEMS = 400;

/** Tools end one after another: under load their ends are written together, and a lone one at once. */
const FINISH_PACE_MS = 5;

/** A run under this holder, as far as a write needs it. */
export interface OwnRun extends Hold {
  readonly organizationId: string;
}

export interface RunEnd {
  readonly outcome: Outcome;
  readonly output: JsonValue | null;
  readonly outputDigest: string | null;
}

export class HolderService {
  private readonly claimer: Claimer;
  /** By organization: few, and asked for with every end. */
  private readonly chains = new Map<string, string>();
  private readonly starts: Lane<Hold, boolean>;
  private readonly finishes: Lane<Finish, boolean>;
  /** The worker's TypeID. */
  readonly workerId: string;

  constructor(
    private readonly platform: Platform,
    private readonly worker: NewWorker,
    private readonly metrics: RunMetrics,
    /** Called after an answer may have been lost: what the database says we hold must be compared with memory. */
    private readonly onDoubt: () => void,
  ) {
    this.workerId = encodeId('wrk', worker.id);
    const { timing, log } = platform;
    this.claimer = new Claimer(platform.pools.work, worker, timing);
    const lane = { maxItems: LANE_ITEMS, retryForMs: Number.POSITIVE_INFINITY, timing };
    const onRetry = (what: string) => (error: unknown, attempt: number) => {
      this.onDoubt();
      if (attempt === 1)
        log.warn({ code: `${what}_retried`, err: error }, `${what}: the database is in the way, trying on`);
    };
    this.starts = new Lane({
      ...lane,
      flush: (holds) => this.flushStarts(holds),
      onRetry: onRetry('run_start'),
      onFlush: (n, tookMs) => metrics.countFlush('start', n, tookMs),
    });
    this.finishes = new Lane({
      ...lane,
      flush: (ends) => this.flushFinishes(ends),
      // The chain's lock is held for the last part of each only: the rest of two goes on side by side.
      maxFlushes: 2,
      paceMs: FINISH_PACE_MS,
      onRetry: onRetry('run_end'),
      onFlush: (n, tookMs) => metrics.countFlush('finish', n, tookMs),
    });
  }

  /** Takes up to `limit` runs. After an error some may be ours without our knowing: `onDoubt` was called then. */
  async claim(limit: number): Promise<Claimed> {
    const claimed = await this.doubting(this.claimer.claim(limit));
    this.metrics.work.countClaim(claimed.runs.length);
    return claimed;
  }

  /** Whether the run's tool may be started now. False: it is no longer ours, or it is to be canceled. */
  start(hold: Hold): Promise<boolean> {
    return this.doubting(this.starts.push({ runId: hold.runId, fence: hold.fence }));
  }

  /** Whether this end was written. False: the run was no longer ours, and nothing changed. */
  async finish(run: OwnRun, end: RunEnd): Promise<boolean> {
    const finish: Finish = {
      runId: run.runId,
      fence: run.fence,
      chain: this.chainOf(run),
      object: encodeId('run', run.runId),
      ...end,
    };
    try {
      return await this.finishes.push(finish);
    } catch (error) {
      // Trying was stopped while the database was in the way: once more, as it is.
      if (isTransient(error)) return this.doubting(this.finishes.push(finish));
      this.platform.log.error(
        { code: 'run_end_reduced', err: error, run: finish.object },
        "the run's end can't be written as it is; writing it without detail and output",
      );
      const outcome = { ...end.outcome, detail: '' };
      return this.doubting(this.finishes.push({ ...finish, outcome, output: null }));
    }
  }

  /** Gives unstarted runs back to their queues, or ends them when they were canceled meanwhile: those that were ours. */
  async release(runs: readonly OwnRun[]): Promise<string[]> {
    const releases = runs.map((run) => ({
      runId: run.runId,
      fence: run.fence,
      chain: this.chainOf(run),
      object: encodeId('run', run.runId),
      worker: this.workerId,
    }));
    const released = await this.doubting(releaseIfHeld(this.platform.pools.work, this.worker.id, releases));
    for (const { ended } of released) if (ended) this.metrics.countEnded(ended);
    this.metrics.work.countReleased(released.filter(({ ended }) => ended === null).length);
    return released.map(({ runId }) => runId);
  }

  /** Stores output. False: the run is no longer ours. */
  appendOutput(hold: Hold, batches: readonly OutputBatch[], data: Buffer): Promise<boolean> {
    return appendOutputIfHeld(this.platform.pools.output, this.worker.id, hold, batches, data);
  }

  /** Drops output that is not kept. False: the run is no longer ours. */
  dropOutput(hold: Hold, cut: OutputCut): Promise<boolean> {
    return dropOutputIfHeld(this.platform.pools.output, this.worker.id, hold, cut);
  }

  /** Stores one batch of what a tool reported. False: the run is no longer ours. */
  appendReports(
    hold: Hold,
    batch: number,
    reports: readonly RunReport[],
    progress: JsonValue | undefined,
  ): Promise<boolean> {
    return appendReportsIfHeld(this.platform.pools.output, this.worker.id, hold, batch, reports, progress);
  }

  /** What the database says this life holds. */
  holdings(): Promise<Holding[]> {
    return holdingsOf(this.platform.pools.work, this.worker.id);
  }

  /** Whether this life is out of service. */
  isDraining(): Promise<boolean> {
    return this.doubting(isDraining(this.platform.pools.work, this.worker.id));
  }

  /** `looksForRuns`: whether it is to be said if something is claimable, which under a backlog is not cheap. */
  pulse(looksForRuns: boolean): Promise<Pulse> {
    const { pools, config } = this.platform;
    const { id, queues } = this.worker;
    return pulse(pools.work, id, looksForRuns ? queues : [], config.maxRunDurationMs);
  }

  /** For the end of a life: what can't be written now is left to a janitor. */
  stopRetrying(): void {
    this.starts.stopRetrying();
    this.finishes.stopRetrying();
  }

  private chainOf({ organizationId }: OwnRun): string {
    const known = this.chains.get(organizationId);
    if (known !== undefined) return known;
    const chain = encodeId('org', organizationId);
    this.chains.set(organizationId, chain);
    return chain;
  }

  /** After an error what we hold may not be what we believe to hold. */
  private async doubting<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      this.onDoubt();
      throw error;
    }
  }

  private async flushStarts(holds: readonly Hold[]): Promise<boolean[]> {
    const started = new Set(
      (await startIfHeld(this.platform.pools.work, this.worker.id, holds)).map((row) => row.runId),
    );
    return holds.map((hold) => started.has(hold.runId));
  }

  private async flushFinishes(ends: readonly Finish[]): Promise<boolean[]> {
    const { work } = this.platform.pools;
    const now = await finishIfHeld(work, this.worker.id, ends);
    const writtenNow = new Set(now.map(({ runId }) => runId));
    const missing = ends.filter(({ runId }) => !writtenNow.has(runId)).map(({ runId, fence }) => ({ runId, fence }));
    const before = missing.length === 0 ? [] : await findOwnEnds(work, this.worker.id, missing);
    for (const ended of [...now, ...before]) this.metrics.countEnded(ended);
    const written = new Set([...writtenNow, ...before.map(({ runId }) => runId)]);
    if (written.size > 0) this.platform.bells.ended.ring([...written]);
    return ends.map((end) => written.has(end.runId));
  }
}
