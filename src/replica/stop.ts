/**
 * Signals of a server. The first SIGINT, SIGTERM or SIGHUP stops it in order, a second one at once. Signals less than a second
 * apart count as one: npm forwards the SIGINT that the terminal has sent to everybody already.
 */
const SAME_SIGNAL_MS = 1_000;

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
