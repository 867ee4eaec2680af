/**
 * One life of a simulated process: the product's own classes put together as `src/replica/life.ts` does, with a keeper
 * and a supervisor that are stepped, and without runners for its loops.
 */
import { Executor } from '../../src/execution/executor.js';
import { encodeId } from '../../src/kernel/ids.js';
import { isTransient } from '../../src/platform/db/db.js';
import type { Loop } from '../../src/platform/loop.js';
import type { Platform } from '../../src/platform/platform.js';
import { JanitorLoop } from '../../src/replica/janitor.loop.js';
import { WorkLoop } from '../../src/replica/work.loop.js';
import { HolderService } from '../../src/runs/holder.service.js';
import { JanitorService } from '../../src/runs/janitor.service.js';
import type { NewWorker } from '../../src/runs/worker.js';
import { leaveIfAlive } from '../../src/runs/worker.sql.js';
import type { Keeper } from './keeper.js';
import type { Machine } from './machine.js';
import type { World } from './world.js';

const LAST_WRITES_MS = 1_000;
const STARTING_TAKES_MS = 1_000;

export type LifeEnd = 'lease over' | 'supervisor gone';

export interface LifeParts {
  readonly world: World;
  readonly platform: Platform;
  readonly keeper: Keeper;
  readonly installationChain: string;
}

export class Life {
  readonly over: Promise<LifeEnd>;
  private readonly executor: Executor;
  private readonly holder: HolderService;
  private readonly work: WorkLoop;
  private readonly janitor: JanitorLoop;
  private readonly stepping = new Set<Loop>();
  private readonly unsubscribe: readonly (() => void)[];
  private isStopping = false;
  private declareOver: (end: LifeEnd) => void = () => undefined;

  constructor(
    private readonly parts: LifeParts,
    readonly worker: NewWorker,
    readonly machine: Machine,
  ) {
    const { world, platform, keeper, installationChain } = parts;
    const { config, timing, log, bells } = platform;
    this.over = new Promise((resolve) => {
      this.declareOver = resolve;
    });
    this.holder = new HolderService(platform, worker, world.metrics, () => this.work.noteDoubt());
    const service = new JanitorService(platform, worker, installationChain, world.metrics);
    this.executor = new Executor({
      platform,
      holder: this.holder,
      supervisor: machine,
      incarnation: worker.id,
      metrics: world.metrics,
      onStarted: () => this.work.noteStarted(),
      onStartFailed: (error) => this.work.noteStartFailed(error),
      onFree: () => this.work.noteClaimable(),
    });
    this.janitor = new JanitorLoop(service, keeper, config, timing);
    this.work = new WorkLoop({
      holder: this.holder,
      executor: this.executor,
      janitor: service,
      timing,
      log,
      pollIntervalMs: config.pollIntervalMs,
      mayClaim: () => machine.leftMs > STARTING_TAKES_MS,
      onPulse: (pulse) => this.janitor.notePulse(pulse),
    });
    this.unsubscribe = [
      bells.claimable.onRing(() => this.work.noteClaimable()),
      bells.canceled.onRing(() => this.work.noteCanceled()),
    ];
    keeper.begin({
      machine,
      onClock: (clock) => this.janitor.noteClock(clock),
      onOver: () => this.declareOver('lease over'),
    });
  }

  /** One step of one of its loops, unless the last one is still under way. */
  step(which: 'work' | 'janitor'): void {
    const loop: Loop = which === 'work' ? this.work : this.janitor;
    if (this.stepping.has(loop) || this.isStopping) return;
    this.stepping.add(loop);
    loop
      .step(new AbortController().signal)
      .catch((error: unknown) => {
        if (!isTransient(error)) this.parts.world.break('no step fails for good', `${loop.name}: ${String(error)}`);
      })
      .finally(() => this.stepping.delete(loop));
  }

  loseSupervisor(): void {
    this.machine.die();
    this.declareOver('supervisor gone');
  }

  /** As in the product: nothing of it is written any more when its lease is over. */
  async bury(end: LifeEnd): Promise<void> {
    const { platform, world } = this.parts;
    this.isStopping = true;
    world.tell(() => `    ${this.worker.name}: this life is over (${end})`);
    if (end === 'supervisor gone') {
      this.executor.drain();
      await this.machine.gone;
      await this.executor.idle(platform.config.leaseTtlMs);
      this.holder.stopRetrying();
      await this.leave('stopped', platform.timing.monotonicMs() + LAST_WRITES_MS);
    } else {
      this.executor.abandon();
      await this.machine.shutdown();
      await this.executor.idle(LAST_WRITES_MS);
    }
    this.release();
  }

  /** The process was told to stop: `src/replica/life.ts` in short. */
  async end(drainMs: number): Promise<void> {
    const { config, timing } = this.parts.platform;
    this.isStopping = true;
    this.executor.drain();
    const said = this.leave('draining', timing.monotonicMs() + drainMs + config.killGraceMs);
    if (!(await this.executor.idle(drainMs))) {
      this.executor.stopAll('gracefully');
      if (!(await this.executor.idle(config.killGraceMs + 500))) {
        this.executor.stopAll('at once');
        await this.executor.idle(LAST_WRITES_MS);
      }
    }
    this.holder.stopRetrying();
    await this.machine.shutdown();
    this.parts.keeper.end();
    await this.leave('stopped', timing.monotonicMs() + LAST_WRITES_MS);
    await Promise.race([said, timing.delay(LAST_WRITES_MS)]);
    this.release();
  }

  private async leave(state: 'draining' | 'stopped', untilMs: number): Promise<void> {
    const { platform, installationChain } = this.parts;
    const { timing, pools } = platform;
    const entry = { chain: installationChain, object: encodeId('wrk', this.worker.id) };
    for (let left = untilMs - timing.monotonicMs(); left > 0; left = untilMs - timing.monotonicMs()) {
      const said = await Promise.race([
        leaveIfAlive(pools.work, this.worker.id, state, entry).then(
          () => true,
          () => false,
        ),
        timing.delay(left).then(() => true),
      ]);
      if (said) return;
      await timing.delay(Math.min(200, left));
    }
  }

  private release(): void {
    for (const off of this.unsubscribe) off();
    this.parts.keeper.end();
  }
}
