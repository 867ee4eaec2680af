/**
 * Group commit. Items that arrive while a flush is in flight go out together in the next one, and so do those that are
 * pushed in one breath; a lone item goes out at once, so batching costs no latency. A transient error sends the same flush again (ids and fences were chosen before
 * the first try, so that is safe), in halves when it took too long; any other error splits the flush until the guilty
 * item stands alone: only its caller gets the error.
 */
import type { Timing } from '../time.js';
import { isTimeout, isTransient } from './db.js';
import { Overloaded } from './permits.js';

/** Bounds on what the items of a lane weigh, in bytes, roughly. */
export interface LaneLoad<Item> {
  readonly bytesOf: (item: Item) => number;
  /** A flush is as long as fits in here, but never empty. */
  readonly maxFlushBytes: number;
  /** What would make more than this wait is refused with `Overloaded`. */
  readonly maxWaitingItems: number;
  readonly maxWaitingBytes: number;
}

export interface LaneOptions<Item, Result> {
  /** Carries out all items in one statement; answers in the order of the items. */
  readonly flush: (items: readonly Item[]) => Promise<readonly Result[]>;
  /** At most this many items in one flush. */
  readonly maxItems: number;
  /** From the beginning of a flush to that of the next, unless as many wait as one may hold; none unless said otherwise. */
  readonly paceMs?: number;
  /** At most this many flushes at a time; one unless said otherwise. */
  readonly maxFlushes?: number;
  /** For what callers from outside may fill; without it only the number of items in a flush is bounded. */
  readonly load?: LaneLoad<Item>;
  /** How long a flush is tried again after transient errors; `Infinity` for what must be written in the end. */
  readonly retryForMs: number;
  readonly timing: Timing;
  readonly onRetry?: (error: unknown, attempt: number) => void;
  readonly onFlush?: (size: number, tookMs: number) => void;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly bytes: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

export class Lane<Item, Result> {
  private queue: Waiting<Item, Result>[] = [];
  private queuedBytes = 0;
  private flushes = 0;
  private stopped = false;
  private begunAtMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly options: LaneOptions<Item, Result>) {}

  /** Resolves with this item's own result once its flush has committed. Rejects with `Overloaded` if it is too much. */
  push(item: Item): Promise<Result> {
    const { load } = this.options;
    const bytes = load?.bytesOf(item) ?? 0;
    const isFull =
      load && (this.queue.length >= load.maxWaitingItems || this.queuedBytes + bytes > load.maxWaitingBytes);
    if (isFull) return Promise.reject(new Overloaded(`${this.queue.length} writes wait already`));
    return new Promise((resolve, reject) => {
      this.queue.push({ item, bytes, resolve, reject });
      this.queuedBytes += bytes;
      if (this.flushes < (this.options.maxFlushes ?? 1)) void this.drain();
    });
  }

  /** No flush is tried again after this; what is waiting gets the last error. */
  stopRetrying(): void {
    this.stopped = true;
  }

  private async drain(): Promise<void> {
    const { paceMs = 0, maxItems, timing } = this.options;
    this.flushes += 1;
    do {
      // What is pushed in the same breath goes along: the ends of runs that started together come one after another.
      await null;
      const restMs = this.begunAtMs + paceMs - timing.monotonicMs();
      if (restMs > 0 && this.queue.length < maxItems) await timing.delay(restMs);
      this.begunAtMs = timing.monotonicMs();
      const batch = this.next();
      if (batch.length > 0) await this.carryOut(batch, this.begunAtMs);
    } while (this.queue.length > 0);
    this.flushes -= 1;
  }

  /** The longest head of the queue that one flush may take. */
  private next(): Waiting<Item, Result>[] {
    const { maxItems, load } = this.options;
    const maxBytes = load?.maxFlushBytes ?? Number.POSITIVE_INFINITY;
    let count = 0;
    let bytes = 0;
    for (const waiting of this.queue) {
      if (count === maxItems || (count > 0 && bytes + waiting.bytes > maxBytes)) break;
      count += 1;
      bytes += waiting.bytes;
    }
    this.queuedBytes -= bytes;
    return this.queue.splice(0, count);
  }

  /** `begun` is when these items were first sent, alone or with others: the time for trying counts from there. */
  private async carryOut(batch: readonly Waiting<Item, Result>[], begun: number): Promise<void> {
    const { timing } = this.options;
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
        const isTried = !this.stopped && isTransient(error) && spent < this.options.retryForMs;
        if (isTried) this.options.onRetry?.(error, attempt);
        if (isTried && (batch.length === 1 || !isTimeout(error))) {
          await timing.delay(Math.min(25 * 2 ** attempt, 1_000) * (0.5 + timing.random() / 2));
          continue;
        }
        if (batch.length === 1 || (isTransient(error) && !isTried)) {
          for (const waiting of batch) waiting.reject(error);
          return;
        }
        const half = Math.ceil(batch.length / 2);
        await this.carryOut(batch.slice(0, half), begun);
        await this.carryOut(batch.slice(half), begun);
        return;
      }
    }
  }
}
