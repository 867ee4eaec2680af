/** The laws of `lifecycle.md` over two looks, one before a step and one after it, and what the machines have on record. */
import type { Look, RunLook, WorkerLook } from './look.js';
import type { Tool } from './machine.js';
import { Broken, type Wrote } from './world.js';

export const LAWS = {
  end: 'an ended run never changes',
  life: 'a life that is over never changes',
  fence: 'the fence of a run only rises',
  holder: 'a run is taken and started only under a live worker with an unexpired lease',
  once: 'a run starts at most once',
  tool: 'a tool runs only while its run reads running under its worker and fence',
  write: 'only the current fence writes',
  audit: 'every audited change has exactly one entry',
  events: 'the events of a run have no gap, and none comes behind its end',
  stop: 'a run is not started once its stop was asked for',
  reap: 'a life whose lease holds is not reaped',
  whole: 'a run is either live or ended',
  truth: 'a run that reads succeeded has a tool that ended well',
  service: 'a process that is stopping is never put back into service',
  kept: 'what a caller was answered holds',
  ends: 'after faults stop, everything ends or waits for something named',
  leave: 'after a process has stopped, nothing names it',
} as const;

/** A tool and the run that it is of. */
export interface Started {
  readonly runId: string;
  readonly tool: Tool;
  /** Its exit code, once it ended by itself. */
  exitCode: number | undefined;
}

export interface Sight {
  readonly look: Look;
  /** The database's clock at that look. */
  readonly clockMs: number;
  /** A transaction that began before the look before this one has committed. */
  readonly isLate: boolean;
}

/** The first law that doesn't hold now, seen against how it was before. */
export function brokenLaw(before: Sight, after: Sight, started: readonly Started[]): Broken | undefined {
  const was = {
    runs: new Map(before.look.runs.map((run) => [run.id, run])),
    workers: new Map(before.look.workers.map((worker) => [worker.id, worker])),
  };
  const workers = new Map(after.look.workers.map((worker) => [worker.id, worker]));
  for (const worker of after.look.workers) {
    const old = was.workers.get(worker.id);
    const broken = old && (brokenOfWorker(old, worker) ?? brokenReap(old, worker, before, after));
    if (broken) return broken;
  }
  for (const run of after.look.runs) {
    const old = was.runs.get(run.id);
    const broken = brokenOfRun(run) ?? brokenEnd(run, started) ?? (old && brokenChange(old, run));
    if (broken) return broken;
    const holder = run.holder === null || old?.holder === run.holder ? undefined : run.holder;
    const starter = run.live === 'running' && old?.live !== 'running' ? run.holder : undefined;
    for (const id of [holder, starter]) {
      if (id && !mayHold(was.workers.get(id), workers.get(id), after.isLate ? undefined : before.clockMs)) {
        return new Broken(LAWS.holder, `run ${run.id} is ${run.live} under ${id}`);
      }
    }
  }
  for (const id of was.runs.keys()) {
    if (!after.look.runs.some((run) => run.id === id)) return new Broken(LAWS.end, `run ${id} is gone`);
  }
  return brokenOfTools(after.look.runs, started);
}

/** What was begun in time may commit later. */
function brokenReap(old: WorkerLook, worker: WorkerLook, before: Sight, after: Sight): Broken | undefined {
  const isReaped = old.state !== 'lost' && worker.state === 'lost';
  if (!isReaped || after.isLate || worker.leaseUntilMs < Math.max(before.clockMs, after.clockMs)) return undefined;
  return new Broken(LAWS.reap, `worker ${worker.id} had its lease until ${worker.leaseUntilMs}`);
}

function brokenOfWorker(old: WorkerLook, worker: WorkerLook): Broken | undefined {
  const isOver = old.state === 'lost' || old.state === 'stopped';
  if (isOver && JSON.stringify(old) !== JSON.stringify(worker)) {
    return new Broken(LAWS.life, `worker ${worker.id} was ${old.state} and is ${worker.state}`);
  }
  if (old.state === 'draining' && old.drainedBy === null && (worker.state === 'live' || worker.drainedBy !== null)) {
    return new Broken(LAWS.service, `worker ${worker.id} was stopping and is ${worker.state}`);
  }
  return undefined;
}

