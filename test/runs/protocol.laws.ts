/** The laws of a run's life, checked after every step of the search, and what is worth having seen on the way. */
import type { EndState } from '../../src/runs/run.js';
import { isEnded } from '../../src/runs/run.machine.js';
import { ENDING, type Run, type State, type Worker } from './protocol.state.js';
import type { Step } from './search.js';

export const LAWS = {
  fence: 'only the current fence writes',
  life: 'a run is taken and started only under a live worker with an unexpired lease',
  end: 'an ended run never changes',
  once: 'the tool of a run starts at most once',
  tool: 'a tool runs only while its run reads running under its worker',
  audit: 'each audited change has exactly one entry',
  owner: 'what a live holder runs is ended by nobody else',
  over: 'a life that is over never changes',
  stop: 'a process that is stopping is never put back into service',
} as const;

export function brokenLaw(before: State, after: State): string | undefined {
  if (after.wrong) return after.wrong;
  for (let r = 0; r < after.runs.length; r += 1) {
    const [was, is] = [before.runs[r] as Run, after.runs[r] as Run];
    if (
      isEnded(was.at) &&
      (was.at !== is.at || was.fence !== is.fence || was.holder !== is.holder || was.flagged !== is.flagged)
    ) {
      return LAWS.end;
    }
    if (is.spawns > 1 || is.starts > 1) return LAWS.once;
    for (let w = 0; w < after.workers.length; w += 1) {
      if (after.workers[w]?.tools[r] && !(is.at === 'running' && is.holder === w)) return LAWS.tool;
    }
    const { submitted, ended, flagged, requeued } = is.entries;
    const due = [is.at === 'absent' ? 0 : 1, isEnded(is.at) ? 1 : 0, is.flagged ? 1 : 0, is.returned];
    if ([submitted, ended, flagged, requeued].some((n, i) => n !== due[i])) return LAWS.audit;
  }
  for (let w = 0; w < after.workers.length; w += 1) {
    const [was, is] = [before.workers[w] as Worker, after.workers[w] as Worker];
    if ((was.row === 'lost' || was.row === 'stopped') && is.row !== was.row) return LAWS.over;
    if (is.stopping && is.row === 'live') return LAWS.stop;
  }
  return undefined;
}

/** Everything has ended; or nobody is left in service, and what waits is pending. */
export function isGoal(state: State): boolean {
  const nobody = state.workers.every((worker) => !worker.up || (worker.row === 'draining' && !worker.stopping));
  return state.runs.every((run) => isEnded(run.at) || (nobody && (run.at === 'pending' || run.at === 'absent')));
}

/** Its holder is there and knows nothing of it, so whether its tool ran can't be said. */
export const FORGOTTEN = 'a started run that its holder knows nothing of';

const ENDS: readonly EndState[] = ['succeeded', 'failed', 'canceled', 'interrupted'];

export function* sightsOf(before: State, step: Step<State>): Iterable<string> {
  const { next, label } = step;
  const unchanged = before.runs.every((run, r) => run.at === next.runs[r]?.at && run.flagged === next.runs[r]?.flagged);
  if (next.mail.some((m) => next.workers[m.worker]?.up && !next.workers[m.worker]?.lease)) {
    yield 'an outage longer than the lease';
  }
  for (const [r, run] of next.runs.entries()) {
    if (run.fence > 1 && run.at === 'running') yield 'a run taken back and started elsewhere';
    const end = ENDS.find((state) => state === run.at);
    if (end && before.runs[r]?.at !== end) yield `a run that ends ${end}`;
  }
  if (!label.includes('is carried out')) return;
  if (!unchanged && label.startsWith('unknown_to_holder')) yield FORGOTTEN;
  if (!unchanged) return;
  if (label.startsWith('start')) yield 'a start that comes too late';
  if (label.startsWith('claim')) yield 'a claim that comes too late';
  if (label.startsWith('settle')) yield 'a settling that comes too late';
  if (label.startsWith('release')) yield 'a release that comes too late';
  if (ENDING.some((command) => label.startsWith(command))) yield 'an end that comes too late';
}
