/**
 * When a request is sent again. Every request may be: reads and PUTs say what shall be, a cancel is idempotent, and what
 * makes something carries its Idempotency-Key. Pure.
 */

/** For a server that was there, or a balancer that is. */
const BUDGET_MS = 15_000;
/** For an address where nobody has answered yet: enough for a restart, short enough for a person who mistyped it. */
const UNREACHED_BUDGET_MS = 3_000;
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 3_000;

export interface Trouble {
  /** Failed tries so far, from 1. */
  readonly tries: number;
  /** Since the first of them was sent. */
  readonly elapsedMs: number;
  /** What the server asked for. */
  readonly retryAfterMs: number | undefined;
  /** Whether anything ever answered in this process. */
  readonly reached: boolean;
  /** For something that is worth a longer wait: instead of the usual time, once anything answered. */
  readonly patienceMs?: number | undefined;
}

/** Milliseconds to wait before the next try, or `undefined` to give up. `random` is from 0 up to 1. */
export function pauseBeforeRetry(trouble: Trouble, random: number): number | undefined {
  const leftMs = (trouble.reached ? (trouble.patienceMs ?? BUDGET_MS) : UNREACHED_BUDGET_MS) - trouble.elapsedMs;
  const pauseMs =
    trouble.retryAfterMs === undefined ? backoff(trouble.tries, random) : trouble.retryAfterMs + 200 * random;
  return pauseMs <= leftMs ? Math.round(pauseMs) : undefined;
}

/** Between half and the whole of a pause that doubles, so that many clients don't come back together. */
function backoff(tries: number, random: number): number {
  const longest = Math.min(FIRST_PAUSE_MS * 2 ** (tries - 1), LONGEST_PAUSE_MS);
  return longest * (0.5 + 0.5 * random);
}

/** Answers of a server or balancer that is only busy or away. */
export function isPassing(status: number): boolean {
  return status === 429 || status === 502 || status === 503 || status === 504;
}

/** `Retry-After` in milliseconds: seconds or a date; `undefined` when it is neither. */
export function retryAfter(header: string | null, nowMs: number): number | undefined {
  if (header === null) return undefined;
  if (/^\d{1,6}$/.test(header.trim())) return Number(header) * 1_000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}
