/**
 * One life of this process as a worker: its row, its lease, its supervisor, its loops. A life is never revived: when
 * it is over (reaped, supervisor or keeper gone), what it ran is stopped and the replica begins another.
 */
import { Executor } from '../execution/executor.js';
import type { KeeperClient } from '../execution/keeper/keeper.client.js';
import type { RenewedState } from '../execution/keeper/keeper.js';
import type { Supervisor } from '../execution/supervisor/supervisor.client.js';
import { encodeId } from '../kernel/ids.js';
import type { ClockSample } from '../platform/db/clock.rules.js';
import type { Platform } from '../platform/platform.js';
import { HolderService } from '../runs/holder.service.js';
import { JanitorService } from '../runs/janitor.service.js';
import { RetentionSweep } from '../runs/retention-sweep.service.js';
import type { RunMetrics } from '../runs/run.metrics.js';
import type { NewWorker } from '../runs/worker.js';
import { leaveIfAlive } from '../runs/worker.sql.js';
import { HousekeepingLoop } from './housekeeping.loop.js';
import { JanitorLoop } from './janitor.loop.js';
import type { LoopMetrics } from './loop.metrics.js';
import { LoopRunner } from './loop-runner.js';
import { RetentionLoop } from './retention.loop.js';
import { WorkLoop } from './work.loop.js';

/** Small, so that a pulse comes soon after a run becomes due. */
export const PULSE_JITTER = 0.1;
const HOUSEKEEPING_EVERY_MS = 600_000;
const RETENTION_EVERY_MS = 600_000;
/** For what is left to write or to end once the tools were killed. */
const LAST_WRITES_MS = 1_000;
/** From a claim to the spawn of its tool, with room. */
const STARTING_TAKES_MS = 1_000;

export type LifeEnd = 'lease_over' | 'supervisor_gone' | 'keeper_gone';

/** What is made once per process and serves all its lives. */
export interface LifeParts {
  readonly platform: Platform;
  readonly keeper: KeeperClient;
  readonly installationChain: string;
  readonly kind: 'replica' | 'worker';
  /** Fingerprint of the key that this process signs bundles with. */
  readonly signs: string | null;
  readonly runMetrics: RunMetrics;
  readonly loopMetrics: LoopMetrics;
  /** Told what each pulse says of the database, which spares looks for `/readyz`. */
  readonly noteWritable: (writable: boolean) => void;
}

export class Life {
  /** Resolves when this life is over without having been asked to end. */
  readonly over: Promise<LifeEnd>;
  private readonly holder: HolderService;
  private readonly executor: Executor;
  private readonly janitorLoop: JanitorLoop;
  private readonly runners: readonly LoopRunner[];
  private readonly unsubscribe: (() => void)[] = [];
  private declareOver: (end: LifeEnd) => void = () => undefined;
  /** As the last renewal found it. */
  private state: RenewedState = 'live';
  private isEnding = false;

  constructor(
    private readonly parts: LifeParts,
    readonly worker: NewWorker,
    private readonly supervisor: Supervisor,
  ) {
    const { platform, keeper, runMetrics } = parts;
    const { config, timing } = platform;
    this.over = new Promise((resolve) => {
      this.declareOver = resolve;
    });
    this.holder = new HolderService(platform, worker, runMetrics, () => work.noteDoubt());
    const janitor = new JanitorService(platform, worker, parts.installationChain, runMetrics);
    this.executor = new Executor({
      platform,
      holder: this.holder,
      supervisor,
      incarnation: worker.id,
      metrics: runMetrics,
      onStarted: () => work.noteStarted(),
      onStartFailed: (error) => work.noteStartFailed(error),
      onFree: () => {
        work.noteClaimable();
        working.wake();
      },
    });
    this.janitorLoop = new JanitorLoop(janitor, keeper, config, timing);
    const work = new WorkLoop({
      holder: this.holder,
      executor: this.executor,
      janitor,
      timing,
      log: platform.log,
      pollIntervalMs: config.pollIntervalMs,
      mayClaim: () => this.isExtended(),
      onPulse: (pulse) => {
        this.janitorLoop.notePulse(pulse);
        parts.noteWritable(pulse.writable);
      },
    });
    const runner = { timing, log: platform.log, metrics: parts.loopMetrics };
    const working = new LoopRunner(work, { ...runner, intervalMs: () => work.intervalMs(), jitter: PULSE_JITTER });
    this.runners = [
      working,
      new LoopRunner(this.janitorLoop, { ...runner, intervalMs: () => config.janitorIntervalMs }),
      new LoopRunner(new HousekeepingLoop(platform.pools.work), {
        ...runner,
        intervalMs: () => HOUSEKEEPING_EVERY_MS,
      }),
      new LoopRunner(new RetentionLoop(new RetentionSweep(platform, worker, runMetrics.retention), timing), {
        ...runner,
        intervalMs: () => RETENTION_EVERY_MS,
      }),
    ];
    this.watch();
    supervisor.onAck((seq) => {
      keeper.acknowledge(worker.id, seq);
      if (work.isHeldBack) working.wake();
    });
    this.unsubscribe.push(
      platform.bells.claimable.onRing(() => {
        work.noteClaimable();
        working.wake();
      }),
      platform.bells.canceled.onRing(() => {
        work.noteCanceled();
        working.wake();
      }),
    );
    keeper.begin({ incarnation: worker.id, pipeFd: supervisor.keeperFd, supervisorPid: supervisor.pid ?? 0 });
    for (const loop of this.runners) loop.start();
  }

  /** How many runs are executing. */
  get running(): number {
    return this.executor.size;
  }

