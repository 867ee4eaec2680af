/** One life's way through its queues: from the front, and in a burst behind what it took last. */
import type { Pool } from '../platform/db/db.js';
import type { Timing } from '../platform/time.js';
import { claimIfLive } from './claim.sql.js';
import type { ClaimedRun } from './run.js';
import { LOOK_BACK_EVERY_MS, type Mark, marksAfter } from './watermark.rules.js';
import type { NewWorker } from './worker.js';

export interface Claimed {
  readonly runs: readonly ClaimedRun[];
  /** Nothing can be concluded from these being few: another claim at once may get more. */
  readonly mayBeMore: boolean;
}

export class Claimer {
  private marks: readonly Mark[] = [];
  private lookedBackAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly pool: Pool,
    private readonly worker: Pick<NewWorker, 'id' | 'queues'>,
    private readonly timing: Pick<Timing, 'monotonicMs'>,
  ) {}

  /** Takes up to `limit` runs with one statement. */
  async claim(limit: number): Promise<Claimed> {
    const now = this.timing.monotonicMs();
    const isLookBack = this.marks.length === 0 || now - this.lookedBackAtMs >= LOOK_BACK_EVERY_MS;
    if (isLookBack) this.lookedBackAtMs = now;
    const runs = await claimIfLive(this.pool, this.worker.id, this.worker.queues, limit, isLookBack ? [] : this.marks);
    this.marks = marksAfter(this.marks, runs, limit);
    return { runs, mayBeMore: runs.length === limit || !isLookBack };
  }
}
