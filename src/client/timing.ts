/** Time and chance as a port. Built of what every JavaScript runtime has: the client runs in a browser too. */

export interface Timing {
  /** A monotonic clock in milliseconds; only ever compared with itself. */
  monotonicMs(): number;
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  delay(ms: number, signal?: AbortSignal): Promise<void>;
  /** A number from 0 up to, but without, 1. */
  random(): number;
}

export const realTiming: Timing = Object.freeze({
  monotonicMs: () => performance.now(),
  delay: (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal?.addEventListener('abort', done, { once: true });
      if (signal?.aborted) done();
    }),
  random: () => Math.random(),
});
