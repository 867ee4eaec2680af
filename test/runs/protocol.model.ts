/**
 * The protocol as a small world for the search: runs, worker rows and leases, processes with a memory, supervisors
 * with a deadline, and statements under way. Every change of a run is asked of the product's own `decide()`.
 *
 * A statement is sent, carried out at some later moment (perhaps twice, perhaps when its sender is long gone), and
 * its answer may be lost. A paused process is one that takes no step while everything else does; an outage longer
 * than the lease is one in which leases end while statements stay under way. Time is only what it forbids: a lease
 * ends after the deadline of its supervisor has passed, for that was counted from when the renewal was sent.
 */
import type { RunCommand } from '../../src/runs/run.machine.js';
import { brokenLaw, isGoal, sightsOf } from './protocol.laws.js';
import {
  copy,
  initialState,
  keyOf,
  message,
  type Phase,
  type Run,
  type Setting,
  type State,
  type Worker,
} from './protocol.state.js';
import { changeRun, execute, isLive, isUnlocked } from './protocol.statements.js';
import type { Step, World } from './search.js';

export function protocol(setting: Setting): World<State> {
  return {
    initial: initialState(setting),
    key: keyOf,
    steps: (state) => stepsOf(state, setting),
    broken: (before, step) => brokenLaw(before, step.next),
    isGoal,
    sights: sightsOf,
  };
}

type Move = [label: string, fault: boolean, change: (next: State) => void];

function stepsOf(state: State, setting: Setting): Step<State>[] {
  const moves: Move[] = [
    ...statementMoves(state, setting),
    ...cancelMoves(state, setting),
    ...janitorMoves(state, setting),
  ];
  state.workers.forEach((worker, w) => {
    moves.push(...timeMoves(worker, w, state, setting), ...personMoves(worker, w, state, setting));
    if (worker.up) moves.push(...processMoves(state, worker, w, setting));
  });
  return moves.map(([label, fault, change]) => {
    const next = copy(state);
    change(next);
    return { label, fault, next };
  });
}

/** Any statement under way may be carried out now, its answer lost or not, and may be carried out again later. */
function statementMoves(state: State, setting: Setting): Move[] {
  const moves: Move[] = [];
  const met = new Set<string>();
  state.mail.forEach((m, place) => {
    const text = `${m.command} ${m.worker} ${m.run} ${m.fence} ${m.saw}`;
    if (met.has(text)) return;
    met.add(text);
    const name = `${m.command} of run ${m.run}${m.worker < 0 ? '' : ` for worker ${m.worker}`}${m.fence ? ` fence ${m.fence}` : ''}`;
    if (isUnlocked(m, setting) && m.saw === undefined) {
      moves.push([
        `${name} begins`,
        false,
        (next) => {
          next.mail[place] = { ...m, saw: isLive(next.workers[m.worker]) };
        },
      ]);
      return;
    }
    const carryOut = (next: State, answered: boolean, again: boolean) => {
      if (!again) next.mail.splice(place, 1);
      execute(next, m, answered, setting);
    };
    moves.push([`${name} is carried out`, false, (next) => carryOut(next, true, false)]);
    if (state.left.lost > 0 && m.worker >= 0 && m.command !== 'settle' && state.workers[m.worker]?.up) {
      moves.push([
        `${name} is carried out, its answer lost`,
        true,
        (next) => {
          next.left.lost -= 1;
          carryOut(next, false, false);
        },
      ]);
    }
    if (state.left.twice > 0) {
      moves.push([
        `${name} is carried out, and under way once more`,
        true,
        (next) => {
          next.left.twice -= 1;
          carryOut(next, true, true);
        },
      ]);
    }
  });
  return moves;
}

function cancelMoves(state: State, setting: Setting): Move[] {
  if (state.left.cancel === 0) return [];
  return state.runs.flatMap((run, r): Move[] => {
    if (run.at === 'absent') return [];
    return [
      [
        `somebody cancels run ${r}`,
        true,
        (next) => {
          next.left.cancel -= 1;
          changeRun(next, message('cancel', -1, r, 0), setting);
        },
      ],
    ];
  });
}