  /** Ends a life that is over: everything it ran is stopped; then, and only then, another may begin. */
  async bury(end: LifeEnd): Promise<void> {
    const { config, log, timing } = this.parts.platform;
    log.warn({ code: 'life_over', end, worker: encodeId('wrk', this.worker.id) }, 'this life as a worker is over');
    const loopsEnded = this.stopLoops();
    if (end === 'supervisor_gone') {
      // The lease still holds: the ends of what was killed are ours to write.
      this.executor.drain();
      await this.supervisor.gone;
      await this.executor.idle(config.leaseTtlMs);
      this.holder.stopRetrying();
      await this.leave('stopped', timing.monotonicMs() + LAST_WRITES_MS);
    } else {
      this.executor.abandon();
      await this.supervisor.shutdown();
      await this.executor.idle(LAST_WRITES_MS);
    }
    await loopsEnded;
    this.release();
  }

  /**
   * Ends a healthy life in order. Before this first waits, nothing more is claimed and `draining` is on its way: behind
   * it the database refuses claims and starts that are under way. Unstarted runs go back, tools may end for `drainMs`,
   * what is left is stopped with its grace, or at once when `force` aborts. The lease is renewed until the last end is
   * written, and `stopped` is said only when no tool is left: from then on anybody may settle what this life held.
   */
  async end(drainMs: number, force: AbortSignal): Promise<void> {
    const { config, timing, log } = this.parts.platform;
    this.isEnding = true;
    this.parts.runMetrics.work.countDrain('stopping');
    const loopsEnded = this.stopLoops();
    this.executor.drain();
    const drainingSaid = this.leave('draining', timing.monotonicMs() + drainMs + config.killGraceMs);
    if (!(await this.executor.idle(drainMs, force))) {
      log.info(
        { code: 'drain_over', running: this.running, forced: force.aborted },
        'stopping the tools that still run',
      );
      if (!force.aborted) {
        this.executor.stopAll('gracefully');
        await this.executor.idle(config.killGraceMs + 500, force);
      }
      if (this.running > 0) {
        this.executor.stopAll('at once');
        await this.executor.idle(LAST_WRITES_MS);
      }
    }
    this.holder.stopRetrying();
    const isEmpty = await this.endSupervisor();
    // A renewal that met the stopped row would only be told that this life is over.
    this.parts.keeper.end();
    if (isEmpty) await this.leave('stopped', timing.monotonicMs() + LAST_WRITES_MS);
    await Promise.race([Promise.all([loopsEnded, drainingSaid]), timing.delay(LAST_WRITES_MS)]);
    this.release();
  }

  /** Ends the supervisor, by force when it takes its time. Whether all its tools are gone for certain. */
  private async endSupervisor(): Promise<boolean> {
    const { timing } = this.parts.platform;
    const within = (done: Promise<unknown>) =>
      Promise.race([done.then(() => true), timing.delay(LAST_WRITES_MS).then(() => false)]);
    if (await within(this.supervisor.shutdown())) return true;
    this.supervisor.destroy();
    return within(this.supervisor.gone);
  }

  /** The supervisor has read an extension of its deadline that leaves a tool time to run. */
  private isExtended(): boolean {
    const { platform, keeper } = this.parts;
    const { acknowledgedSeq, lastRenewalSentAtMs } = keeper.stats;
    if (acknowledgedSeq === 0 || lastRenewalSentAtMs === undefined) return false;
    const leftMs = lastRenewalSentAtMs + platform.config.toolDeadlineMs - platform.timing.monotonicMs();
    return leftMs > STARTING_TAKES_MS;
  }

  private watch(): void {
    const { keeper } = this.parts;
    this.supervisor.onExit(() => this.declareOver('supervisor_gone'));
    this.unsubscribe.push(
      keeper.subscribe((event) => {
        if (event.type === 'failed') this.declareOver('keeper_gone');
        if (event.type === 'renewed' && event.incarnation === this.worker.id)
          this.noteRenewed(event.state, event.clock);
        if (event.type === 'over' && event.incarnation === this.worker.id) this.declareOver('lease_over');
        if (event.type === 'supervisorSilent' && event.incarnation === this.worker.id) this.supervisor.destroy();
      }),
    );
  }

  private noteRenewed(state: RenewedState, clock: ClockSample): void {
    this.janitorLoop.noteClock(clock);
    this.noteState(state);
  }

  /** Claims and starts go by the row itself; here it is only told. */
  private noteState(state: RenewedState): void {
    if (state === this.state || this.isEnding) return;
    this.state = state;
    const fields = { worker: encodeId('wrk', this.worker.id), running: this.running };
    const { log } = this.parts.platform;
    if (state === 'draining') this.parts.runMetrics.work.countDrain('asked');
    if (state === 'live') log.info({ code: 'worker_undrained', ...fields }, 'back in service: taking runs again');
    else log.info({ code: 'worker_drained', ...fields }, 'out of service: taking no runs until that is undone');
  }

  private async stopLoops(): Promise<void> {
    await Promise.all(this.runners.map((loop) => loop.stop()));
  }

  /** Says in the database that this life is draining or stopped; left to a janitor when that can't be said in time. */
  private async leave(state: 'draining' | 'stopped', untilMs: number): Promise<void> {
    const { platform, installationChain } = this.parts;
    const entry = { chain: installationChain, object: encodeId('wrk', this.worker.id) };
    for (;;) {
      const left = untilMs - platform.timing.monotonicMs();
      if (left <= 0) return;
      const said = await Promise.race([
        leaveIfAlive(platform.pools.work, this.worker.id, state, entry).then(
          () => true,
          () => false,
        ),
        platform.timing.delay(left).then(() => true),
      ]);
      if (said) return;
      await platform.timing.delay(Math.min(200, left));
    }
  }

  private release(): void {
    for (const off of this.unsubscribe) off();
    this.parts.keeper.end();
    this.supervisor.closeKeeperFd();
  }
}
