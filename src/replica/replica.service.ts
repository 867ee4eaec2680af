/**
 * This process as one of many: it lives one life as a worker after another, and has the one order of starting and
 * stopping. What can't be told the database while stopping is left to another replica's janitor.
 */
import { installationChain } from '../audit/audit.sql.js';
import type { RecheckLoop } from '../audit/recheck.loop.js';
import { type KeeperClient, startKeeper } from '../execution/keeper/keeper.client.js';
import { encodeId } from '../kernel/ids.js';
import { Bug } from '../kernel/problems.js';
import type { ThisReplica } from '../platform/http/this-replica.js';
import type { Platform } from '../platform/platform.js';
import type { RunMetrics } from '../runs/run.metrics.js';
import { beginLife } from './begin-life.js';
import { chainLoops } from './chain-loops.js';
import type { Life, LifeParts } from './life.js';
import { LoopMetrics } from './loop.metrics.js';
import type { LoopRunner } from './loop-runner.js';
import type { ReadinessService } from './readiness.service.js';
import { registerReplicaMetrics } from './replica.metrics.js';
import { untilAborted } from './stop.js';

/** Between lives; doubled after each that was short, so that a machine in trouble isn't kept busy with new lives. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;
const SHORT_LIFE_MS = 60_000;
/** For a chain's loop whose statement gets no answer. */
const LAST_STEPS_MS = 1_000;

/** What a process that serves the API has beside its lives. */
export interface Serving {
  /** What it watches over chains with. */
  readonly recheck: RecheckLoop;
  /** Fingerprint of the key that it signs bundles with; null when it was given none. */
  readonly signs: string | null;
}

export class Replica {
  private readonly stopping = new AbortController();
  private keeper: KeeperClient | undefined;
  private life: Life | undefined;
  private living: Promise<void> = Promise.resolve();
  /** They outlive lives: nothing that they do depends on a lease. */
  private chainLoops: readonly LoopRunner[] = [];

  constructor(
    private readonly platform: Platform,
    private readonly runMetrics: RunMetrics,
    private readonly self: ThisReplica,
    private readonly readiness: Pick<ReadinessService, 'noteWritable'>,
  ) {}

  /** Begins to live. Resolves once the first life is registered. */
  async start(kind: 'replica' | 'worker', serving: Serving | undefined): Promise<void> {
    const chain = await installationChain(this.platform.pools.work);
    if (!chain) throw new Bug('the installation has no chain');
    registerReplicaMetrics(this.platform, {
      queues: this.runMetrics.queues,
      keeper: () => this.keeper?.stats,
      running: () => this.life?.running ?? 0,
    });
    const loopMetrics = new LoopMetrics(this.platform.metrics);
    if (serving) this.chainLoops = chainLoops(this.platform, serving.recheck, loopMetrics);
    for (const loop of this.chainLoops) loop.start();
    await new Promise<void>((resolve, reject) => {
      const { platform, runMetrics } = this;
      const parts = {
        platform,
        installationChain: chain,
        kind,
        signs: serving?.signs ?? null,
        runMetrics,
        loopMetrics,
        noteWritable: (writable: boolean) => this.readiness.noteWritable(writable),
      };
      this.living = this.live(parts, resolve).catch(reject);
    });
  }

  /**
   * Stops in order; `force` cuts the waiting for tools short. Afterwards nothing of this process touches the database
   * any more except what callers still ask for.
   */
  async stop(force: AbortSignal): Promise<void> {
    this.stopping.abort();
    const loopsEnded = Promise.all(this.chainLoops.map((loop) => loop.stop()));
    // A life that is being buried or begun is ended where that happens.
    await this.life?.end(this.platform.config.drainTimeoutMs, force);
    await this.living;
    await Promise.race([loopsEnded, this.platform.timing.delay(LAST_STEPS_MS)]);
    await this.keeper?.close();
  }

  /** One life after another. Rejects only before the first; later faults are logged and tried again. */
  private async live(parts: Omit<LifeParts, 'keeper'>, onFirst: () => void): Promise<void> {
    const { platform, stopping } = this;
    const { log, timing } = platform;
    let shortLives = 0;
    let before: string | null = null;
    while (!stopping.signal.aborted) {
      if (this.keeper?.isGone) this.keeper = undefined;
      this.keeper ??= this.startKeeper();
      const life = await beginLife({ ...parts, keeper: this.keeper }, before, stopping.signal);
      if (!life) return;
      // It was registered while the process was told to stop; nothing runs yet.
      if (stopping.signal.aborted) return await life.end(0, stopping.signal);
      const begunAtMs = timing.monotonicMs();
      this.life = life;
      this.self.workerId = encodeId('wrk', life.worker.id);
      onFirst();
      const end = await Promise.race([life.over, untilAborted(stopping.signal)]);
      if (end === undefined) return;
      this.life = undefined;
      this.self.workerId = null;
      before = life.worker.id;
      this.runMetrics.work.countLifeOver(end);
      await life.bury(end).catch((error: unknown) => {
        log.error({ code: 'burial_failed', err: error }, 'a life could not be ended in order; beginning another');
      });
      shortLives = timing.monotonicMs() - begunAtMs < SHORT_LIFE_MS ? shortLives + 1 : 0;
      await timing.delay(Math.min(FIRST_PAUSE_MS * 2 ** shortLives, LONGEST_PAUSE_MS), stopping.signal);
    }
  }

  private startKeeper(): KeeperClient {
    const { config, log, pools } = this.platform;
    if (config.databaseDirectUrl === undefined) throw new Bug('there is no database URL');
    return startKeeper({
      databaseUrl: config.databaseDirectUrl,
      ttlMs: config.leaseTtlMs,
      renewMs: config.leaseRenewMs,
      stallLimitMs: config.stallLimitMs,
      toolDeadlineMs: config.toolDeadlineMs,
      graceMs: config.killGraceMs,
      log,
      onRefused: () => pools.work.room.noteKeeperRefused(),
    });
  }
}