/** Reaping and settling, separate steps; any replica does them, so somebody always does. */
function janitorMoves(state: State, setting: Setting): Move[] {
  const moves: Move[] = [];
  state.workers.forEach((worker, w) => {
    if (worker.row !== 'live' && worker.row !== 'draining') return;
    if (worker.lease && setting.weakness !== 'reap without a look at the lease') return;
    // After a jump of the clock the janitor waits one TTL: by then a deadline from before the jump has passed, and grace.
    const waits = worker.jumped && isBoundByDeadline(worker);
    if (waits && setting.weakness !== 'reap right after a jump of the clock') return;
    moves.push([
      `worker ${w} is reaped`,
      false,
      (next) => {
        (next.workers[w] as Worker).row = 'lost';
      },
    ]);
  });
  if (setting.weakness === 'no settling') return moves;
  state.runs.forEach((run, r) => {
    const holder = state.workers[run.holder];
    if (run.at !== 'claimed' && run.at !== 'running') return;
    if (holder?.row !== 'lost' && holder?.row !== 'stopped') return;
    if (state.mail.some((m) => m.command === 'settle' && m.run === r)) return;
    moves.push([
      `run ${r} is found orphaned`,
      false,
      (next) => {
        next.mail.push(message('settle', run.holder, r, 0));
      },
    ]);
  });
  return moves;
}

/** A deadline that was counted from an earlier renewal stands, or tools have not yet ended by it. */
function isBoundByDeadline(worker: Worker): boolean {
  return worker.ahead || worker.answer === 'fresh' || worker.told.includes(true);
}

/** Whether time lets the lease end: the deadline and its grace are over before. */
function mayLeaseEnd(worker: Worker, { weakness }: Setting): boolean {
  if (weakness === 'deadline after the lease') return true;
  return !worker.ahead && (weakness === 'grace after the lease' || !worker.told.includes(true));
}

/** A person takes a worker out of service and puts it back, each one statement that goes by the row alone. */
function personMoves(worker: Worker, w: number, state: State, { weakness }: Setting): Move[] {
  const moves: Move[] = [];
  const become = (row: 'live' | 'draining', times: number) => (next: State) => {
    next.left.service -= times;
    (next.workers[w] as Worker).row = row;
  };
  const isOver = worker.row === 'lost' || worker.row === 'stopped';
  const mayDrain = worker.row === 'live' || (isOver && weakness === 'drain of a life that is over');
  if (mayDrain && state.left.service > 0) moves.push([`a person drains worker ${w}`, true, become('draining', 1)]);
  const mayUndrain =
    (worker.row === 'draining' && (!worker.stopping || weakness === 'undrain of a process that stops')) ||
    (isOver && weakness === 'undrain of a life that is over');
  if (mayUndrain) moves.push([`a person undrains worker ${w}`, true, become('live', 0)]);
  return moves;
}

/** What time and the operating system do to one replica. */
function timeMoves(worker: Worker, w: number, state: State, setting: Setting): Move[] {
  const moves: Move[] = [];
  const at = (next: State) => next.workers[w] as Worker;
  if (worker.ahead) {
    moves.push([
      `the deadline of worker ${w} passes: its tools are told to stop`,
      worker.up,
      (next) => {
        at(next).ahead = false;
        worker.tools.forEach((runs, r) => {
          if (setting.grace) at(next).told[r] = runs;
          else stopTool(at(next), r);
        });
      },
    ]);
  }
  if (worker.told.includes(true)) {
    moves.push([
      `the tools of worker ${w} that were told to stop are gone, at the latest after their grace`,
      false,
      (next) => {
        worker.told.forEach((told, r) => {
          if (told) at(next).tools[r] = false;
        });
        at(next).told.fill(false);
      },
    ]);
  }
  const mayEnd = !worker.up || state.left.outage > 0;
  if (worker.lease && mayEnd && mayLeaseEnd(worker, setting)) {
    moves.push([
      `the lease of worker ${w} ends`,
      worker.up,
      (next) => {
        if (worker.up) next.left.outage -= 1;
        at(next).lease = false;
        if (worker.answer !== 'none') {
          at(next).answer = setting.weakness === 'deadline counted from the arrival' ? 'stale' : 'none';
        }
      },
    ]);
  }
  if (w === 0 && state.left.jump > 0) {
    moves.push([
      'the database clock jumps: every lease is over',
      true,
      (next) => {
        next.left.jump -= 1;
        for (const other of next.workers) {
          other.lease = false;
          other.jumped = isBoundByDeadline(other);
        }
      },
    ]);
  }
  if (worker.up && state.left.crash > 0) {
    moves.push([
      `worker ${w} crashes`,
      true,
      (next) => {
        next.left.crash -= 1;
        die(at(next));
      },
    ]);
  }
  return moves;
}

