/**
 * One life's running work: each claimed run goes through start → tool → output → end, each in an execution of its own.
 *
 * Modes: `open` takes runs; `draining` takes none and lets tools end; `abandoned` (this life is over) stops every tool
 * and writes nothing any more, because what this life held is others' to settle.
 */
import { encodeId } from '../kernel/ids.js';
import type { Platform } from '../platform/platform.js';
import type { HolderService, RunEnd } from '../runs/holder.service.js';
import type { Holding } from '../runs/pulse.sql.js';
import type { ClaimedRun, Outcome } from '../runs/run.js';
import { Capture, type CaptureParts } from './capture.js';
import {
  NOOP_OUTCOME,
  outcomeOf,
  outcomeOfFailure,
  outcomeOfRefusal,
  STOPPED_UNSTARTED,
  UNKNOWN_OUTCOME,
  unfit,
} from './outcome.rules.js';
import { type Work, workOf } from './plan.rules.js';
import { type ExecutorMode, mayStart, type StartParts, without } from './starting.js';
import type { StopCause } from './supervisor/plan.js';
import type { Supervisor } from './supervisor/supervisor.client.js';

interface Execution {
  readonly run: ClaimedRun;
  /** The supervisor's name for it, once a tool was asked for. */
  key: number | undefined;
  /** Why its tool was told to stop; of several causes the first. */
  stop: StopCause | undefined;
  /** Its end is being written; it takes no more commands. */
  ending: boolean;
}

/** What an executor needs of its surroundings, as narrow as it is. */
export interface ExecutorParts extends Pick<StartParts, 'metrics' | 'onStarted' | 'onStartFailed'> {
  readonly platform: Pick<Platform, 'log' | 'timing' | 'config'> & StartParts['platform'];
  readonly holder: Pick<HolderService, 'holdings' | 'stopRetrying'> & CaptureParts['holder'] & StartParts['holder'];
  readonly supervisor: Pick<Supervisor, 'launch' | 'grantCredit' | 'stop' | 'kill'>;
  readonly incarnation: string;
  /** Called each time a slot became free. */
  readonly onFree: () => void;
}

export class Executor {
  private readonly executions = new Map<string, Execution>();
  private readonly disowned = new Set<string>();
  private mode: ExecutorMode = 'open';
  /** Draining is over: what has no tool yet gets none. */
  private isStopping = false;
  private keys = 0;

  constructor(private readonly parts: ExecutorParts) {}

  /** Slots that nothing uses; 0 unless open. */
  get free(): number {
    return this.mode === 'open' ? Math.max(0, this.parts.platform.config.slots - this.executions.size) : 0;
  }

  get size(): number {
    return this.executions.size;
  }

  /** Executes a run that was claimed just now. */
  accept(run: ClaimedRun): void {
    const execution: Execution = { run, key: undefined, stop: undefined, ending: false };
    this.executions.set(run.runId, execution);
    void this.execute(execution)
      .catch((error: unknown) => {
        const level = this.mode === 'abandoned' ? 'warn' : 'error';
        this.parts.platform.log[level](
          { code: 'run_end_not_written', err: error, run: encodeId('run', run.runId) },
          "the run's end was not written; it is settled when memory and database are next compared",
        );
      })
      .finally(() => {
        this.executions.delete(run.runId);
        this.parts.onFree();
      });
  }

  /** Stops the tools of these runs, because the database says so. One whose tool isn't there yet is named again. */
  cancel(runIds: readonly string[]): void {
    for (const runId of runIds) this.stopTool(this.executions.get(runId), 'cancel');
  }

  /** Takes no more runs; tools go on. */
  drain(): void {
    if (this.mode === 'open') this.mode = 'draining';
  }

  /** Ends every tool because the replica stops: with TERM and grace, or at once. */
  stopAll(how: 'gracefully' | 'at once'): void {
    this.drain();
    this.isStopping = true;
    for (const execution of this.executions.values()) {
      this.stopTool(execution, 'drain');
      if (how === 'at once' && execution.key !== undefined) this.parts.supervisor.kill(execution.key);
    }
  }

  /** This life is over: tools are stopped, nothing is written. */
  abandon(): void {
    this.mode = 'abandoned';
    this.parts.holder.stopRetrying();
    for (const execution of this.executions.values()) this.stopTool(execution, 'lost');
  }

  /** Resolves when nothing is executing, after `withinMs`, or when `force` aborts: whether nothing is. */
  async idle(withinMs: number, force?: AbortSignal): Promise<boolean> {
    const { timing } = this.parts.platform;
    // No AbortSignal.any of a timeout: Node holds its parts weakly, and a timeout that was collected never comes.
    const untilMs = timing.monotonicMs() + withinMs;
    while (this.executions.size > 0 && timing.monotonicMs() < untilMs && !force?.aborted) await timing.delay(20, force);
    return this.executions.size === 0;
  }

