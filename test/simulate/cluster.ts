/** The simulated cluster: carries out one step of a history on it, and says what it knows of its processes and tools. */
import { decodeId, newId } from '../../src/kernel/ids.js';
import { digestOf } from '../../src/kernel/json.js';
import { type Config, readConfig } from '../../src/platform/config/config.js';
import { Callers, requestOf } from './callers.js';
import { EPOCH_MS } from './lane.js';
import type { Started } from './laws.js';
import type { Look, RunLook } from './look.js';
import type { Tool } from './machine.js';
import { SimulatedProcess } from './process.js';
import type { Step } from './steps.js';
import type { World } from './world.js';

/** Runs of one history: enough for every meeting, few enough for a quick look. */
const MOST_RUNS = 24;
const QUEUES = [['default'], ['default', 'gpu'], ['*']];
const QUEUE_NAMES = ['default', 'gpu'];
/** The database's clock is never set further than this from the beginning's course. */
const CLOCK_REACH_MS = 100_000;

export class Cluster {
  readonly started: Started[] = [];
  readonly callers: Callers;
  /** By place; one that crashed or stopped is followed by another. */
  readonly processes: SimulatedProcess[] = [];
  private readonly all: SimulatedProcess[] = [];
  private readonly config: Config;
  /** As the last look found it. */
  known: Look = { runs: [], workers: [] };
  /** For ids that callers choose: no history meets another's. */
  private readonly chosen = newId().slice(-12);

  constructor(
    readonly world: World,
    private readonly installationChain: string,
    organizations: readonly string[],
    replicas: number,
  ) {
    this.config = simulatedConfig();
    this.callers = new Callers(world, organizations);
    for (let place = 0; place < replicas; place += 1) this.begin(place);
  }

  get tools(): Tool[] {
    return this.all.flatMap(({ machines }) => machines.flatMap((machine) => machine.living));
  }

  take(step: Step): void {
    if (step.do === 'time') this.passTime(step.ms);
    else if (step.do === 'clock') this.setClock(step.ms);
    else if (step.do === 'carry out') this.carryOut(step.nth);
    else if (step.do === 'commit') this.world.soon(() => this.world.lane.commitLate());
    else if (step.do === 'tool') this.act(step);
    else if (step.do === 'begin') this.beginOne(step.r);
    else if (step.do === 'resume') chosen(this.up('isPaused'), step.r)?.wire.resume();
    else if (step.do === 'mend') chosen(this.up('isCut'), step.r)?.wire.heal();
    else this.takeAt(step, this.at(step.r));
  }

  private up(which: 'isPaused' | 'isCut'): SimulatedProcess[] {
    return this.processes.filter(({ isUp, wire }) => isUp && wire[which]);
  }

  /** In the place of one that is dead. */
  private beginOne(nth: number): void {
    const places = [...this.processes.keys()].filter((place) => this.processes[place]?.isUp === false);
    const place = chosen(places, nth);
    if (place !== undefined) this.begin(place);
  }

  private takeAt(step: Extract<Step, { readonly r: number }>, process: SimulatedProcess): void {
    const { wire } = process;
    if (!process.isUp) return;
    if (step.do === 'cut') wire.isCut = true;
    else if (step.do === 'skew') wire.standStill(step.ms);
    else if (step.do === 'fault') wire.arm(step.fault, step.to);
    else if (step.do === 'pause') wire.pause();
    else if (step.do === 'crash') this.crash(process, step.stubborn);
    else if (step.do === 'lose wake-up') process.deafTo += 1;
    // A process that stands still takes nothing up.
    else if (!wire.isPaused) this.ask(step, process);
  }

  private ask(step: Extract<Step, { readonly r: number }>, process: SimulatedProcess): void {
    if (step.do === 'work' || step.do === 'janitor') process.life?.step(step.do);
    else if (step.do === 'renew') process.keeper.step();
    else if (step.do === 'supervisor dies') process.life?.loseSupervisor();
    else if (step.do === 'stop') void process.stop(step.drainMs);
    else if (step.do === 'submit') this.submit(step, process);
    else if (step.do === 'resend') {
      const asked = chosen(this.callers.asked, step.nth);
      if (asked) this.callers.resend(process, asked);
    } else if (step.do === 'cancel' || step.do === 'rerun') {
      // What is under way is more worth it.
      const live = this.known.runs.filter((run) => run.live !== null);
      const run = chosen(live.length > 0 && step.nth % 4 < 3 ? live : this.known.runs, step.nth);
      if (run && step.do === 'cancel') this.callers.cancel(process, run);
      if (run && step.do === 'rerun') this.rerun(process, run, step.key);
    } else if (step.do === 'drain' || step.do === 'undrain') {
      // The present life of a process, or any that there ever was.
      const present = step.nth % 4 < 3 ? this.at(step.nth).life?.worker : undefined;
      const worker = present ?? chosen(this.known.workers, step.nth);
      if (worker) this.callers.service(process, worker.id, step.do);
    }
  }

