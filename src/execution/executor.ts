/**
 * One life's running work: each claimed run goes through start → tool → output → end, each in an execution of its own.
 *
 * Modes: `open` takes runs; `draining` takes none and lets tools end; `abandoned` (this life is over) stops every tool
 * and writes nothing any more, because what this life held is others' to settle.
 */
import { encodeId } from '../kernel/ids.js';
import type { Platform } from '../platform/platform.js';
import type { Holding } from '../runs/claim.sql.js';
import type { HolderService, RunEnd } from '../runs/holder.service.js';
import type { OutputChunk } from '../runs/output.sql.js';
import type { ClaimedRun, Outcome } from '../runs/run.js';
import type { RunMetrics } from '../runs/run.metrics.js';
import {
  CANCELED_UNSTARTED,
  NOOP_OUTCOME,
  outcomeOf,
  outcomeOfFailure,
  outcomeOfRefusal,
  UNKNOWN_OUTCOME,
  unfit,
} from './outcome.rules.js';
import { OutputWriter } from './output-writer.js';
import { type Work, workOf } from './plan.rules.js';
import type { StopCause } from './supervisor/plan.js';
import type { Supervisor } from './supervisor/supervisor.client.js';

interface Execution {
  readonly run: ClaimedRun;
  /** The supervisor's name for it, once a tool was asked for. */
  key: number | undefined;
  /** Its end is being written; it takes no more commands. */
  ending: boolean;
}

export class Executor {
  private readonly executions = new Map<string, Execution>();
  private mode: 'open' | 'draining' | 'abandoned' = 'open';
  private keys = 0;

  constructor(
    private readonly platform: Platform,
    private readonly holder: HolderService,
    private readonly supervisor: Supervisor,
    private readonly incarnation: string,
    private readonly metrics: RunMetrics,
    /** Called each time a slot became free. */
    private readonly onFree: () => void,
  ) {}

  /** Slots that nothing uses; 0 unless open. */
  get free(): number {
    return this.mode === 'open' ? Math.max(0, this.platform.config.slots - this.executions.size) : 0;
  }

  get size(): number {
    return this.executions.size;
  }

