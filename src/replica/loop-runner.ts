/** Runs a loop: jitter, wake-ups, back-off after faults, metrics, and an orderly stop. A fault never ends a loop. */
import { isTransient } from '../platform/db/db.js';
import type { Logger } from '../platform/log/logger.js';
import type { Loop } from '../platform/loop.js';
import type { Timing } from '../platform/time.js';
import type { LoopMetrics } from './loop.metrics.js';

const LONGEST_BACKOFF_MS = 5_000;
const JITTER = 0.3;
/** Without a reason of ours each abort would make an error of its own, stack and all. */
const WOKEN = 'woken';

export interface RunnerOptions {
  /** Time between idle steps, asked before each wait; up to `jitter` of it is added, so that replicas drift apart. */
  readonly intervalMs: () => number;
  /** 0.3 unless told otherwise. */
  readonly jitter?: number;
  readonly timing: Timing;
  readonly log: Logger;
  readonly metrics: LoopMetrics;
}

export class LoopRunner {
  private readonly stopping = new AbortController();
  private waiting = new AbortController();
  private woken = false;
  private failures = 0;
  private done: Promise<void> = Promise.resolve();

  constructor(
    private readonly loop: Loop,
    private readonly options: RunnerOptions,
  ) {}

  start(): void {
    this.options.metrics.begin(this.loop.name);
    this.done = this.run();
  }

  /** The next step begins now, or right after the one that is running. */
  wake(): void {
    this.woken = true;
    this.waiting.abort(WOKEN);
  }

  /** Resolves when the step that is running has ended. */
  async stop(): Promise<void> {
    this.stopping.abort();
    this.waiting.abort();
    await this.done;
  }

  private async run(): Promise<void> {
    const { timing, intervalMs, jitter = JITTER } = this.options;
    while (!this.stopping.signal.aborted) {
      this.woken = false;
      const result = await this.step();
      if (result === 'more' || this.stopping.signal.aborted) continue;
      if (this.woken && result === 'idle') continue;
      this.waiting = new AbortController();
      const pause = result === 'failed' ? Math.min(100 * 2 ** this.failures, LONGEST_BACKOFF_MS) : intervalMs();
      // After a fault a wake-up doesn't cut the pause short: it would turn an outage into a storm.
      const signal = result === 'failed' ? this.stopping.signal : this.waiting.signal;
      await timing.delay(pause * (1 + timing.random() * jitter), signal);
    }
  }

  private async step(): Promise<'idle' | 'more' | 'failed'> {
    const { log, metrics } = this.options;
    const { name } = this.loop;
    try {
      const result = await this.loop.step(this.stopping.signal);
      if (this.failures > 0) log.info({ code: 'loop_recovered', loop: name }, `${name}: works again`);
      this.failures = 0;
      metrics.count(name, result);
      return result;
    } catch (error) {
      this.failures += 1;
      metrics.count(name, 'failed');
      if (this.failures === 1) {
        const level = isTransient(error) ? 'warn' : 'error';
        log[level]({ code: 'loop_failed', loop: name, err: error }, `${name}: failed, trying again until it works`);
      }
      return 'failed';
    }
  }
}