function stopTool(worker: Worker, r: number): void {
  worker.tools[r] = false;
  worker.told[r] = false;
}

/** The process is gone with its memory; its tools stop when its supervisor stops them. */
function die(worker: Worker): void {
  worker.up = false;
  worker.claiming = false;
  worker.answer = 'none';
  for (const known of worker.memory) {
    known.phase = 'none';
    known.fence = 0;
  }
}

function processMoves(state: State, worker: Worker, w: number, setting: Setting): Move[] {
  const moves: Move[] = [];
  const at = (next: State) => next.workers[w] as Worker;
  const alive = worker.row === 'live' || worker.row === 'draining';
  if (!alive) {
    return [
      [
        `worker ${w} learns that its life is over`,
        false,
        (next) => {
          at(next).tools.fill(false);
          at(next).told.fill(false);
          die(at(next));
        },
      ],
    ];
  }
  if (!worker.lease || !worker.ahead) {
    if (worker.answer !== 'fresh' || !worker.lease) {
      moves.push([
        `worker ${w} renews`,
        false,
        (next) => {
          at(next).lease = true;
          at(next).jumped = false;
          at(next).answer = 'fresh';
        },
      ]);
    }
  }
  if (worker.answer !== 'none') {
    moves.push([
      `the renewal of worker ${w} moves its deadline`,
      false,
      (next) => {
        at(next).answer = 'none';
        at(next).ahead = true;
      },
    ]);
  }
  if (!worker.stopping) {
    if (state.left.drain > 0) {
      moves.push([
        `the process of worker ${w} is told to stop: it drains`,
        true,
        (next) => {
          next.left.drain -= 1;
          at(next).row = 'draining';
          at(next).stopping = true;
        },
      ]);
    }
    if (!worker.claiming && state.runs.some((run) => run.at === 'pending')) {
      moves.push([
        `worker ${w} sends a claim`,
        false,
        (next) => {
          at(next).claiming = true;
          next.mail.push(message('claim', w, 0, 0));
        },
      ]);
    }
  } else if (isIdle(state, worker, w)) {
    moves.push([
      `worker ${w} stops`,
      false,
      (next) => {
        at(next).row = 'stopped';
        die(at(next));
      },
    ]);
  }
  worker.memory.forEach((known, r) => {
    moves.push(...memoryMoves(state, w, r, known, setting));
  });
  return moves;
}

function isIdle(state: State, worker: Worker, w: number): boolean {
  return (
    !worker.claiming &&
    worker.memory.every((known) => known.phase === 'none') &&
    !state.mail.some((m) => m.worker === w && m.command !== 'settle')
  );
}

