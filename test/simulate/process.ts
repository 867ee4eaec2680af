/** One operating-system process of the simulated cluster: it serves callers and lives one life as a worker after another. */
import { Registry } from 'prom-client';
import { encodeId, newId } from '../../src/kernel/ids.js';
import { Bell } from '../../src/platform/bell.js';
import type { Config } from '../../src/platform/config/config.js';
import { Platform } from '../../src/platform/platform.js';
import { RunsService } from '../../src/runs/runs.service.js';
import type { NewWorker } from '../../src/runs/worker.js';
import { registerIfNew } from '../../src/runs/worker.sql.js';
import { WorkersService } from '../../src/runs/workers.service.js';
import { Keeper } from './keeper.js';
import { Life } from './life.js';
import { Machine, type Tool } from './machine.js';
import { Wire, WireBytePool, WirePool } from './wire.js';
import type { World } from './world.js';

const BETWEEN_LIVES_MS = 250;

export interface ProcessParts {
  readonly world: World;
  readonly config: Config;
  readonly installationChain: string;
  readonly onStart: (tool: Tool) => void;
  /** What others would be told by NOTIFY. */
  readonly onRing: (from: SimulatedProcess, word: 'claimable' | 'canceled') => void;
  readonly onCrash: (process: SimulatedProcess) => void;
}

export class SimulatedProcess {
  readonly wire: Wire;
  readonly runs: RunsService;
  readonly workers: WorkersService;
  readonly keeper: Keeper;
  /** Of all its lives, whose tools may outlive them. */
  readonly machines: Machine[] = [];
  life: Life | undefined;
  /** Wake-ups that will be lost. */
  deafTo = 0;
  private readonly platform: Platform;
  private isHearing = false;
  private isStopping = false;
  private tellToStop: () => void = () => undefined;
  private readonly toldToStop = new Promise<undefined>((resolve) => {
    this.tellToStop = () => resolve(undefined);
  });
  private readonly living: Promise<void>;

  constructor(
    private readonly parts: ProcessParts,
    readonly name: string,
    seed: number,
  ) {
    const { world, config } = parts;
    this.wire = new Wire(world, name, () => parts.onCrash(this), seed);
    const pool = new WirePool(world, this.wire);
    const bytes = new WireBytePool(world, this.wire);
    const pools = { work: pool, submit: pool, access: pool, read: pool, output: bytes, probe: bytes };
    const bells = { claimable: new Bell(), canceled: new Bell(), ended: new Bell<readonly string[]>() };
    this.platform = new Platform({ ...config, name }, world.log, new Registry(), this.wire.timing, pools, bells);
    this.runs = new RunsService(this.platform, world.metrics);
    this.workers = new WorkersService(pools);
    this.keeper = new Keeper(world, this.wire, config);
    for (const word of ['claimable', 'canceled'] as const) {
      bells[word].onRing(() => {
        if (!this.isHearing) parts.onRing(this, word);
      });
    }
    this.living = this.live();
  }

  get isUp(): boolean {
    return !this.wire.isDead;
  }

  /** Somebody else's bell rang. */
  hear(word: 'claimable' | 'canceled'): void {
    if (this.deafTo > 0) {
      this.deafTo -= 1;
      return;
    }
    this.wire.deliver(() => {
      this.isHearing = true;
      this.platform.bells[word].ring();
      this.isHearing = false;
    });
  }

  /** Everything in its memory is gone; its supervisor sees that and stops the tools. */
  crash(): void {
    this.wire.die();
    for (const machine of this.machines) machine.orphan();
  }

  /** SIGTERM: when all of it is over, the process is no more. */
  async stop(drainMs: number): Promise<void> {
    if (this.isStopping) return;
    this.isStopping = true;
    this.tellToStop();
    const { life } = this;
    this.life = undefined;
    await life?.end(drainMs);
    await this.living;
    this.wire.die();
  }

  private async live(): Promise<void> {
    let before: string | null = null;
    while (!this.isStopping) {
      const life = await this.begin(before);
      if (!life) return;
      this.life = life;
      before = life.worker.id;
      const end = await Promise.race([life.over, this.toldToStop]);
      if (end === undefined) return;
      this.life = undefined;
      await life.bury(end);
      await this.platform.timing.delay(BETWEEN_LIVES_MS);
    }
  }

  private async begin(before: string | null): Promise<Life | undefined> {
    const { world, installationChain, onStart, config } = this.parts;
    const worker: NewWorker = {
      id: newId(),
      name: this.name,
      kind: 'replica',
      slots: config.slots,
      queues: config.queues,
      version: '0.0.0',
    };
    const entry = { chain: installationChain, object: encodeId('wrk', worker.id) };
    for (let attempt = 0; ; attempt += 1) {
      try {
        await registerIfNew(this.platform.pools.work, worker, config.leaseTtlMs, entry, before);
        break;
      } catch {
        await this.platform.timing.delay(Math.min(100 * 2 ** attempt, 2_000));
      }
      if (this.isStopping) return undefined;
    }
    const limits = { deadlineMs: config.toolDeadlineMs, graceMs: config.killGraceMs };
    const machine = new Machine(world, this.wire, worker.id, limits, onStart);
    this.machines.push(machine);
    const life = new Life({ world, platform: this.platform, keeper: this.keeper, installationChain }, worker, machine);
    if (!this.isStopping) return life;
    await life.end(0);
    return undefined;
  }
}
