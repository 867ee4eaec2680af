/**
 * The keeper's decisions, free of clocks and I/O. Time that somebody else could have lost (a stopped process, a frozen
 * machine) is counted in ticks of the one who judges, never in elapsed time: who was stopped too, counted nothing.
 */

export const TICK_MS = 1_000;
/** Ticks of the main thread that an extension may stay unacknowledged. */
export const SILENT_TICKS = 10;

const LONGEST_STATEMENT_MS = 5_000;
const FIRST_BACKOFF_MS = 250;
const LONGEST_BACKOFF_MS = 1_000;
const NEXT_TRY_MS = 1_000;

/** Bound of one statement, and of one connect with its settings. */
export function statementLimitMs(renewMs: number): number {
  return Math.min(renewMs, LONGEST_STATEMENT_MS);
}

/** Pause before the next try, `failures` (≥ 1) tries having failed in a row: 250, 500, 1000, 1000 … ms. */
export function backoffMs(failures: number): number {
  return Math.min(FIRST_BACKOFF_MS * 2 ** Math.min(failures - 1, 10), LONGEST_BACKOFF_MS);
}

/**
 * Pause until the next renewal is sent. Counted from when the last one was sent, and a twentieth early, so that the
 * lease moves at least every `renewMs` although timers fire late and a round trip takes its time.
 */
export function untilNextRenewalMs(lastSentAtMs: number, nowMs: number, renewMs: number): number {
  return Math.max(0, lastSentAtMs + renewMs * 0.95 - nowMs);
}

/**
 * Whether so long a time without a renewal of ours, from the last that got through to `nowMs`, can have cost others
 * theirs. In a shorter one (a restart of the database, sessions that were ended) an owner misses one at most, and his
 * lease holds for several.
 */
export function isOutage(lastSentAtMs: number | undefined, nowMs: number, renewMs: number): boolean {
  return lastSentAtMs === undefined || nowMs - lastSentAtMs > 1.5 * renewMs;
}

/**
 * Renewals of our own after an outage by which everybody else who is alive has renewed too. A keeper can be as
 * late as one try that began a moment before the database came back and goes unanswered, the pause behind it, and the
 * second that its next try may take.
 */
export function renewalsUntilOthersRenewed(renewMs: number): number {
  const latestMs = statementLimitMs(renewMs) + LONGEST_BACKOFF_MS + NEXT_TRY_MS;
  return 1 + Math.ceil(latestMs / untilNextRenewalMs(0, 0, renewMs));
}

/** How the main thread's counter looked at the keeper's last ticks. */
export interface Standstill {
  readonly counter: bigint;
  readonly ticks: number;
}

/** One tick of the keeper: how many in a row have seen the same value of the main thread's counter. */
export function standstillAfter(last: Standstill, counter: bigint): Standstill {
  return counter === last.counter ? { counter, ticks: last.ticks + 1 } : { counter, ticks: 0 };
}

export function isStalled(standstill: Standstill, stallLimitMs: number, tickMs: number): boolean {
  return standstill.ticks >= Math.max(2, Math.ceil(stallLimitMs / tickMs));
}

/** How long the deadline needs to stop the tools, the last extension having been sent at `lastSentAtMs`. */
export function untilToolsStoppedMs(
  lastSentAtMs: number | undefined,
  nowMs: number,
  settings: { readonly toolDeadlineMs: number; readonly graceMs: number },
): number {
  if (lastSentAtMs === undefined) return 0;
  return Math.max(0, lastSentAtMs + settings.toolDeadlineMs + settings.graceMs - nowMs);
}

/** Extensions that aren't acknowledged, oldest first, each with the ticks since it was first seen. */
export type Unacknowledged = readonly { readonly seq: number; readonly ticks: number }[];

/** One tick of the main thread. Acknowledging an extension acknowledges all before it. */
export function unacknowledgedAfter(last: Unacknowledged, sentSeq: number, acknowledgedSeq: number): Unacknowledged {
  const waiting = last.filter(({ seq }) => seq > acknowledgedSeq).map(({ seq, ticks }) => ({ seq, ticks: ticks + 1 }));
  const newest = last.at(-1)?.seq ?? 0;
  return sentSeq > Math.max(newest, acknowledgedSeq) ? [...waiting, { seq: sentSeq, ticks: 0 }] : waiting;
}

export function isSilent(unacknowledged: Unacknowledged): boolean {
  return (unacknowledged[0]?.ticks ?? 0) >= SILENT_TICKS;
}
