/**
 * The statements, each carried out in one moment: its guards are read, `decide()` of the product answers, its rows are
 * written. A weakness takes one guard away.
 */
import { decide, isEnded, type RunCommand, type RunGuard, type RunStanding } from '../../src/runs/run.machine.js';
import { LAWS } from './protocol.laws.js';
import type { Message, Run, Setting, State, Worker } from './protocol.state.js';

export function isUnlocked(m: Message, { weakness }: Setting): boolean {
  return weakness === `${m.command} on an unlocked look at the worker row`;
}

export function isLive(worker: Worker | undefined): boolean {
  return worker?.row === 'live' && worker.lease;
}

function isAlive(worker: Worker | undefined): boolean {
  return (worker?.row === 'live' || worker?.row === 'draining') && worker.lease;
}

/** The statement itself: its guards are read and its rows written in one moment. */
export function execute(next: State, m: Message, answered: boolean, setting: Setting): void {
  if (m.command === 'claim') {
    const worker = next.workers[m.worker];
    const wanted = next.runs.findIndex((run) => run.at === 'pending');
    const taken = wanted >= 0 && changeRun(next, { ...m, run: wanted }, setting) === 'applied';
    if (!worker) return;
    worker.claiming = false;
    const run = next.runs[wanted];
    // An answer left unread differs from one that was read only where it may count as lost.
    const phase = next.left.lost > 0 ? 'inbox' : 'claimed';
    if (taken && run && answered && worker.up) worker.memory[wanted] = { phase, fence: run.fence };
    return;
  }
  const result = changeRun(next, m, setting);
  const worker = next.workers[m.worker];
  const known = worker?.memory[m.run];
  if (m.command === 'settle' || !answered || !worker?.up || known?.fence !== m.fence) return;
  if (m.command === 'start') {
    // What may not be started is given back; that does nothing when it is no longer ours.
    const otherwise = setting.weakness === 'start until it is let' ? 'starting' : 'releasing';
    if (known.phase === 'starting') known.phase = result === 'applied' ? 'go' : otherwise;
    else if (known.phase === 'tool' && setting.weakness === 'spawn at each answer') known.phase = 'go';
  } else if (known.phase === m.command || (m.command === 'release' && known.phase === 'releasing')) {
    known.phase = 'none';
  }
}

export function changeRun(next: State, m: Message, setting: Setting): 'applied' | 'refused' {
  const run = next.runs[m.run];
  if (!run) return 'refused';
  const { weakness } = setting;
  const pretended =
    (weakness === 'release what runs' && m.command === 'release' && run.at === 'running') ||
    (weakness === 'settle requeues what runs' && m.command === 'settle' && run.at === 'running')
      ? 'claimed'
      : weakness === 'finish what is gone' && m.command === 'tool_stopped' && isEnded(run.at)
        ? 'running'
        : run.at;
  const decision = decide(pretended, m.command, (guard) => holds(next, run, m, guard, setting));
  if (decision.outcome === 'refuse') return 'refused';
  const { transition } = decision;
  if (writesAsHolder(m.command)) {
    if (run.holder !== m.worker || run.fence !== m.fence) next.wrong ??= LAWS.fence;
  }
  if (m.command === 'claim' || m.command === 'start') {
    const isConfirmed = transition.to === 'unchanged';
    if (!(isConfirmed ? isAlive : isLive)(next.workers[m.worker])) next.wrong ??= LAWS.life;
  }
  if (m.command === 'settle' && isLive(next.workers[run.holder])) next.wrong ??= LAWS.owner;
  if (transition.audited) count(run, transition.event);
  if (transition.to === 'unchanged') {
    if (m.command === 'cancel' && transition.audited) run.flagged = true;
    return 'applied';
  }
  const to = transition.to[0] as RunStanding;
  if (m.command === 'settle' && to === 'pending') run.returned += 1;
  if (to === 'claimed') {
    run.fence += 1;
    run.holder = m.worker;
  } else if (to === 'running') run.starts += 1;
  else if (to === 'pending') run.holder = -1;
  run.at = to;
  return 'applied';
}

function writesAsHolder(command: RunCommand): boolean {
  return !['submit', 'claim', 'settle', 'cancel', 'rerun'].includes(command);
}

function count(run: Run, event: string | null): void {
  if (event === 'run.submitted') run.entries.submitted += 1;
  if (event === 'run.ended') run.entries.ended += 1;
  if (event === 'run.cancel_requested') run.entries.flagged += 1;
  if (event === 'run.requeued') run.entries.requeued += 1;
}

function holds(state: State, run: Run, m: Message, guard: RunGuard, setting: Setting): boolean {
  const { weakness } = setting;
  const worker = state.workers[m.worker];
  const holder = state.workers[run.holder];
  switch (guard) {
    case 'held':
      return (
        (run.holder === m.worker || weakness === 'no holder' || weakness === 'finish what is gone') &&
        (run.fence === m.fence || weakness === 'no fence')
      );
    case 'worker_live':
      if (isUnlocked(m, setting)) return m.saw ?? false;
      if (weakness === 'start without a look at the lease' && m.command === 'start') return worker?.row === 'live';
      if (weakness === `${m.command} for who drains` && worker?.row === 'draining') return worker.lease;
      return isLive(worker);
    case 'worker_alive':
      if (isUnlocked(m, setting)) return m.saw ?? false;
      if (weakness === 'start without a look at the lease') return worker?.row === 'live' || worker?.row === 'draining';
      return weakness === 'start confirmed to the live alone' ? isLive(worker) : isAlive(worker);
    case 'holder_gone':
      if (weakness === 'settle what find saw') return true;
      return run.holder === m.worker && (holder?.row === 'lost' || holder?.row === 'stopped');
    case 'cancel_requested':
      return run.flagged;
    case 'no_cancel':
      return !run.flagged || (weakness === 'each cancel writes' && m.command === 'cancel');
    case 'claimable':
    case 'same_request':
      return true;
  }
}
