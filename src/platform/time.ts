/** Time and chance as a port, so that tests and simulations can step them. Instants that matter are the database's. */
import { setTimeout as delay } from 'node:timers/promises';

export interface Timing {
  /** The machine's monotonic clock in milliseconds; only ever compared with itself. */
  monotonicMs(): number;
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  delay(ms: number, signal?: AbortSignal): Promise<void>;
  /** A number from 0 up to, but without, 1. */
  random(): number;
}

export const systemTiming: Timing = Object.freeze({
  monotonicMs: () => performance.now(),
  delay: (ms: number, signal?: AbortSignal) => delay(ms, undefined, { signal }).catch(() => undefined),
  random: () => Math.random(),
});
