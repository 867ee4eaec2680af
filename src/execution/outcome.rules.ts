/** What the end of a tool means for its run: rows 10, 11a, 12 and 15 of the transition table. Pure. */
import { formatDuration } from '../kernel/duration.js';
import type { EndCode, Outcome } from '../runs/run.js';
import type { LaunchFailure, Refusal, StopCause, ToolEnd, Verdict } from './supervisor/plan.js';

const NO_TOOL = { kind: null, exitCode: null, signal: null } as const;

/** The end of a run whose tool ran. */
export function outcomeOf(end: ToolEnd, successCodes: readonly number[]): Outcome {
  const facts = { kind: null, exitCode: end.exitCode, signal: end.signal };
  switch (end.cause) {
    case 'self': {
      if (end.verdict !== null) return outcomeOfVerdict(end.verdict);
      const ok = end.exitCode !== null && successCodes.includes(end.exitCode);
      const left = end.leftovers ? '; processes it left behind were stopped' : '';
      const detail = `${howItEnded(end)}${left}`;
      return ok
        ? { state: 'succeeded', code: 'ok', ...facts, detail }
        : { state: 'failed', code: 'tool_failed', ...facts, detail };
    }
    case 'timeout':
      return { state: 'timed_out', code: 'timeout', ...facts, detail: `stopped at its timeout (${howItEnded(end)})` };
    case 'cancel':
      // Behind the request's own kind and detail, which stand in the live row.
      return { state: 'canceled', code: 'canceled', ...facts, detail: howItWasKilled(end) ?? '' };
    case 'drain':
      return {
        state: 'interrupted',
        code: 'replica_stopped',
        ...facts,
        detail: `the replica stopped before the tool ended (${howItEnded(end)})`,
      };
    case 'deadline':
      return {
        state: 'interrupted',
        code: 'worker_lost',
        ...facts,
        detail: `the lease could not be renewed, so the tool was stopped before it ran out (${howItEnded(end)})`,
      };
    case 'lost':
      return {
        state: 'interrupted',
        code: 'supervisor_lost',
        ...facts,
        detail: 'the supervisor died; the processes of the tool were killed',
      };
  }
}

/** A request judges its own end; there is no exit code in it. */
function outcomeOfVerdict({ ok, code, detail }: Verdict): Outcome {
  return { state: ok ? 'succeeded' : 'failed', code, ...NO_TOOL, detail };
}

/** The end of a run whose tool could not be started. */
export function outcomeOfFailure(failure: LaunchFailure): Outcome {
  return { state: 'failed', code: failure.code, ...NO_TOOL, detail: failure.detail };
}

/**
 * The end of a run that was moved to running, and then its supervisor would not start the tool: because a stop that we
 * asked for came first (`stop`), because the deadline had passed, or because it was gone.
 */
export function outcomeOfRefusal(reason: Refusal, stop: StopCause | undefined): Outcome {
  if (reason !== 'stopping') return notStarted('worker_lost', 'the lease could not be renewed in time');
  if (stop === 'cancel') return CANCELED_UNSTARTED;
  if (stop === 'drain') return STOPPED_UNSTARTED;
  return notStarted('supervisor_lost', 'the supervisor was gone');
}

/** The end of a `noop`. */
export const NOOP_OUTCOME: Outcome = { state: 'succeeded', code: 'ok', ...NO_TOOL, detail: '' };

/** The end of a run under this holder of which it knows nothing: an answer was lost. */
export const UNKNOWN_OUTCOME: Outcome = {
  state: 'interrupted',
  code: 'internal',
  ...NO_TOOL,
  detail: 'the worker lost track of the run (an answer of the database was lost); its tool is not running',
};

/** A cancellation before the tool started; the request's own kind and detail are written. */
export const CANCELED_UNSTARTED: Outcome = { state: 'canceled', code: 'canceled', ...NO_TOOL, detail: '' };

/** The replica stopped between the start and the tool. */
export const STOPPED_UNSTARTED: Outcome = notStarted('replica_stopped', 'the replica was stopping');

/** A refusal to start. */
export function unfit(detail: string): Outcome {
  return { state: 'failed', code: 'invalid_input', ...NO_TOOL, detail };
}

function notStarted(code: EndCode, why: string): Outcome {
  return { state: 'interrupted', code, ...NO_TOOL, detail: `${why}; the tool was not started` };
}

function howItEnded(end: ToolEnd): string {
  const killed = howItWasKilled(end);
  const ended =
    end.exitCode !== null ? `exit code ${end.exitCode}` : end.signal === null ? UNTOLD : `signal ${end.signal}`;
  // A tool that ended by itself and left processes behind: that they were stopped is said, not how.
  return killed === null || end.cause === 'self' ? ended : `${ended}; ${killed}`;
}

const UNTOLD = 'cut off before it was complete';

/** Null when TERM was enough. */
function howItWasKilled({ killedAfterMs, signal }: ToolEnd): string | null {
  if (killedAfterMs === null) return null;
  // A deadline that was noticed late leaves a grace of odd milliseconds.
  const grace = formatDuration(killedAfterMs < 1_000 ? killedAfterMs : Math.round(killedAfterMs / 1_000) * 1_000);
  return `${signal === 'SIGKILL' ? '' : 'what it had started was '}killed after ${grace} grace`;
}
