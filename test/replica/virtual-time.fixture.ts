/** Time that passes only when everybody waits: hours of it in seconds, while what is waited for is real. */
import type { Timing } from '../../src/platform/time.js';

export class VirtualTime implements Timing {
  private nowMs = 0;
  private readonly sleepers = new Set<{ readonly atMs: number; readonly wake: () => void }>();
  private seed = 1;

  monotonicMs(): number {
    return this.nowMs;
  }

  delay(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const sleeper = {
        atMs: this.nowMs + ms,
        wake: () => {
          this.sleepers.delete(sleeper);
          resolve();
        },
      };
      if (signal?.aborted) return resolve();
      signal?.addEventListener('abort', sleeper.wake, { once: true });
      this.sleepers.add(sleeper);
    });
  }

  /** Evenly spread, and the same in every run (a full-period generator). */
  random(): number {
    this.seed = (this.seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return this.seed / 2 ** 31;
  }

  /** Lets time pass, from one waking to the next, each when `sleepers` wait again. */
  async pass(ms: number, sleepers: number): Promise<void> {
    const untilMs = this.nowMs + ms;
    for (;;) {
      while (this.sleepers.size < sleepers) await new Promise((resolve) => setImmediate(resolve));
      const next = [...this.sleepers].reduce((a, b) => (b.atMs < a.atMs ? b : a));
      if (next.atMs > untilMs) break;
      this.nowMs = next.atMs;
      next.wake();
    }
    this.nowMs = untilMs;
  }
}