/** What a process does about one run, from what it remembers. */
function memoryMoves(
  state: State,
  w: number,
  r: number,
  known: { phase: Phase; fence: number },
  setting: Setting,
): Move[] {
  const worker = state.workers[w] as Worker;
  const run = state.runs[r] as Run;
  const moves: Move[] = [];
  const name = `worker ${w}, run ${r}:`;
  const become = (phase: Phase) => (next: State) => {
    const there = next.workers[w] as Worker;
    (there.memory[r] as { phase: Phase }).phase = phase;
    if (phase !== 'tool' && phase !== 'starting') stopTool(there, r);
  };
  const underWay = (command: RunCommand) =>
    state.mail.some((m) => m.command === command && m.worker === w && m.run === r && m.fence === known.fence);
  const send = (command: RunCommand, phase: Phase) => (next: State) => {
    become(phase)(next);
    next.mail.push(message(command, w, r, known.fence));
  };
  const sawCancel = run.flagged && run.holder === w && run.fence === known.fence;
  switch (known.phase) {
    case 'inbox':
      moves.push([`${name} reads the claim`, false, become('claimed')]);
      break;
    case 'claimed':
      if (worker.stopping) moves.push([`${name} gives back`, false, send('release', 'releasing')]);
      moves.push([`${name} sends start`, false, send('start', 'starting')]);
      moves.push([`${name} refuses it`, false, become('refuse')]);
      if (sawCancel) moves.push([`${name} sees the cancel`, false, become('cancel_done')]);
      break;
    case 'starting':
      if (!underWay('start')) moves.push([`${name} sends start again`, false, send('start', 'starting')]);
      break;
    case 'go':
      if (worker.ahead || setting.weakness === 'spawn after the deadline') {
        moves.push([
          `${name} the tool starts`,
          false,
          (next) => {
            become('tool')(next);
            (next.workers[w] as Worker).tools[r] = true;
            (next.runs[r] as Run).spawns += 1;
          },
        ]);
      } else moves.push([`${name} the supervisor refuses the start`, false, become('tool_stopped')]);
      break;
    case 'tool':
      if (!worker.tools[r]) moves.push([`${name} learns that its tool was stopped`, false, become('tool_stopped')]);
      else if (!worker.told[r]) {
        moves.push([`${name} the tool ends`, false, become('tool_ended')]);
        if (sawCancel) moves.push([`${name} stops the tool for the cancel`, false, become('cancel_done')]);
        if (worker.stopping)
          moves.push([`${name} stops the tool at the end of the drain`, false, become('drain_over')]);
      }
      break;
    case 'releasing':
      if (!underWay('release')) moves.push([`${name} gives back again`, false, send('release', 'releasing')]);
      break;
    case 'none':
      break;
    default:
      if (!underWay(known.phase)) moves.push([`${name} sends ${known.phase}`, false, send(known.phase, known.phase)]);
  }
  if (setting.weakness !== 'no comparing') moves.push(...compareMoves(state, w, r, known));
  return moves;
}

/** A look at the live rows that name this worker, beside its memory: what an answer that was lost leaves behind. */
function compareMoves(state: State, w: number, r: number, known: { phase: Phase; fence: number }): Move[] {
  const run = state.runs[r] as Run;
  const isMine = run.holder === w && (run.at === 'claimed' || run.at === 'running');
  // A claim's answer that still lies unread counts as lost: the look may come before it is read.
  const unread = known.phase === 'inbox' && state.left.lost === 0;
  const isKnown = known.phase !== 'none' && (known.phase !== 'inbox' || unread) && known.fence === run.fence;
  const command = run.at === 'claimed' ? 'release' : 'unknown_to_holder';
  if (isMine && !isKnown && !state.mail.some((m) => m.command === command && m.worker === w && m.run === r)) {
    return [
      [
        `worker ${w} doesn't know run ${r} that it holds ${run.at}`,
        known.phase === 'inbox',
        (next) => {
          if (known.phase === 'inbox') next.left.lost -= 1;
          next.mail.push(message(command, w, r, run.fence));
        },
      ],
    ];
  }
  if (
    !(isMine && known.fence === run.fence) &&
    (known.phase === 'go' || known.phase === 'tool' || known.phase === 'claimed')
  ) {
    return [
      [
        `worker ${w} no longer holds run ${r}: its tool is stopped`,
        false,
        (next) => {
          const there = next.workers[w] as Worker;
          stopTool(there, r);
          there.memory[r] = { phase: 'none', fence: 0 };
        },
      ],
    ];
  }
  return [];
}
