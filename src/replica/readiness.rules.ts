/**
 * Whether the database can be used, judged from what was lately seen of it. Slow is not away: as long as anything that
 * this process asked is answered, a look may wait. Gone is seen twice before it is believed, so that a single
 * connection that was ended takes no replica out of service. Pure.
 */

/** One look is begun this often, or as soon as the one before was answered when that took longer. */
export const LOOK_EVERY_MS = 1_200;
/** After a look that failed. */
export const LOOK_AGAIN_MS = 250;
export const TICK_MS = 250;
/** So many ticks without any answer are silence. With the tick that is under way: found within 2.5 s of the last answer. */
const SILENT_TICKS = 9;
/** What speaks against the database must be seen so often in a row. */
const SEEN_IN_A_ROW = 2;

export type Sign =
  /** A look was answered: a statement that writes would be carried out, or it wouldn't. */
  | { readonly sign: 'answered'; readonly writable: boolean }
  /** A look failed at once: refused, reset, turned away for good. */
  | { readonly sign: 'failed' }
  /** Time passed. Counted, not measured: a process that stood still must first read what has come meanwhile. */
  | { readonly sign: 'tick'; readonly othersAnswered: boolean };

export type Verdict = 'not reached yet' | 'ok' | 'unreachable' | 'no answer' | 'read-only';

export interface DatabaseView {
  readonly verdict: Verdict;
  readonly failures: number;
  readonly readOnlyLooks: number;
  /** Ticks since anything was answered. */
  readonly silentTicks: number;
}

export const UNSEEN: DatabaseView = Object.freeze({
  verdict: 'not reached yet',
  failures: 0,
  readOnlyLooks: 0,
  silentTicks: 0,
});

export function judge(view: DatabaseView, sign: Sign): DatabaseView {
  switch (sign.sign) {
    case 'answered': {
      if (sign.writable) return { ...UNSEEN, verdict: 'ok' };
      const readOnlyLooks = view.readOnlyLooks + 1;
      return { ...UNSEEN, readOnlyLooks, verdict: readOnlyLooks < SEEN_IN_A_ROW ? view.verdict : 'read-only' };
    }
    case 'failed': {
      const failures = view.failures + 1;
      return { ...view, failures, verdict: failures < SEEN_IN_A_ROW ? view.verdict : 'unreachable' };
    }
    case 'tick': {
      if (sign.othersAnswered) return { ...view, failures: 0, silentTicks: 0 };
      const silentTicks = view.silentTicks + 1;
      const isSilent = silentTicks >= SILENT_TICKS && view.verdict !== 'unreachable';
      return { ...view, silentTicks, verdict: isSilent ? 'no answer' : view.verdict };
    }
  }
}

export interface Checks {
  readonly database: Verdict;
  readonly migrations: 'ok' | 'pending' | 'unknown';
  readonly process: 'ok' | 'starting' | 'stopping';
}

/** Whether this process should get requests: nothing speaks against it. */
export function isReady(checks: Checks): boolean {
  return Object.values(checks).every((check) => check === 'ok');
}
