/**
 * One history from its first step to its end: steps with the laws looked at after each, and then the proof that, once
 * faults stop, everything ends: and that chains and invariants hold.
 */
import { AuditService } from '../../src/audit/audit.service.js';
import { violations } from '../../src/doctor/invariants.js';
import { encodeId, newId } from '../../src/kernel/ids.js';
import type { Logger } from '../../src/platform/log/logger.js';
import type { RunMetrics } from '../../src/runs/run.metrics.js';
import { Cluster } from './cluster.js';
import { makeOrganizations } from './ground.js';
import { EPOCH_MS, type Lane } from './lane.js';
import { brokenLaw, LAWS, type Sight, strayWrite } from './laws.js';
import { look } from './look.js';
import { type Step, textOf } from './steps.js';
import { Broken, World } from './world.js';

/** So many times every loop gets its turn until everything has ended. */
const ROUNDS = 60;
const ROUND_MS = 4_800;

export interface HistoryParts {
  readonly lane: Lane;
  readonly installationChain: string;
  readonly replicas: number;
  readonly log: Logger;
  readonly metrics: RunMetrics;
  readonly isTracing: boolean;
}

export interface HistoryEnd {
  readonly broken: Broken | undefined;
  readonly steps: number;
  readonly trace: readonly string[];
}

export class History {
  private readonly world: World;
  private readonly since = newId();
  private cluster: Cluster;
  private sight: Sight = { look: { runs: [], workers: [] }, clockMs: 0, isLate: false };
  private steps = 0;

  private constructor(
    private readonly parts: HistoryParts,
    private readonly organizations: readonly string[],
  ) {
    this.world = new World(parts.lane, parts.log, parts.metrics, parts.isTracing);
    this.cluster = new Cluster(this.world, parts.installationChain, organizations, parts.replicas);
  }

  static async run(parts: HistoryParts, steps: readonly Step[]): Promise<HistoryEnd> {
    const history = new History(parts, await makeOrganizations(parts.lane, parts.installationChain));
    const { world } = history;
    try {
      await world.quiet();
      for (const step of steps) {
        if (world.broken) break;
        await history.take(step);
      }
      if (!world.broken) await history.settle();
      if (!world.broken) await history.leave();
      if (!world.broken) await history.verify();
    } finally {
      await world.end();
      await parts.lane.commitLate();
    }
    return { broken: world.broken, steps: history.steps, trace: world.trace };
  }

  private async take(step: Step): Promise<void> {
    this.steps += 1;
    this.world.tell(() => `${String(this.steps).padStart(4)} ${textOf(step)}`);
    this.cluster.take(step);
    await this.world.quiet();
    await this.judge();
  }

  private async judge(): Promise<void> {
    const { world, cluster, parts } = this;
    const clockMs = EPOCH_MS + world.nowMs + world.clockAheadMs;
    const isNew = world.takeWritten();
    const seen = isNew ? await look(parts.lane, this.organizations, this.since) : this.sight.look;
    // What began in time may commit later: then the lease is not what it was judged by.
    const sight = { look: seen, clockMs, isLate: world.takeCommittedLate() };
    const broken = brokenLaw(this.sight, sight, cluster.started) ?? strayWrite(seen, world.wrote.splice(0));
    if (broken) world.break(broken.law, broken.fact);
    this.sight = sight;
    cluster.known = seen;
  }

  /** Faults stop, what is under way arrives, and everybody gets his turn until nothing is left to do. */
  private async settle(): Promise<void> {
    const { world, cluster } = this;
    world.tell(() => '     faults stop');
    for (const { wire } of cluster.processes) {
      wire.heal();
      wire.resume();
    }
    await this.take({ do: 'commit' });
    while (world.held.length > 0 && !world.broken) await this.take({ do: 'carry out', nth: 0 });
    while (cluster.processes.some(({ isUp }) => !isUp) && !world.broken) await this.take({ do: 'begin', r: 0 });
    for (let round = 0; round < ROUNDS && !world.broken; round += 1) {
      if (this.isSettled()) return;
      await this.round();
    }
    const left = this.sight.look.runs.filter(({ ended }) => ended === null);
    world.break(
      LAWS.ends,
      `after ${ROUNDS} rounds: ${JSON.stringify(left)}, ${JSON.stringify(this.sight.look.workers)}`,
    );
  }

