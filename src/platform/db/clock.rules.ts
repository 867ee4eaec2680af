/** What can be said of the database's clock from here: it is only ever seen through a round trip. Pure. */

/**
 * One look at the database's clock. It stood at `databaseAtMs` (ms since 1970) at some moment between `sentAtMs` and
 * `receivedAtMs`, both in ms on the machine's monotonic clock (the one of `process.hrtime`).
 */
export interface ClockSample {
  readonly sentAtMs: number;
  readonly receivedAtMs: number;
  readonly databaseAtMs: number;
}

/**
 * By how many ms the database's clock moved against the monotonic one between two samples: at least and at most, for a
 * sample is only as sharp as its round trip. Who may only be late (a janitor) goes by the most.
 */
export function clockShiftMs(earlier: ClockSample, later: ClockSample): { least: number; most: number } {
  const before = { low: earlier.databaseAtMs - earlier.receivedAtMs, high: earlier.databaseAtMs - earlier.sentAtMs };
  const after = { low: later.databaseAtMs - later.receivedAtMs, high: later.databaseAtMs - later.sentAtMs };
  return {
    least: Math.max(0, after.low - before.high, before.low - after.high),
    most: Math.max(after.high - before.low, before.high - after.low),
  };
}