  /** Executes a run that was claimed just now. */
  accept(run: ClaimedRun): void {
    const execution: Execution = { run, key: undefined, ending: false };
    this.executions.set(run.runId, execution);
    void this.execute(execution)
      .catch((error: unknown) => {
        const level = this.mode === 'abandoned' ? 'info' : 'error';
        this.platform.log[level](
          { code: 'run_end_not_written', err: error, run: encodeId('run', run.runId) },
          "the run's end was not written; a janitor will settle it",
        );
      })
      .finally(() => {
        this.executions.delete(run.runId);
        this.onFree();
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
    for (const execution of this.executions.values()) {
      this.stopTool(execution, 'drain');
      if (how === 'at once' && execution.key !== undefined) this.supervisor.kill(execution.key);
    }
  }

  /** This life is over: tools are stopped, nothing is written. */
  abandon(): void {
    this.mode = 'abandoned';
    this.holder.stopRetrying();
    for (const execution of this.executions.values()) this.stopTool(execution, 'lost');
  }

  /** Resolves when nothing is executing, or when `signal` aborts. */
  async idle(signal: AbortSignal): Promise<boolean> {
    while (this.executions.size > 0 && !signal.aborted) await this.platform.timing.delay(20, signal);
    return this.executions.size === 0;
  }

  /** Makes memory and database agree again, after an answer may have been lost. */
  async reconcile(): Promise<void> {
    const before = new Set(this.executions.keys());
    const held = new Map((await this.holder.holdings()).map((holding) => [holding.runId, holding]));
    for (const holding of held.values()) {
      if (!before.has(holding.runId) && !this.executions.has(holding.runId)) await this.disown(holding);
    }
    for (const execution of this.executions.values()) {
      const { runId, fence } = execution.run;
      if (!before.has(runId) || execution.ending || execution.key === undefined) continue;
      if (held.get(runId)?.fence !== fence) this.stopTool(execution, 'lost');
    }
  }

  private async disown(holding: Holding): Promise<void> {
    this.platform.log.warn(
      { code: 'run_unknown', run: encodeId('run', holding.runId), state: holding.state },
      'the database names us as holder of a run we know nothing of; giving it up',
    );
    if (holding.state === 'claimed') await this.holder.release([holding]);
    else await this.holder.finish(holding, { outcome: UNKNOWN_OUTCOME, output: null, outputDigest: null });
  }

  private async execute(execution: Execution): Promise<void> {
    const { run } = execution;
    const { config } = this.platform;
    const work = workOf(run, { path: config.toolPath, defaultTimeoutMs: config.runTimeoutMs });
    if (work.type === 'unfit') return this.end(execution, without(unfit(work.detail)));
    if (!(await this.holder.start(run))) return this.giveUpUnstarted(execution);
    if (work.type === 'nothing') return this.end(execution, without(NOOP_OUTCOME));
    await this.end(execution, await this.runTool(execution, work));
  }

  /** The start was refused: canceled meanwhile, draining, or no longer ours. Each write finds out by its own guard. */
  private async giveUpUnstarted(execution: Execution): Promise<void> {
    const { run } = execution;
    if (await this.holder.finish(run, without(CANCELED_UNSTARTED))) {
      this.metrics.countEnded(CANCELED_UNSTARTED);
      return;
    }
    this.platform.log.info(
      { code: 'run_start_refused', run: encodeId('run', run.runId), fence: run.fence },
      'the run may not be started by this worker; giving it back if it is still ours',
    );
    await this.holder.release([run]);
  }

  private runTool(execution: Execution, work: Extract<Work, { type: 'tool' }>): Promise<RunEnd> {
    const { run } = execution;
    this.keys += 1;
    const key = this.keys;
    execution.key = key;
    const writer = new OutputWriter({
      store: (batch, chunk) => this.store(run, batch, chunk),
      grantCredit: (bytes) => this.supervisor.grantCredit(key, bytes),
      onLost: () => this.stopTool(execution, 'lost'),
    });
    return new Promise((resolve) => {
      const settle = async (outcome: Outcome) => {
        resolve({ outcome, output: null, outputDigest: await writer.drained() });
      };
      this.supervisor.launch(
        { key, incarnation: this.incarnation, runId: encodeId('run', run.runId), fence: run.fence, plan: work.plan },
        {
          onStarted: () => undefined,
          onOutput: ({ stream, at, bytes }) => writer.push(stream, new Date(at), bytes),
          onEnded: (end) => void settle(outcomeOf(end, work.successCodes)),
          onFailed: (failure) => void settle(outcomeOfFailure(failure)),
          onRefused: (reason) => void settle(outcomeOfRefusal(reason, this.mode === 'draining')),
        },
      );
      // A stop that came between the start and this moment found no tool; now there is one.
      if (this.mode === 'abandoned') this.stopTool(execution, 'lost');
    });
  }

  /** Stores a batch whatever it takes; the tool stands still meanwhile. False once the run is no longer ours. */
  private async store(run: ClaimedRun, batch: number, chunk: OutputChunk): Promise<boolean> {
    for (let attempt = 0; this.mode !== 'abandoned'; attempt += 1) {
      try {
        return await this.holder.appendOutput(run, batch, chunk);
      } catch (error) {
        if (attempt === 0) {
          this.platform.log.warn(
            { code: 'output_retried', err: error, run: encodeId('run', run.runId) },
            "output can't be stored now; trying on while the tool waits",
          );
        }
        await this.platform.timing.delay(Math.min(50 * 2 ** attempt, 1_000));
      }
    }
    return false;
  }

  private async end(execution: Execution, end: RunEnd): Promise<void> {
    execution.ending = true;
    if (this.mode === 'abandoned') return;
    if (await this.holder.finish(execution.run, end)) {
      this.metrics.countEnded(end.outcome);
      return;
    }
    const { runId, fence } = execution.run;
    this.platform.log.warn(
      { code: 'run_end_refused', run: encodeId('run', runId), fence, state: end.outcome.state },
      'the run was no longer ours when it ended; nothing was written',
    );
  }

  private stopTool(execution: Execution | undefined, cause: StopCause): void {
    if (execution?.key !== undefined && !execution.ending) this.supervisor.stop(execution.key, cause);
  }
}

function without(outcome: Outcome): RunEnd {
  return { outcome, output: null, outputDigest: null };
}