  private async round(): Promise<void> {
    const { world, cluster } = this;
    for (const worker of this.sight.look.workers) {
      const isOut = worker.state === 'draining' && worker.drainedBy !== null;
      if (isOut && !world.broken) await this.undrain(worker.id);
    }
    const steps = cluster.processes.flatMap((process, r): Step[] =>
      process.isUp
        ? [
            { do: 'renew', r },
            { do: 'work', r },
            { do: 'janitor', r },
            { do: 'work', r },
          ]
        : [{ do: 'begin', r: 0 }],
    );
    for (const step of steps) if (!world.broken) await this.take(step);
    const tools = cluster.tools.length;
    for (let i = 0; i < tools && !world.broken; i += 1) await this.take({ do: 'tool', nth: 0, act: 'end', bytes: 1 });
    // In two, for between them timers of a tenth of a second and of a second go off.
    await this.take({ do: 'time', ms: ROUND_MS / 2 });
    await this.take({ do: 'time', ms: ROUND_MS / 2 });
  }

  private async undrain(worker: string): Promise<void> {
    const { world, cluster } = this;
    const [process] = cluster.processes;
    if (process) cluster.callers.service(process, worker, 'undrain');
    await world.quiet();
    await this.judge();
  }

  /** Nothing is live, no tool runs, and every worker that isn't over is the present life of a process. */
  private isSettled(): boolean {
    const { runs, workers } = this.sight.look;
    const lives = new Set(this.cluster.processes.flatMap(({ isUp, life }) => (isUp && life ? [life.worker.id] : [])));
    const isOver = (state: string) => state === 'lost' || state === 'stopped';
    return (
      runs.every(({ ended }) => ended !== null) &&
      this.cluster.tools.length === 0 &&
      !this.cluster.callers.isWaiting &&
      workers.every(({ id, state }) => isOver(state) || lives.has(id))
    );
  }

  /** Every process is told to stop, and leaves nothing behind. */
  private async leave(): Promise<void> {
    const { world, cluster } = this;
    for (const r of cluster.processes.keys()) await this.take({ do: 'stop', r, drainMs: 0 });
    for (let i = 0; i < 10 && cluster.processes.some(({ isUp }) => isUp); i += 1)
      await this.take({ do: 'time', ms: 1_000 });
    const left = this.sight.look.workers.filter(({ state }) => state === 'live' || state === 'draining');
    if (left.length > 0) world.break(LAWS.leave, JSON.stringify(left));
  }

  private async verify(): Promise<void> {
    const { world, cluster, parts } = this;
    const unkept = cluster.callers.unkept(this.sight.look.runs);
    if (unkept) world.break(LAWS.kept, unkept);
    await this.findReceipts();
    for (const violation of await violations(parts.lane.pool)) world.break('the invariants', JSON.stringify(violation));
    const audit = new AuditService(parts.lane.pool);
    const chains = [...this.organizations.map((id) => encodeId('org', id)), parts.installationChain];
    for (const chain of chains) {
      const verified = await audit.verify(chain);
      if (!verified.ok) world.break('every chain verifies', JSON.stringify(verified));
    }
  }

  private async findReceipts(): Promise<void> {
    const receipts = [...this.cluster.callers.receipts];
    const { rows } = await this.parts.lane.control.query<{ receipt: string }>({
      name: 'find_receipts',
      text: `select receipt from unnest($1::text[]) receipt
             where not exists (
               select from audit_entries
               where chain_id = split_part(receipt, ':', 1) and seq = split_part(receipt, ':', 2)::bigint
                 and encode(link, 'hex') = split_part(receipt, ':', 3))`,
      values: [receipts],
    });
    if (rows[0]) this.world.break(LAWS.kept, `the receipt ${rows[0].receipt} is of no entry`);
  }
}