  /** Everything that was in its memory is gone. */
  private crash(process: SimulatedProcess, stubborn: boolean): void {
    for (const machine of process.machines) for (const tool of machine.living) tool.isStubborn = stubborn;
    process.crash();
  }

  passTime(ms: number): void {
    const untilMs = this.world.nowMs + ms;
    for (const { machines } of this.all) for (const machine of machines) machine.pass(untilMs);
    this.world.nowMs = untilMs;
    for (const { wire } of this.all) wire.fireTimers();
  }

  private setClock(ms: number): void {
    const aheadMs = this.world.clockAheadMs + ms;
    if (Math.abs(aheadMs) <= CLOCK_REACH_MS) this.world.clockAheadMs = aheadMs;
  }

  private carryOut(nth: number): void {
    const held = chosen(this.world.held, nth);
    if (held) this.world.release(held);
  }

  private act({ nth, act, bytes }: Extract<Step, { do: 'tool' }>): void {
    const tool = chosen(this.tools, nth);
    const machine = this.all.flatMap(({ machines }) => machines).find((each) => tool && each.living.includes(tool));
    if (!tool || !machine) return;
    if (act === 'write') machine.write(tool, bytes % 2 === 0 ? 1 : 2, 'x'.repeat(bytes));
    else if (act === 'report') machine.write(tool, 3, `{"type":"progress","data":{"done":${bytes}}}\n`);
    else {
      const exitCode = act === 'end' ? 0 : 1;
      for (const started of this.started) if (started.tool === tool) started.exitCode = exitCode;
      machine.exit(tool, exitCode);
    }
  }

  private submit(step: Extract<Step, { do: 'submit' }>, process: SimulatedProcess): void {
    const { world, callers } = this;
    const { org, key, id, kind, priority, queue, waitMs } = step;
    for (let i = 0; i < step.count && this.known.runs.length + i < MOST_RUNS; i += 1) {
      const notBefore = waitMs === 0 ? null : new Date(EPOCH_MS + world.nowMs + world.clockAheadMs + waitMs);
      const request = requestOf({
        // Lower than any that the product makes, or higher.
        id: id === null ? undefined : `${id % 2 === 0 ? '00000000' : 'ffffffff'}-000${id}-7000-8000-${this.chosen}`,
        kind,
        priority,
        queue: QUEUE_NAMES[queue] ?? 'default',
        notBefore,
        key: key === null ? null : `key-${key}`,
        // A key that comes again comes with the same request, or with another.
        requestDigest: digestOf({ kind, priority, queue, id }),
      });
      callers.submit(process, callers.callerOf(org), request);
    }
  }

  private rerun(process: SimulatedProcess, run: RunLook, key: number | null): void {
    if (this.known.runs.length >= MOST_RUNS) return;
    this.callers.rerun(process, run, key === null ? null : `key-${key}`);
  }

  begin(place: number): void {
    const name = `R${place + 1}`;
    const config = { ...this.config, queues: QUEUES[place % QUEUES.length] ?? ['default'] };
    const process = new SimulatedProcess(
      {
        world: this.world,
        config,
        installationChain: this.installationChain,
        onStart: (tool) => this.noteStart(tool),
        onRing: (from, word) => {
          for (const other of this.processes) if (other !== from) other.hear(word);
        },
        onCrash: (crashed) => this.crash(crashed, false),
      },
      name,
      this.all.length + 1,
    );
    this.processes[place] = process;
    this.all.push(process);
  }

  private noteStart(tool: Tool): void {
    this.started.push({ tool, runId: decodeId('run', tool.run) ?? tool.run, exitCode: undefined });
  }

  private at(r: number): SimulatedProcess {
    const process = chosen(this.processes, r);
    if (!process) throw new Error('a cluster has a process');
    return process;
  }
}

function chosen<T>(list: readonly T[], nth: number): T | undefined {
  return list[nth % list.length];
}

function simulatedConfig(): Config {
  const read = readConfig({ CAPSTAN_SLOTS: '2' });
  if (!read.ok) throw new Error('the settings of a simulated process are wrong');
  // Small, so that outputs of a few hundred bytes lose their middle.
  return { ...read.config, outputLimitBytes: 2_048 };
}