function brokenOfRun(run: RunLook): Broken | undefined {
  const { id, events, entries } = run;
  if ((run.ended === null) === (run.live === null)) return new Broken(LAWS.whole, `${id}: ${run.live}, ${run.ended}`);
  const ends = run.ended === null ? 0 : 1;
  const told = [
    ['run.submitted', 1],
    ['run.ended', ends],
    ['run.cancel_requested', count(events, 'run.cancel_requested')],
    ['run.requeued', count(events, 'run.requeued')],
  ] as const;
  for (const [action, times] of told) {
    if (count(entries, action) !== times || count(events, action) !== times) {
      return new Broken(
        LAWS.audit,
        `run ${id}: ${times} × ${action} expected, events "${events}", entries "${entries}"`,
      );
    }
  }
  if (run.live !== null && count(events, 'run.cancel_requested') > (run.flagged ? 1 : 0)) {
    return new Broken(LAWS.audit, `run ${id}: events "${events}", flagged ${run.flagged}`);
  }
  if (count(events, 'run.cancel_requested') > 1) return new Broken(LAWS.audit, `run ${id} was asked to stop twice`);
  const isLast = ends === 0 || events.endsWith('run.ended');
  if (!run.inOrder || !isLast) return new Broken(LAWS.events, `run ${id}: "${events}"`);
  return undefined;
}

/** Noops have no tool. */
function brokenEnd(run: RunLook, started: readonly Started[]): Broken | undefined {
  if (run.ended !== 'succeeded' || run.kind === 'noop') return undefined;
  const isTrue = started.some((each) => each.runId === run.id && each.exitCode === 0);
  return isTrue ? undefined : new Broken(LAWS.truth, `run ${run.id} reads succeeded`);
}

function brokenChange(old: RunLook, run: RunLook): Broken | undefined {
  if (old.ended !== null && JSON.stringify(old) !== JSON.stringify(run)) {
    return new Broken(LAWS.end, `run ${run.id}: ${JSON.stringify(old)} became ${JSON.stringify(run)}`);
  }
  if (run.fence < old.fence) return new Broken(LAWS.fence, `run ${run.id}: ${old.fence} became ${run.fence}`);
  // It started, so nothing gives it to anybody again.
  if (old.live === 'running' && run.live !== null && (run.live !== 'running' || run.fence !== old.fence)) {
    return new Broken(LAWS.once, `run ${run.id} was running and is ${run.live}, fence ${run.fence}`);
  }
  if (old.live === 'claimed' && old.flagged && run.live === 'running' && run.fence === old.fence) {
    return new Broken(LAWS.stop, `run ${run.id} was to be canceled, and was started`);
  }
  if (run.holder !== old.holder && run.holder !== null && run.fence === old.fence) {
    return new Broken(LAWS.fence, `run ${run.id} changed hands under fence ${run.fence}`);
  }
  return undefined;
}

/** A start or an end under another fence than the run's own, or by another worker than its holder. */
export function strayWrite(look: Look, wrote: readonly Wrote[]): Broken | undefined {
  const byId = new Map(look.runs.map((run) => [run.id, run]));
  for (const { statement, worker, runId, fence } of wrote) {
    const run = byId.get(runId);
    const holder = run?.live === null ? run.endWorker : run?.holder;
    if (run?.fence === fence && holder === worker) continue;
    const facts = `the run's fence is ${run?.fence}, its holder ${holder}`;
    return new Broken(LAWS.write, `${statement} of ${worker} wrote to run ${runId} under fence ${fence}; ${facts}`);
  }
  return undefined;
}

/** Whether this life may have taken or started a run between two looks. */
function mayHold(old: WorkerLook | undefined, now: WorkerLook | undefined, clockMs: number | undefined): boolean {
  if (!now) return false;
  if (!old) return true;
  if (old.state === 'lost' || old.state === 'stopped') return false;
  if (old.state === 'draining' && now.state === 'draining') return false;
  return clockMs === undefined || old.leaseUntilMs > clockMs || now.leaseUntilMs !== old.leaseUntilMs;
}

function brokenOfTools(runs: readonly RunLook[], started: readonly Started[]): Broken | undefined {
  const byId = new Map(runs.map((run) => [run.id, run]));
  const fences = new Map<string, number>();
  for (const { runId, tool } of started) {
    const run = byId.get(runId);
    if (fences.has(runId)) return new Broken(LAWS.once, `two tools of run ${runId} were started`);
    fences.set(runId, tool.fence);
    const isOwn = run?.live === 'running' && run.holder === tool.incarnation && run.fence === tool.fence;
    if (!tool.isGone && !isOwn) {
      const facts = `the run is ${run?.live ?? run?.ended}, fence ${run?.fence}, holder ${run?.holder}`;
      return new Broken(
        LAWS.tool,
        `a tool of run ${runId} runs, fence ${tool.fence}, of ${tool.incarnation}; ${facts}`,
      );
    }
  }
  for (const run of runs) {
    if (run.outputFences !== '' && run.outputFences !== String(fences.get(run.id))) {
      return new Broken(LAWS.write, `run ${run.id} has output of the fences ${run.outputFences}`);
    }
  }
  return undefined;
}

function count(words: string | null, word: string): number {
  return words === null ? 0 : words.split(' ').filter((each) => each === word).length;
}
