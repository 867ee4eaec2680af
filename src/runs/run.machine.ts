/**
 * The life of a run as one frozen table, and the pure decision over it. Every statement in this folder is one row of
 * it; the exhaustive tests, the protocol model and the diagram in `src/README.md` are made from it.
 */

import { type Decision, decideIn, diagramOf, type Transition } from '../kernel/machine.js';
import { END_STATES, RUN_STATES } from '../kernel/run-words.js';
import { type EndState, type RunState } from './run.js';

/** A run's state, or that there is none yet. */
export type RunStanding = RunState | 'absent';

export type RunCommand =
  | 'submit'
  | 'claim'
  | 'start'
  | 'release'
  | 'settle'
  | 'tool_ended'
  | 'refuse'
  | 'tool_stopped'
  | 'unknown_to_holder'
  | 'drain_over'
  | 'cancel'
  | 'cancel_done'
  | 'rerun';

/**
 * What a row demands, read and locked by the statement itself: `held`: the writer is the holder under the current
 * fence; `worker_live`: the writer's worker row is live and its lease unexpired; `worker_alive`: live or draining, and
 * its lease unexpired; `holder_gone`: the holder's worker row is lost or stopped; `claimable`: due, in a served queue;
 * `same_request`: same key and digest, or same id and spec; `cancel_requested` and `no_cancel`: the flag.
 */
export type RunGuard =
  | 'held'
  | 'worker_live'
  | 'worker_alive'
  | 'holder_gone'
  | 'claimable'
  | 'same_request'
  | 'cancel_requested'
  | 'no_cancel';

export type RunTransition = Transition<RunStanding, RunCommand, RunGuard>;

const ANY: readonly RunState[] = RUN_STATES;
const ENDED: readonly RunState[] = END_STATES;

function row(
  number: string,
  command: RunCommand,
  from: readonly RunStanding[],
  guard: readonly RunGuard[],
  to: readonly RunStanding[] | 'unchanged',
  writes: { audited?: true; event?: string } = {},
): RunTransition {
  return Object.freeze({
    row: number,
    command,
    from,
    guard,
    to,
    audited: writes.audited ?? false,
    event: writes.event ?? null,
  });
}

const ended = { audited: true, event: 'run.ended' } as const;

export const RUN_TRANSITIONS: readonly RunTransition[] = Object.freeze([
  row('1', 'submit', ['absent'], [], ['pending'], { audited: true, event: 'run.submitted' }),
  row('3', 'submit', ANY, ['same_request'], 'unchanged'),
  row('6', 'claim', ['pending'], ['worker_live', 'claimable', 'no_cancel'], ['claimed']),
  row('7', 'start', ['claimed'], ['held', 'worker_live', 'no_cancel'], ['running']),
  row('7', 'start', ['running'], ['held', 'worker_alive'], 'unchanged'),
  row('8', 'settle', ['claimed'], ['holder_gone', 'no_cancel'], ['pending'], { audited: true, event: 'run.requeued' }),
  row('8', 'settle', ['claimed'], ['holder_gone', 'cancel_requested'], ['canceled'], ended),
  row('9', 'release', ['claimed'], ['held', 'no_cancel'], ['pending'], { event: 'run.released' }),
  row('9', 'release', ['claimed'], ['held', 'cancel_requested'], ['canceled'], ended),
  row('10', 'tool_ended', ['running'], ['held'], ['succeeded', 'failed', 'timed_out'], ended),
  row('10a', 'refuse', ['claimed'], ['held'], ['failed'], ended),
  row('11', 'settle', ['running'], ['holder_gone'], ['interrupted'], ended),
  row('11a', 'tool_stopped', ['running'], ['held'], ['interrupted'], ended),
  row('11b', 'unknown_to_holder', ['running'], ['held'], ['interrupted'], ended),
  row('12', 'drain_over', ['running'], ['held'], ['interrupted'], ended),
  row('13', 'cancel', ['held', 'pending', 'parked'], [], ['canceled'], ended),
  row('14', 'cancel', ['claimed', 'running'], ['no_cancel'], 'unchanged', {
    audited: true,
    event: 'run.cancel_requested',
  }),
  row('14', 'cancel', ['claimed', 'running'], ['cancel_requested'], 'unchanged'),
  row('15', 'cancel_done', ['claimed', 'running'], ['held', 'cancel_requested'], ['canceled'], ended),
  row('17', 'rerun', ENDED, [], 'unchanged'),
]);

/** Decides one command over one run. Losing a race is the value `refuse`, never an exception. */
export function decide(
  state: RunStanding,
  command: RunCommand,
  holds: (guard: RunGuard) => boolean,
): Decision<RunTransition> {
  return decideIn(RUN_TRANSITIONS, state, command, holds);
}

export function isEnded(state: RunStanding): state is EndState {
  return (END_STATES as readonly string[]).includes(state);
}

/** The state diagram of `src/README.md`. */
export function runDiagram(): string {
  return diagramOf(RUN_TRANSITIONS, 'absent', isEnded);
}
