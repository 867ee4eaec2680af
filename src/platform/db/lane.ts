/**
 * Group commit. Items that arrive while a flush is in flight go out together in the next one; a lone item goes out at
 * once, so batching costs no latency. A transient error sends the same flush again (ids and fences were chosen before
 * the first try, so that is safe); any other error splits the flush until the guilty item stands alone: only its
 * caller gets the error.
 */
import type { Timing } from '../time.js';
import { isTransient } from './db.js';

export interface LaneOptions<Item, Result> {
  /** Carries out all items in one statement; answers in the order of the items. */
  readonly flush: (items: readonly Item[]) => Promise<readonly Result[]>;
  /** At most this many items in one flush. */
  readonly maxItems: number;
  /** How long a flush is tried again after transient errors; `Infinity` for what must be written in the end. */
  readonly retryForMs: number;
  readonly timing: Timing;
  readonly onRetry?: (error: unknown, attempt: number) => void;
  readonly onFlush?: (size: number, tookMs: number) => void;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

export class Lane<Item, Result> {
  private queue: Waiting<Item, Result>[] = [];
  private flushing = false;
  private stopped = false;

  constructor(private readonly options: LaneOptions<Item, Result>) {}

  /** Resolves with this item's own result once its flush has committed. */
  push(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.queue.push({ item, resolve, reject });
      if (!this.flushing) void this.drain();
    });
  }

  /** No flush is tried again after this; what is waiting gets the last error. */
  stopRetrying(): void {
    this.stopped = true;
  }

  private async drain(): Promise<void> {
    this.flushing = true;
    while (this.queue.length > 0) {
      await this.carryOut(this.queue.splice(0, this.options.maxItems));
    }
    this.flushing = false;
  }

  private async carryOut(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    const { timing } = this.options;
    const begun = timing.monotonicMs();
    for (let attempt = 1; ; attempt += 1) {
      try {
        const results = await this.options.flush(batch.map((waiting) => waiting.item));
        this.options.onFlush?.(batch.length, timing.monotonicMs() - begun);
        batch.forEach((waiting, i) => {
          waiting.resolve(results[i] as Result);
        });
        return;
      } catch (error) {
        const spent = timing.monotonicMs() - begun;
        if (!this.stopped && isTransient(error) && spent < this.options.retryForMs) {
          this.options.onRetry?.(error, attempt);
          await timing.delay(Math.min(25 * 2 ** attempt, 1_000) * (0.5 + timing.random() / 2));
          continue;
        }
        if (batch.length === 1 || isTransient(error)) {
          for (const waiting of batch) waiting.reject(error);
          return;
        }
        const half = Math.ceil(batch.length / 2);
        await this.carryOut(batch.slice(0, half));
        await this.carryOut(batch.slice(half));
        return;
      }
    }
  }
}
