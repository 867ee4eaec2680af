/**
 * Removes what is kept no longer: one pass over the installation, in bounded pieces with nothing held in between. Days that
 * are over for everybody go first: where no run of a day stays, its records are removed and the partitions dropped with all
 * that is in them. Then, of each organization, single runs go with their rows. Any replica may pass at any time: whoever
 * finds another at it leaves it to that one.
 */
import { encodeId } from '../kernel/ids.js';
import { errorCode, isTimeout } from '../platform/db/db.js';
import type { Platform, Pools } from '../platform/platform.js';
import type { RetentionMetrics } from './retention.metrics.js';
import {
  type Day,
  type DueRun,
  daysToDrop,
  dropIfEmpty,
  FIRST_PLACE,
  lookForDue,
  organizationsToSweep,
  removeIfDue,
  type SweepLook,
  type SweepPlace,
} from './retention-sweep.sql.js';
import { expireKeys } from './submit.sql.js';
import type { NewWorker } from './worker.js';

/** Runs of one look: some 20 ms. */
const WALK = 5_000;
/** Runs of one removal, and what their tools wrote: each some 50 ms, or one run. */
const MOST_RUNS = 1_000;
const MOST_BYTES = 32 * 1024 * 1024;
const MOST_KEYS = 1_000;
const LOCK_NOT_AVAILABLE = '55P03';

export interface SweepPlatform extends Pick<Platform, 'log'> {
  readonly config: Pick<Platform['config'], 'retentionMs' | 'idempotencyTtlMs'>;
  readonly pools: Pick<Pools, 'access'>;
}

/** `busy`: somebody else removes runs at this moment. */
type Piece = 'done' | 'busy';

export class RetentionSweep {
  private readonly by: { readonly by: string; readonly byName: string };
  private pass: AsyncGenerator<Piece, void> | undefined;
  /** Halved when a removal takes too long. */
  private mostRuns = MOST_RUNS;

  constructor(
    private readonly platform: SweepPlatform,
    worker: Pick<NewWorker, 'id' | 'name'>,
    private readonly metrics: RetentionMetrics,
  ) {
    this.by = { by: encodeId('wrk', worker.id), byName: worker.name };
  }

  /** The next piece of a pass. `idle`: the pass is over, or another replica is at it; the same pass goes on later. */
  async step(): Promise<'idle' | 'more'> {
    this.pass ??= this.sweep();
    try {
      const { done, value } = await this.pass.next();
      if (done) this.pass = undefined;
      return value === 'done' ? 'more' : 'idle';
    } catch (error) {
      this.pass = undefined;
      throw error;
    }
  }

  private async *sweep(): AsyncGenerator<Piece, void> {
    // Before their runs, while the records say when these ended.
    while ((await expireKeys(this.pool, this.platform.config.idempotencyTtlMs, MOST_KEYS)) === MOST_KEYS) yield 'done';
    for (const day of await daysToDrop(this.pool, this.defaultMs)) yield* this.sweepDay(day);
    for (const id of await this.organizations(null)) {
      for await (const { due } of this.looks(id, null)) {
        yield 'done';
        yield* this.removeAll(id, due, false);
      }
    }
  }

  /** Leaves it to the removal of single runs when one of the day stays. What goes doesn't come back, so none can later. */
  private async *sweepDay(day: Day): AsyncGenerator<Piece, void> {
    const organizations = await this.organizations(day);
    for (const id of organizations) {
      for await (const { spared } of this.looks(id, day)) {
        if (spared > 0) return;
        yield 'done';
      }
    }
    for (const id of organizations) {
      for await (const { due } of this.looks(id, day)) yield* this.removeAll(id, due, true);
    }
    for (const table of ['run_events', 'run_output'] as const) {
      if (await this.drop(table, day)) this.metrics.countDropped(table);
      yield 'done';
    }
  }

  private async *looks(organizationId: string, day: Day | null): AsyncGenerator<SweepLook, void> {
    let after: SweepPlace | null = FIRST_PLACE;
    while (after !== null) {
      const look: SweepLook = await lookForDue(this.pool, this.defaultMs, { organizationId, after, day, limit: WALK });
      yield look;
      after = look.next;
    }
  }

  private async *removeAll(organizationId: string, due: readonly DueRun[], leavesRows: boolean): AsyncGenerator<Piece> {
    let first = 0;
    while (first < due.length) {
      const batch = due.slice(first, first + batchOf(due, first, this.mostRuns, leavesRows));
      const outcome = await this.remove(organizationId, batch, leavesRows);
      if (outcome === 'done') first += batch.length;
      yield outcome === 'busy' ? 'busy' : 'done';
    }
  }

  private async remove(
    organizationId: string,
    batch: readonly DueRun[],
    leavesRows: boolean,
  ): Promise<Piece | 'too slow'> {
    try {
      const removed = await removeIfDue(this.pool, this.defaultMs, {
        ...this.by,
        organizationId,
        chain: encodeId('org', organizationId),
        day: batch[0]?.day ?? '',
        runs: batch.map(({ id }) => ({ id, object: encodeId('run', id) })),
        leavesRows,
      });
      if (!removed) return 'busy';
      this.metrics.countRemoved(removed);
      this.mostRuns = Math.min(this.mostRuns * 2, MOST_RUNS);
      return 'done';
    } catch (error) {
      if (!isTimeout(error)) throw error;
      this.mostRuns = Math.max(1, Math.floor(batch.length / 2));
      if (batch.length > 1) return 'too slow';
      const run = encodeId('run', batch[0]?.id ?? '');
      this.platform.log.warn({ code: 'removal_put_off', run, err: error }, 'a run takes too long to remove; it stays');
      return 'done';
    }
  }

  private async drop(table: 'run_events' | 'run_output', day: Day): Promise<boolean> {
    try {
      return await dropIfEmpty(this.pool, table, day);
    } catch (error) {
      if (errorCode(error) !== LOCK_NOT_AVAILABLE) throw error;
      this.platform.log.info(
        { code: 'drop_put_off', table, day },
        'a table is in use by others; dropping its part later',
      );
      return false;
    }
  }

  private organizations(day: Day | null): Promise<string[]> {
    return organizationsToSweep(this.pool, this.defaultMs, day);
  }

  private get defaultMs(): number {
    return this.platform.config.retentionMs;
  }

  private get pool() {
    return this.platform.pools.access;
  }
}

/** How many of these, from `first` on, go together: of one day, and one at least. */
function batchOf(due: readonly DueRun[], first: number, mostRuns: number, leavesRows: boolean): number {
  const day = due[first]?.day;
  let bytes = 0;
  let n = 0;
  for (const run of due.slice(first, first + mostRuns)) {
    bytes += leavesRows ? 0 : run.bytes;
    if (n > 0 && (run.day !== day || bytes > MOST_BYTES)) break;
    n += 1;
  }
  return n;
}
