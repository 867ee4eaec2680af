/**
 * One run's request, from the moment it was handed to the requester to its end. Modes:
 *
 *   running   the request is under way.           Left when the requester says done, or a stop comes.
 *   stopping  the requester was told to abort.    Left when it says so; one that does not answer is killed.
 *   ended     reported, exactly once.
 *
 * Invariants: the first cause of an end stays; the end is told only when nothing of the request is under way.
 */
import type { EndCause, HttpPlan, ToolEnd, Verdict } from './plan.js';
import type { Start } from './protocol.js';
import type { RequesterProcess } from './requester.js';

/** To close a socket takes no grace: a requester that has not done it by then hangs. */
const ABORT_LIMIT_MS = 1_000;
/** A stop without grace: less would kill the requests of other runs for a slow turn of its loop. */
const SHORTEST_ABORT_MS = 250;
/** Node fires longer timers at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const LOST: Verdict = {
  ok: false,
  code: 'internal',
  detail: 'the process that makes requests ended before the answer was complete; the request may have been carried out',
};

export class HttpRun {
  readonly pgid: number;
  readonly #key: number;
  readonly #requester: RequesterProcess;
  readonly #onEnded: (end: ToolEnd) => void;
  #cause: EndCause | null = null;
  #isEnded = false;
  #killAtMs = Number.POSITIVE_INFINITY;
  #killTimer: NodeJS.Timeout | undefined;
  #timeoutTimer: NodeJS.Timeout | undefined;

  /** Hands the request over at once. */
  constructor(start: Start, plan: HttpPlan, requester: RequesterProcess, onEnded: (end: ToolEnd) => void) {
    this.pgid = requester.pgid;
    this.#key = start.key;
    this.#requester = requester;
    this.#onEnded = onEnded;
    const { key, runId, fence } = start;
    requester.request(
      { type: 'request', key, runId, fence, http: plan.http },
      {
        onDone: (verdict) => this.#end(verdict),
        onAborted: () => this.#end(null),
        onLost: () => this.#end(LOST),
      },
    );
    this.#armTimeout(performance.now() + plan.timeoutMs);
  }

  /** Aborts; `graceMs` shortens the time in which the requester must obey, it does not lengthen the request's. */
  stop(cause: EndCause, graceMs: number): void {
    if (this.#isEnded) return;
    if (this.#cause === null) this.#requester.abort(this.#key);
    this.#cause ??= cause;
    this.#killIn(Math.min(Math.max(graceMs, SHORTEST_ABORT_MS), ABORT_LIMIT_MS));
  }

  /** The replica has room for this many more bytes. */
  grant(bytes: number): void {
    this.#requester.grant(this.#key, bytes);
  }

  /** Nobody wants the output any more; a stop comes with that. */
  discardOutput(): void {
    this.#requester.resumeOutput();
  }

  resumeOutput(): void {
    this.#requester.resumeOutput();
  }

  #armTimeout(atMs: number): void {
    const leftMs = atMs - performance.now();
    this.#timeoutTimer = setTimeout(
      () => (leftMs > LONGEST_TIMER_MS ? this.#armTimeout(atMs) : this.stop('timeout', ABORT_LIMIT_MS)),
      Math.min(Math.max(leftMs, 0), LONGEST_TIMER_MS),
    );
  }

  #killIn(ms: number): void {
    const atMs = performance.now() + ms;
    if (atMs >= this.#killAtMs) return;
    this.#killAtMs = atMs;
    clearTimeout(this.#killTimer);
    this.#killTimer = setTimeout(() => this.#requester.kill(), ms);
  }

  #end(verdict: Verdict | null): void {
    this.#isEnded = true;
    clearTimeout(this.#killTimer);
    clearTimeout(this.#timeoutTimer);
    const facts = { exitCode: null, signal: null, leftovers: false, killedAfterMs: null } as const;
    if (this.#cause === null) this.#onEnded({ ...facts, cause: 'self', verdict: verdict ?? LOST });
    else this.#onEnded({ ...facts, cause: this.#cause, verdict: null });
  }
}
