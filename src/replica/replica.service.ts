/**
 * This process as one of many: it lives one life as a worker after another, and has the one order of starting and
 * stopping. What can't be told the database while stopping is left to another replica's janitor.
 */
import { installationChain } from '../audit/audit.sql.js';
import { type KeeperClient, startKeeper } from '../execution/keeper/keeper.client.js';
import { encodeId } from '../kernel/ids.js';
import { Bug } from '../kernel/problems.js';
import type { ThisReplica } from '../platform/http/this-replica.js';
import type { Platform } from '../platform/platform.js';
import type { RunMetrics } from '../runs/run.metrics.js';
import { beginLife, type Life } from './life.js';
import { LoopMetrics } from './loop-runner.js';
import type { ReadinessService } from './readiness.service.js';
import { registerReplicaMetrics } from './replica.metrics.js';
import { untilAborted } from './stop.js';

const BETWEEN_LIVES_MS = 500;

export class Replica {
  private readonly stopping = new AbortController();
  private keeper: KeeperClient | undefined;
  private life: Life | undefined;
  private living: Promise<void> = Promise.resolve();

  constructor(
    private readonly platform: Platform,
    private readonly readiness: ReadinessService,
    private readonly runMetrics: RunMetrics,
    private readonly self: ThisReplica,
  ) {}

  /** Begins to live. Resolves once the first life is registered. */
  async start(kind: 'replica' | 'worker'): Promise<void> {
    const chain = await installationChain(this.platform.pools.work);
    if (!chain) throw new Bug('the installation has no chain');
    registerReplicaMetrics(this.platform, { keeper: () => this.keeper, running: () => this.life?.running ?? 0 });
    const loopMetrics = new LoopMetrics(this.platform.metrics);
    await new Promise<void>((resolve, reject) => {
      this.living = this.live(kind, chain, loopMetrics, resolve).catch(reject);
    });
  }

  /**
   * Stops in order; `force` cuts the waiting for tools short. Afterwards nothing of this process touches the database
   * any more except what callers still ask for.
   */
  async stop(force: AbortSignal): Promise<void> {
    this.readiness.noteStopping();
    this.stopping.abort();
    await this.life?.end(this.platform.config.drainTimeoutMs, force);
    await this.living;
    await this.keeper?.close();
  }

  private async live(
    kind: 'replica' | 'worker',
    chain: string,
    loopMetrics: LoopMetrics,
    onFirst: () => void,
  ): Promise<void> {
    const { platform, stopping, runMetrics } = this;
    while (!stopping.signal.aborted) {
      this.keeper ??= this.startKeeper();
      const { keeper } = this;
      const parts = { platform, keeper, installationChain: chain, kind, runMetrics, loopMetrics };
      const life = await beginLife(parts, stopping.signal);
      if (!life) return;
      this.life = life;
      this.self.workerId = encodeId('wrk', life.worker.id);
      onFirst();
      const end = await Promise.race([life.over, untilAborted(stopping.signal)]);
      if (end === undefined) return;
      await life.bury(end);
      if (end === 'keeper_gone') this.keeper = undefined;
      await platform.timing.delay(BETWEEN_LIVES_MS, stopping.signal);
    }
  }

  private startKeeper(): KeeperClient {
    const { config, log } = this.platform;
    if (config.databaseDirectUrl === undefined) throw new Bug('there is no database URL');
    return startKeeper({
      databaseUrl: config.databaseDirectUrl,
      ttlMs: config.leaseTtlMs,
      renewMs: config.leaseRenewMs,
      stallLimitMs: config.stallLimitMs,
      toolDeadlineMs: config.toolDeadlineMs,
      graceMs: config.killGraceMs,
      log,
    });
  }

  /** Other sessions of this process were lost: the janitor waits until the keeper has renewed anew. */
  noteSessionLost(): void {
    this.keeper?.noteSessionsLost();
  }
}
