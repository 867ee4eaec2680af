/**
 * Signals of a server. The first SIGINT, SIGTERM or SIGHUP stops it in order, a second one at once. Signals less than a second
 * apart count as one: npm forwards the SIGINT that the terminal has sent to everybody already.
 */
import type { Traffic } from '../platform/http/traffic.js';
import { systemTiming } from '../platform/time.js';

const SAME_SIGNAL_MS = 1_000;
/** A balancer that asks `/readyz` each second has noticed by then, and sends nothing to a port that is closed. */
const NOTICED_AFTER_MS = 2_000;

export interface StopSignals {
  /** Aborts at the first signal; its reason is the signal's name. */
  readonly stop: AbortSignal;
  /** Aborts at the second. */
  readonly force: AbortSignal;
}

export function listenForStop(): StopSignals {
  const stop = new AbortController();
  const force = new AbortController();
  let firstAtMs: number | undefined;
  const onSignal = (signal: NodeJS.Signals) => {
    const now = performance.now();
    if (firstAtMs === undefined) {
      firstAtMs = now;
      stop.abort(signal);
    } else if (now - firstAtMs >= SAME_SIGNAL_MS) {
      force.abort(signal);
    }
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  // A terminal that was closed.
  process.on('SIGHUP', onSignal);
  return { stop: stop.signal, force: force.signal };
}

/** Resolves when the signal aborts. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Keeps the port open, for whom there may be a balancer, until that has seen that this process isn't ready. */
export async function untilNoticed(
  { stoppingSinceMs }: Traffic,
  hasBalancer: boolean,
  force: AbortSignal,
): Promise<void> {
  if (!hasBalancer || stoppingSinceMs === undefined) return;
  await systemTiming.delay(Math.max(1, stoppingSinceMs + NOTICED_AFTER_MS - performance.now()), force);
}
