/**
 * When must the tools stop? Pure: clock readings and extensions in, a judgement out.
 *
 * The deadline is `sentAt + deadlineMs` on the monotonic clock, which stands still while a machine is suspended or
 * paused. Time that it missed shows as a gap: the wall clock (or the uptime, which goes on in a suspend) moved further
 * than the monotonic clock between two readings. What a gap means:
 *
 *   below 100 ms      reading noise and slewing (at most 25 ms a tick): nothing
 *   100 ms to 2 s     a small step of the clock or a short pause: counted as time that passed
 *   above 2 s         a resumed machine, or a step nobody can tell from one: the deadline, for every extension sent before
 *   backwards         no time can be missing because of it: nothing
 *
 * Invariant: a gap only ever makes the deadline come sooner, and an extension sent after the gap is untouched by it.
 */

const GAP_NOISE_MS = 100;
const JUMP_LIMIT_MS = 2_000;

/** The three clocks at one instant. `uptimeMs` is null where the system has none that goes on in a suspend. */
export interface ClockReading {
  readonly monotonicMs: number;
  readonly wallMs: number;
  readonly uptimeMs: number | null;
}

interface Gap {
  readonly foundAtMs: number;
  readonly lostMs: number;
}

/** What is known of the lease of one incarnation. */
export interface LeaseState {
  readonly last: ClockReading;
  /** Of the newest extension; null before the first. */
  readonly sentAtMs: number | null;
  /** Found since that extension was sent. */
  readonly gaps: readonly Gap[];
}

export interface Judgement {
  readonly isExpired: boolean;
  /** How long ago the deadline was; 0 when it is not known to have passed by time alone. */
  readonly overdueMs: number;
}

export function newLease(reading: ClockReading): LeaseState {
  return { last: reading, sentAtMs: null, gaps: [] };
}

/** Takes in a reading of the clocks. */
export function observe(state: LeaseState, reading: ClockReading, deadlineMs: number): LeaseState {
  const lostMs = missingMs(state.last, reading);
  // After the end nothing more needs remembering; this bounds the list at deadline / noise entries.
  if (lostMs < GAP_NOISE_MS || judge(state, state.last.monotonicMs, deadlineMs).isExpired) {
    return { ...state, last: reading };
  }
  return { ...state, last: reading, gaps: [...state.gaps, { foundAtMs: reading.monotonicMs, lostMs }] };
}

/** Takes in an extension: forward only, and never beyond the present. */
export function extend(state: LeaseState, sentAtMs: number): LeaseState {
  const sentAt = Math.min(sentAtMs, state.last.monotonicMs);
  if (state.sentAtMs !== null && sentAt <= state.sentAtMs) return state;
  return { ...state, sentAtMs: sentAt, gaps: state.gaps.filter((gap) => gap.foundAtMs > sentAt) };
}

export function judge(state: LeaseState, nowMs: number, deadlineMs: number): Judgement {
  if (state.sentAtMs === null) return { isExpired: true, overdueMs: 0 };
  const lostMs = state.gaps.reduce((sum, gap) => sum + gap.lostMs, 0);
  const overdueMs = nowMs - state.sentAtMs + lostMs - deadlineMs;
  const hasJumped = state.gaps.some((gap) => gap.lostMs > JUMP_LIMIT_MS);
  return { isExpired: hasJumped || overdueMs >= 0, overdueMs: Math.max(0, overdueMs) };
}

function missingMs(before: ClockReading, after: ClockReading): number {
  const passedMs = after.monotonicMs - before.monotonicMs;
  const wallMs = after.wallMs - before.wallMs;
  const uptimeMs = after.uptimeMs === null || before.uptimeMs === null ? 0 : after.uptimeMs - before.uptimeMs;
  return Math.max(wallMs, uptimeMs) - passedMs;
}
