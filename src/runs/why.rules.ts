/** What a person is told about a run that isn't taken: each failing predicate, and what would change it. Pure. */
import { encodeId } from '../kernel/ids.js';
import { isEnded } from './run.machine.js';
import { type BusyWorker, type Standing, TOLD_QUEUES, type Why, type WhyReason, type WhyWorker } from './why.js';

export function whyOf(standing: Standing): Why {
  const { id, state, queue } = standing;
  const reasons = reasonsOf(standing);
  return { id: encodeId('run', id), state, queue, isClaimable: reasons.length === 0, reasons };
}

/** Of a run that has been taken or has ended, only that; of all others each predicate that fails. */
function reasonsOf(standing: Standing): WhyReason[] {
  const reasons = standing.isPending ? [] : [notPending(standing)];
  if (standing.cancelRequestedAt !== null) reasons.push(cancelRequested(standing.cancelRequestedAt));
  if (standing.holder !== null || isEnded(standing.state)) return reasons;
  if (!standing.isDue) reasons.push(notDue(standing));
  if (!standing.isOpen) reasons.push(paused(standing));
  reasons.push(...workersReasons(standing));
  return reasons;
}

function workersReasons(standing: Standing): WhyReason[] {
  const { connected, serving, live, free, isNext, ahead } = standing;
  if (connected === 0) return [noWorker()];
  if (serving === 0) return [notServed(standing)];
  if (live === 0) return [draining(standing)];
  if (free === 0) return [slotsBusy(standing), ...(ahead > 0 ? [othersFirst(standing)] : [])];
  return isNext ? [] : [othersFirst(standing)];
}

function notPending(standing: Standing): WhyReason {
  return { code: 'not_pending', ...stateOf(standing), until: null };
}

function stateOf(standing: Standing): Pick<WhyReason, 'detail' | 'remedy'> {
  const { id, state, end, endCode, endedAt, holder, claimedAt, startedAt } = standing;
  const path = `/v1/runs/${encodeId('run', id)}`;
  if (isEnded(state)) {
    return {
      detail: `it has ended ${state} at ${text(endedAt)} (${endCode}${end ? `: ${end}` : ''})`,
      remedy: `an end never changes; run it again: POST ${path}/rerun`,
    };
  }
  if (holder === null) {
    return {
      detail: `it is ${state}: it waits for something other than a worker`,
      remedy: `it becomes pending when that has come; or cancel it: POST ${path}/cancel`,
    };
  }
  const taken =
    state === 'running' ? `runs on worker ${holder} since ${text(startedAt)}` : `was taken by worker ${holder}`;
  if (!standing.isHolderLeased) {
    return {
      detail: `it ${taken}, whose lease ended at ${text(standing.holderLeaseUntil)}`,
      remedy:
        state === 'running'
          ? 'nothing is to be done: another worker ends it as interrupted within seconds'
          : 'nothing is to be done: another worker gives it back within seconds',
    };
  }
  return state === 'running'
    ? { detail: `it ${taken}`, remedy: `follow it: GET ${path}/stream` }
    : { detail: `it ${taken} at ${text(claimedAt)}`, remedy: 'nothing is to be done: it starts in a moment' };
}

function cancelRequested(at: Date): WhyReason {
  return {
    code: 'cancel_requested',
    detail: `its cancel was requested at ${text(at)}`,
    remedy: 'nothing is to be done: its worker stops it, and it ends canceled',
    until: null,
  };
}

function notDue({ id, notBefore }: Standing): WhyReason {
  return {
    code: 'not_before',
    detail: `it was submitted for ${text(notBefore)}; a worker's next pulse, up to 1.9 s later, makes it claimable`,
    remedy: `wait until then; or cancel it, and submit it without notBefore: POST /v1/runs/${encodeId('run', id)}/cancel`,
    until: notBefore,
  };
}

function paused({ queue, pausedAt, pausedBy, pauseReason }: Standing): WhyReason {
  return {
    code: 'queue_paused',
    detail: `queue ${queue} is paused since ${text(pausedAt)} by ${pausedBy}: ${JSON.stringify(pauseReason)}`,
    remedy: `an admin of the installation resumes it: PUT /v1/queues/${queue} {"paused": false}`,
    until: null,
  };
}

function noWorker(): WhyReason {
  return {
    code: 'no_worker',
    detail: 'no worker is connected: none that has slots holds a lease',
    remedy: 'start one: capstan serve, or capstan worker',
    until: null,
  };
}

function notServed({ queue, served }: Standing): WhyReason {
  const more = served.length >= TOLD_QUEUES ? ' and maybe others' : '';
  return {
    code: 'not_served',
    detail: `no connected worker serves queue ${queue}; they serve ${served.join(', ')}${more}`,
    remedy: `start a worker whose CAPSTAN_QUEUES has ${queue}; or cancel the run, and submit it to a queue that is served`,
    until: null,
    queues: served,
  };
}

function draining({ queue, serving, draining: them }: Standing): WhyReason {
  const names = them.map(({ name }) => name);
  const drained = them.find(({ isStopping }) => !isStopping);
  const undrain = drained ? `put one back: POST /v1/workers/${encodeId('wrk', drained.id)}/undrain; or ` : '';
  return {
    code: 'workers_draining',
    detail: `no worker that serves queue ${queue} takes new runs; draining: ${listOf(names, serving)}`,
    remedy: `${undrain}start another worker that serves it`,
    until: null,
    workers: them.map(({ id, name }) => ({ id: encodeId('wrk', id), name })),
  };
}

function slotsBusy({ queue, live, busy }: Standing): WhyReason {
  const names = busy.map(({ name, slots, held }) => `${name} (${held} of ${slots})`);
  return {
    code: 'slots_busy',
    detail: `every slot of the workers that serve queue ${queue} is busy: ${listOf(names, live)}`,
    remedy: 'wait until one of their runs ends, or cancel one; or start another worker, or one with more CAPSTAN_SLOTS',
    until: null,
    workers: busy.map(busyWorker),
  };
}

function busyWorker({ id, name, slots, held, runs }: BusyWorker): WhyWorker {
  return { id: encodeId('wrk', id), name, slots, held, runs: runs.map((run) => encodeId('run', run)) };
}

function othersFirst({ ahead, bound }: Standing): WhyReason {
  const isAtLeast = ahead >= bound;
  const count = `${isAtLeast ? 'at least ' : ''}${ahead} ${ahead === 1 ? 'run goes' : 'runs go'}`;
  return {
    code: 'others_first',
    detail: `${count} first, by priority or for having been there before`,
    remedy: 'wait for its turn; or start more workers; or cancel it, and submit it with a higher priority',
    until: null,
    ahead,
    isAtLeast,
  };
}

/** The names that are told, and how many are not. */
function listOf(names: readonly string[], all: number): string {
  return `${names.join(', ')}${all > names.length ? ` and ${all - names.length} more` : ''}`;
}

function text(at: Date | null): string {
  return at?.toISOString() ?? 'an unknown instant';
}
