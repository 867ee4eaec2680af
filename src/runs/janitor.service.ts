/**
 * What any replica may do for the others: end lives whose lease ran out, settle what they held, and ask for the end of
 * runs that take too long. Each step is bounded and may be cut off anywhere: the next one goes on.
 */
import { encodeId } from '../kernel/ids.js';
import type { ClockSample } from '../platform/db/clock.rules.js';
import type { Bells, Platform, Pools } from '../platform/platform.js';
import { cancelIfLive, findOverdue } from './cancel.sql.js';
import { promoteDue } from './pulse.sql.js';
import type { RunMetrics } from './run.metrics.js';
import { findOrphans, type Settled, settleIfOrphaned } from './settle.sql.js';
import type { NewWorker } from './worker.js';
import { findExpired, reapIfExpired } from './worker.sql.js';

const BATCH = 200;

/** What a janitor needs of its process. */
export interface JanitorPlatform extends Pick<Platform, 'log' | 'timing'> {
  readonly config: Pick<Platform['config'], 'maxRunDurationMs'>;
  readonly pools: Pick<Pools, 'work' | 'submit'>;
  readonly bells: Pick<Bells, 'claimable' | 'canceled'>;
}

export class JanitorService {
  private readonly by: { readonly id: string; readonly name: string };

  constructor(
    private readonly platform: JanitorPlatform,
    worker: NewWorker,
    private readonly installationChain: string,
    private readonly metrics: RunMetrics,
  ) {
    this.by = { id: encodeId('wrk', worker.id), name: worker.name };
  }

  /**
   * Ends lives whose lease is over by a clock that `isSteady` finds trustworthy: it is shown the very look at the
   * database's clock that found them. Returns their ids.
   */
  async reap(isSteady: (clock: ClockSample) => boolean): Promise<string[]> {
    const { timing, pools } = this.platform;
    const { work } = pools;
    const sentAtMs = timing.monotonicMs();
    const expired = await findExpired(work, BATCH);
    const databaseAtMs = expired[0]?.databaseAtMs;
    if (databaseAtMs === undefined) return [];
    if (!isSteady({ sentAtMs, receivedAtMs: timing.monotonicMs(), databaseAtMs })) {
      this.platform.log.warn(
        { code: 'reaping_put_off' },
        "the database's clock can't be trusted at this moment; nobody is reaped now",
      );
      return [];
    }
    const { id: by, name: byName } = this.by;
    const reaps = expired.map(({ id }) => ({ id, object: encodeId('wrk', id), by, byName }));
    const reaped = await reapIfExpired(work, this.installationChain, reaps);
    this.metrics.work.countReaped(reaped.length);
    for (const { id } of reaped) {
      this.platform.log.warn({ code: 'worker_lost', worker: encodeId('wrk', id) }, 'a worker let its lease run out');
    }
    return reaped.map(({ id }) => id);
  }

  /** Settles one batch of what lives that are over still hold. */
  async settle(): Promise<Settled[]> {
    const { work } = this.platform.pools;
    const orphans = await findOrphans(work, BATCH);
    if (orphans.length === 0) return [];
    const settled = await settleIfOrphaned(
      work,
      orphans.map((orphan) => ({
        runId: orphan.runId,
        holder: orphan.holder,
        chain: encodeId('org', orphan.organizationId),
        object: encodeId('run', orphan.runId),
        worker: encodeId('wrk', orphan.holder),
        by: this.by.id,
        byName: this.by.name,
      })),
    );
    for (const { runId, result, ended } of settled) {
      this.metrics.work.countSettled(result);
      if (ended) this.metrics.countEnded(ended);
      this.platform.log.warn({ code: 'run_settled', run: encodeId('run', runId), result }, `a lost run was ${result}`);
    }
    if (settled.some(({ result }) => result === 'requeued')) this.platform.bells.claimable.ring();
    return settled;
  }

  /** Asks the holders of runs that have been executing for too long to stop them. Returns how many. */
  async cancelOverdue(): Promise<number> {
    const { work, submit } = this.platform.pools;
    const { maxRunDurationMs } = this.platform.config;
    const overdue = await findOverdue(work, maxRunDurationMs, BATCH);
    if (overdue.length === 0) return 0;
    const canceled = await cancelIfLive(
      submit,
      overdue.map((run) => ({
        ...run,
        chain: encodeId('org', run.organizationId),
        object: encodeId('run', run.runId),
        kind: 'overrun' as const,
        detail: 'it ran for longer than any run may',
        by: this.by.id,
        byName: this.by.name,
      })),
    );
    this.platform.bells.canceled.ring();
    return canceled.length;
  }

  /** Makes runs whose instant has come claimable. Returns how many, at most a batch. */
  async promoteDue(): Promise<number> {
    return promoteDue(this.platform.pools.work, BATCH * 5);
  }
}
