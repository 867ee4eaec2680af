/**
 * Statements that make or end hundreds of runs go out one at a time from this process: what callers ask for one by one
 * keeps a connection, and waits for no more than one of them at the locks that all writers share.
 */
import { Problem } from '../kernel/problems.js';
import { isTransient } from '../platform/db/db.js';
import { Overloaded, Permits } from '../platform/db/permits.js';
import type { Timing } from '../platform/time.js';

const MAX_WAITING = 200;
const MAX_WAIT_MS = 10_000;
const MAX_WAITING_BYTES = 48 * 1024 * 1024;
/** As for what callers ask for one by one. */
const RETRY_FOR_MS = 8_000;

export class Turns {
  private readonly permits = new Permits({ size: 1, maxWaiting: MAX_WAITING, maxWaitMs: MAX_WAIT_MS });
  private waitingBytes = 0;

  constructor(private readonly timing: Timing) {}

  /**
   * Does `work` when it is its turn, and again after a transient error: it must be safe to be done twice. `bytes` is
   * what it weighs while it waits. Rejects with `unavailable` if that is too much, or took too long.
   */
  async take<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    if (!this.permits.tryTake()) await this.wait(bytes);
    try {
      return await this.persist(work);
    } finally {
      this.permits.give();
    }
  }

  /** Does `work` at once, and again after a transient error: what was written already is not answered as if it were not. */
  async persist<T>(work: () => Promise<T>): Promise<T> {
    const { timing } = this;
    const begun = timing.monotonicMs();
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await work();
      } catch (error) {
        if (!isTransient(error) || timing.monotonicMs() - begun > RETRY_FOR_MS) throw error;
        await timing.delay(Math.min(25 * 2 ** attempt, 1_000) * (0.5 + timing.random() / 2));
      }
    }
  }

  private async wait(bytes: number): Promise<void> {
    if (this.waitingBytes + bytes > MAX_WAITING_BYTES) {
      throw crowded(new Overloaded(`${this.waitingBytes} bytes of large requests wait already`));
    }
    this.waitingBytes += bytes;
    try {
      await this.permits.wait().catch((error: unknown) => Promise.reject(crowded(error)));
    } finally {
      this.waitingBytes -= bytes;
    }
  }
}

/** Not the database's fault: it is said in words of its own. */
function crowded(cause: unknown): Problem {
  const detail = 'other large requests are being carried out, and nothing of this was done: send it again';
  return new Problem('unavailable', detail, { retryAfterSeconds: 1, cause });
}
