/**
 * Whether the database can be used, judged from what was lately seen of it, and whether that is enough to go by. Slow is
 * not away: as long as anything that this process asked is answered, a look may wait. Gone is seen twice before it is
 * believed, so that a single connection that was ended takes no replica out of service. Pure.
 */

/** After a look that failed. */
export const LOOK_AGAIN_MS = 250;
export const TICK_MS = 250;
/** Looks are begun so far apart: 1.25 s. */
const LOOK_TICKS = 5;
/** … and so far while pulses say what a look would, except of the schema: 5 min. */
const SPARED_LOOK_TICKS = 1_200;
/** For so long a pulse (every 1.9 s at most) spares a look: 2.25 s. */
const VOUCHED_TICKS = 9;
/** Only where everything was answered quickly for so long: 10 s. Looks must come often to tell slow from silent. */
const EASY_TICKS = 40;
/** So many ticks without any answer are silence … */
const SILENT_TICKS = 9;
/** … when something was asked in so many of the last. Asked 1.9 s after the last answer, that is found within 2.75 s of it. */
const UNANSWERED_TICKS = 3;
/** What speaks against the database must be seen so often in a row. */
const SEEN_IN_A_ROW = 2;

export type Sign =
  /** A look was begun. */
  | { readonly sign: 'looking' }
  /** A look was answered: a statement that writes would be carried out, or it wouldn't. */
  | { readonly sign: 'answered'; readonly writable: boolean }
  /** A look failed at once: refused, reset, turned away for good. */
  | { readonly sign: 'failed' }
  /** A pulse was answered, over a connection that may be older than what is at the address now. */
  | { readonly sign: 'pulse'; readonly writable: boolean }
  /** Time passed. Counted, not measured: a process that stood still must first read what has come meanwhile. */
  | {
      readonly sign: 'tick';
      readonly othersAnswered: boolean;
      /** Something is being asked. */
      readonly isAsked: boolean;
      /** A connection ended that nobody closed. */
      readonly wasCut: boolean;
    };

export type Verdict = 'not reached yet' | 'ok' | 'unreachable' | 'no answer' | 'read-only';

export interface DatabaseView {
  readonly verdict: Verdict;
  readonly failures: number;
  readonly readOnlyLooks: number;
  /** Ticks since anything was answered. */
  readonly silentTicks: number;
  /** Of these the last, in which something was being asked. */
  readonly unansweredTicks: number;
  /** Ticks since something was left unanswered for longer than a tick. */
  readonly easyTicks: number;
  /** Ticks since a pulse said that the database takes writes. */
  readonly unvouchedTicks: number;
  /** Ticks since a look of our own was begun. */
  readonly unlookedTicks: number;
  /** Something has happened that only the answer to a look can explain. */
  readonly isDoubted: boolean;
}

export const UNSEEN: DatabaseView = Object.freeze({
  verdict: 'not reached yet',
  failures: 0,
  readOnlyLooks: 0,
  silentTicks: 0,
  unansweredTicks: 0,
  easyTicks: 0,
  unvouchedTicks: VOUCHED_TICKS,
  unlookedTicks: LOOK_TICKS,
  isDoubted: false,
});

export function judge(view: DatabaseView, sign: Sign): DatabaseView {
  switch (sign.sign) {
    case 'looking':
      return { ...view, unlookedTicks: 0, isDoubted: true };
    case 'answered': {
      const alive = { ...view, failures: 0, silentTicks: 0, unansweredTicks: 0, isDoubted: false };
      if (sign.writable) return { ...alive, readOnlyLooks: 0, verdict: 'ok' };
      const readOnlyLooks = view.readOnlyLooks + 1;
      return { ...alive, readOnlyLooks, verdict: readOnlyLooks < SEEN_IN_A_ROW ? view.verdict : 'read-only' };
    }
    case 'pulse':
      return sign.writable ? { ...view, unvouchedTicks: 0 } : { ...view, isDoubted: true };
    case 'failed': {
      const failures = view.failures + 1;
      return { ...view, failures, verdict: failures < SEEN_IN_A_ROW ? view.verdict : 'unreachable' };
    }
    case 'tick':
      return afterTick(view, sign);
  }
}

function afterTick(before: DatabaseView, sign: Extract<Sign, { sign: 'tick' }>): DatabaseView {
  const view = {
    ...before,
    easyTicks: before.easyTicks + 1,
    unvouchedTicks: before.unvouchedTicks + 1,
    unlookedTicks: before.unlookedTicks + 1,
    isDoubted: before.isDoubted || sign.wasCut,
  };
  if (sign.othersAnswered) return { ...view, failures: 0, silentTicks: 0, unansweredTicks: 0 };
  const silentTicks = view.silentTicks + 1;
  const unansweredTicks = sign.isAsked ? view.unansweredTicks + 1 : 0;
  const isSilent = silentTicks >= SILENT_TICKS && unansweredTicks >= UNANSWERED_TICKS && view.verdict !== 'unreachable';
  return {
    ...view,
    silentTicks,
    unansweredTicks,
    easyTicks: unansweredTicks > 1 ? 0 : view.easyTicks,
    verdict: isSilent ? 'no answer' : view.verdict,
  };
}

/**
 * Whether a look of our own is to be begun: soon when something is wrong or unclear (`isSettled`: the schema isn't),
 * seldom while pulses say enough.
 */
export function isLookDue(view: DatabaseView, isSettled: boolean): boolean {
  if (view.failures > 0) return true;
  const isClear = isSettled && view.verdict === 'ok' && view.readOnlyLooks === 0 && !view.isDoubted;
  const isSpared = isClear && view.easyTicks >= EASY_TICKS && view.unvouchedTicks < VOUCHED_TICKS;
  return view.unlookedTicks >= (isSpared ? SPARED_LOOK_TICKS : LOOK_TICKS);
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