  /** Makes memory and database agree again, after an answer may have been lost. */
  async reconcile(): Promise<void> {
    const before = new Set(this.executions.keys());
    const held = new Map((await this.parts.holder.holdings()).map((holding) => [holding.runId, holding]));
    for (const holding of held.values()) {
      if (!before.has(holding.runId) && !this.executions.has(holding.runId)) this.disown(holding);
    }
    for (const execution of this.executions.values()) {
      const { runId, fence } = execution.run;
      if (!before.has(runId) || execution.ending || execution.key === undefined) continue;
      if (held.get(runId)?.fence !== fence) this.stopTool(execution, 'lost');
    }
  }

  /** Not waited for: with the database away it would hold up everything that waits for this comparison. */
  private disown(holding: Holding): void {
    if (this.disowned.has(holding.runId)) return;
    this.disowned.add(holding.runId);
    this.parts.platform.log.warn(
      { code: 'run_unknown', run: encodeId('run', holding.runId), state: holding.state },
      'the database names us as holder of a run we know nothing of; giving it up',
    );
    const giving =
      holding.state === 'claimed'
        ? this.parts.holder.release([holding])
        : this.parts.holder
            .finish(holding, without(holding.kind === 'noop' ? NOOP_OUTCOME : UNKNOWN_OUTCOME))
            .then(() => undefined);
    void giving.catch(() => undefined).finally(() => this.disowned.delete(holding.runId));
  }

  private async execute(execution: Execution): Promise<void> {
    const { run } = execution;
    const { config } = this.parts.platform;
    const work = workOf(run, { path: config.toolPath, defaultTimeoutMs: config.runTimeoutMs });
    if (run.started) {
      this.parts.metrics.countStarted(run.queue, run.waitedMs);
      return this.end(execution, without(NOOP_OUTCOME));
    }
    if (work.type === 'unfit') return this.end(execution, without(unfit(work.detail)));
    if (!(await mayStart(run, { ...this.parts, mode: () => this.mode }))) return;
    if (this.isStopping) return this.end(execution, without(STOPPED_UNSTARTED));
    if (work.type === 'nothing') return this.end(execution, without(NOOP_OUTCOME));
    await this.end(execution, await this.runTool(execution, work));
  }

  private runTool(execution: Execution, work: Extract<Work, { type: 'tool' }>): Promise<RunEnd> {
    const { run } = execution;
    this.keys += 1;
    const key = this.keys;
    execution.key = key;
    const capture = new Capture(run, {
      ...this.parts,
      grantCredit: (bytes) => this.parts.supervisor.grantCredit(key, bytes),
      onLost: () => this.stopTool(execution, 'lost'),
      isAbandoned: () => this.mode === 'abandoned',
    });
    return new Promise((resolve, reject) => {
      const settle = (outcome: Outcome) => {
        capture.drained().then((written) => resolve({ outcome, ...written }), reject);
      };
      this.parts.supervisor.launch(
        {
          key,
          incarnation: this.parts.incarnation,
          runId: encodeId('run', run.runId),
          fence: run.fence,
          plan: work.plan,
        },
        {
          onStarted: () => undefined,
          onOutput: (chunk) => capture.take(chunk),
          onUnread: (unread) => capture.takeUnread(unread),
          onEnded: (end) => settle(outcomeOf(end, work.successCodes)),
          onFailed: (failure) => settle(outcomeOfFailure(failure)),
          onRefused: (reason) => settle(outcomeOfRefusal(reason, execution.stop)),
        },
      );
      // A stop that came between the start and this moment found no tool; now there is one.
      if (this.mode === 'abandoned') this.stopTool(execution, 'lost');
    });
  }

  private async end(execution: Execution, end: RunEnd): Promise<void> {
    execution.ending = true;
    const { runId, fence } = execution.run;
    const about = () => ({ run: encodeId('run', runId), fence, state: end.outcome.state });
    if (this.mode === 'abandoned') {
      this.parts.platform.log.warn(
        { code: 'run_end_withheld', ...about() },
        "this life is over, so the run's end was not written; a janitor settles the run",
      );
      return;
    }
    if (await this.parts.holder.finish(execution.run, end)) return;
    this.parts.metrics.work.countLostRace('finish');
    this.parts.platform.log.warn(
      { code: 'run_end_refused', ...about() },
      'the run was no longer ours when it ended; nothing was written',
    );
  }

  private stopTool(execution: Execution | undefined, cause: StopCause): void {
    if (execution?.key === undefined || execution.ending) return;
    execution.stop ??= cause;
    this.parts.supervisor.stop(execution.key, cause);
  }
}
