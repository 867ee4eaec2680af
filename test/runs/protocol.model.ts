/**
 * The protocol as a small world for the search: runs, worker rows and leases, processes with a memory, supervisors
 * with a deadline, and statements under way. Every change of a run is asked of the product's own `decide()`.
 *
 * A statement is sent, carried out at some later moment (perhaps twice, perhaps when its sender is long gone), and
 * its answer may be lost. A paused process is one that takes no step while everything else does; an outage longer
 * than the lease is one in which leases end while statements stay under way. Time is only what it forbids: a lease
 * ends after the deadline of its supervisor has passed, for that was counted from when the renewal was sent.
 */
import { type EndState, RUN_STATES } from '../../src/runs/run.js';
import {
  decide,
  isEnded,
  RUN_TRANSITIONS,
  type RunCommand,
  type RunGuard,
  type RunStanding,
} from '../../src/runs/run.machine.js';
import type { Step, World } from './search.js';

/** A guard taken away, to show that the search would find out. */
export type Weakness =
  | 'start without a look at the lease'
  | 'claim on an unlocked look at the worker row'
  | 'start on an unlocked look at the worker row'
  | 'no fence'
  | 'no holder'
  | 'settle what find saw'
  | 'settle requeues what runs'
  | 'release what runs'
  | 'finish what is gone'
  | 'each cancel writes'
  | 'reap without a look at the lease'
  | 'reap right after a jump of the clock'
  | 'spawn after the deadline'
  | 'spawn at each answer'
  | 'deadline counted from the arrival'
  | 'deadline after the lease'
  | 'no settling'
  | 'no comparing';

export interface Setting {
  readonly workers: number;
  readonly runs: number;
  /** How often each fault may happen. */
  readonly lost: number;
  readonly twice: number;
  readonly crash: number;
  /** Leases of running replicas that end: nothing they sent got through for so long. */
  readonly outage: number;
  readonly jump: number;
  readonly cancel: number;
  readonly drain: number;
  readonly weakness?: Weakness;
}

interface Run {
  at: RunStanding;
  fence: number;
  holder: number;
  flagged: boolean;
  readonly entries: { submitted: number; ended: number; flagged: number; requeued: number };
  returned: number;
  starts: number;
  spawns: number;
}

/** What a process knows of a run: `inbox` is a claim's answer it has not looked at yet. */
type Phase = 'none' | 'inbox' | 'claimed' | 'starting' | 'go' | 'tool' | 'releasing' | EndingCommand;
type EndingCommand = 'tool_ended' | 'refuse' | 'tool_stopped' | 'drain_over' | 'cancel_done';
const ENDING: readonly Phase[] = ['tool_ended', 'refuse', 'tool_stopped', 'drain_over', 'cancel_done'];

interface Worker {
  row: 'live' | 'draining' | 'stopped' | 'lost';
  /** By the database's clock. */
  lease: boolean;
  /** The clock jumped while a deadline stood that was counted from a renewal before it. */
  jumped: boolean;
  up: boolean;
  /** The supervisor's deadline lies ahead; when it passes, every tool is stopped. */
  ahead: boolean;
  /** A renewal was carried out and its answer is under way; `stale`: its lease has ended meanwhile. */
  answer: 'none' | 'fresh' | 'stale';
  claiming: boolean;
  readonly memory: { phase: Phase; fence: number }[];
  readonly tools: boolean[];
}

interface Message {
  readonly command: RunCommand;
  /** Who sends it; for settle, the holder that find saw. -1: nobody's. */
  readonly worker: number;
  readonly run: number;
  readonly fence: number;
  /** What an unlocked look at the worker row showed when the statement began. */
  readonly saw: boolean | undefined;
}

export interface State {
  readonly runs: Run[];
  readonly workers: Worker[];
  mail: Message[];
  readonly left: {
    lost: number;
    twice: number;
    crash: number;
    outage: number;
    jump: number;
    cancel: number;
    drain: number;
  };
  /** Set by a step that itself did what a law forbids. */
  wrong: string | undefined;
}

const LAWS = {
  fence: 'only the current fence writes',
  life: 'a run is taken and started only under a live worker with an unexpired lease',
  end: 'an ended run never changes',
  once: 'the tool of a run starts at most once',
  tool: 'a tool runs only while its run reads running under its worker',
  audit: 'each audited change has exactly one entry',
  owner: 'what a live holder runs is ended by nobody else',
} as const;

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

function initialState(setting: Setting): State {
  return {
    runs: Array.from({ length: setting.runs }, () => ({
      at: 'absent' as const,
      fence: 0,
      holder: -1,
      flagged: false,
      entries: { submitted: 0, ended: 0, flagged: 0, requeued: 0 },
      returned: 0,
      starts: 0,
      spawns: 0,
    })),
    workers: Array.from({ length: setting.workers }, () => ({
      row: 'live' as const,
      lease: true,
      jumped: false,
      up: true,
      ahead: true,
      answer: 'none' as const,
      claiming: false,
      memory: Array.from({ length: setting.runs }, () => ({ phase: 'none' as const, fence: 0 })),
      tools: Array.from({ length: setting.runs }, () => false),
    })),
    mail: Array.from({ length: setting.runs }, (_, run) => message('submit', -1, run, 0)),
    left: pick(setting),
    wrong: undefined,
  };
}

function pick({ lost, twice, crash, outage, jump, cancel, drain }: Setting): State['left'] {
  return { lost, twice, crash, outage, jump, cancel, drain };
}

function message(command: RunCommand, worker: number, run: number, fence: number): Message {
  return { command, worker, run, fence, saw: undefined };
}

function copy(state: State): State {
  return {
    runs: state.runs.map((run) => ({ ...run, entries: { ...run.entries } })),
    workers: state.workers.map((worker) => ({
      ...worker,
      memory: worker.memory.map((known) => ({ ...known })),
      tools: [...worker.tools],
    })),
    mail: [...state.mail],
    left: { ...state.left },
    wrong: undefined,
  };
}

/** One character for each word, so that a world of many states fits into memory. */
function letters(words: readonly string[]): Map<string, string> {
  return new Map(words.map((word, i) => [word, String.fromCharCode(97 + i)]));
}
const STANDINGS = letters(['absent', ...RUN_STATES]);
const PHASES = letters(['none', 'inbox', 'claimed', 'starting', 'go', 'tool', 'releasing', ...ENDING]);
const ROWS = letters(['live', 'draining', 'stopped', 'lost']);
const ANSWERS = letters(['none', 'fresh', 'stale']);
const COMMANDS = letters([...new Set(RUN_TRANSITIONS.map((row) => row.command))]);

const bits = (...values: boolean[]) => values.reduce((sum, value) => sum * 2 + (value ? 1 : 0), 0);
/** Every order of the workers: they are alike, so two states that differ only in who is who are one. */
function ordersOf(n: number): number[][] {
  if (n === 0) return [[]];
  return ordersOf(n - 1).flatMap((order) =>
    Array.from({ length: n }, (_, place) => [...order.slice(0, place), n - 1, ...order.slice(place)]),
  );
}
const ORDERS = [0, 1, 2, 3].map(ordersOf);

/** What tells two states apart. Entries are left out: each of them is checked against what is in here. */
function keyOf(state: State): string {
  const whole = state.workers.map((w) => {
    let text = `${ROWS.get(w.row)}${ANSWERS.get(w.answer)}${bits(w.lease, w.jumped, w.up, w.ahead, w.claiming, ...w.tools)}`;
    for (const known of w.memory) text += `${PHASES.get(known.phase)}${known.fence}`;
    return text;
  });
  const { lost, twice, crash, outage, jump, cancel, drain } = state.left;
  let least: string | undefined;
  for (const order of ORDERS[state.workers.length] ?? []) {
    const place = (w: number) => (w < 0 ? '-' : order.indexOf(w));
    let key = order.map((w) => whole[w]).join('');
    for (const r of state.runs) {
      key += `${STANDINGS.get(r.at)}${r.fence}${place(r.holder)}${r.flagged ? 1 : 0}${r.returned}${r.starts}${r.spawns}`;
    }
    const mail = state.mail.map((m) => `${COMMANDS.get(m.command)}${place(m.worker)}${m.run}${m.fence}${m.saw ?? ''}`);
    key += mail.length > 1 ? mail.sort().join() : mail.join();
    if (least === undefined || key < least) least = key;
  }
  return `${least};${lost}${twice}${crash}${outage}${jump}${cancel}${drain}`;
}

type Move = [label: string, fault: boolean, change: (next: State) => void];

function stepsOf(state: State, setting: Setting): Step<State>[] {
  const moves: Move[] = [
    ...statementMoves(state, setting),
    ...cancelMoves(state, setting),
    ...janitorMoves(state, setting),
  ];
  state.workers.forEach((worker, w) => {
    moves.push(...timeMoves(worker, w, state, setting));
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

function isUnlocked(m: Message, { weakness }: Setting): boolean {
  return weakness === `${m.command} on an unlocked look at the worker row`;
}

function isLive(worker: Worker | undefined): boolean {
  return worker !== undefined && worker.row === 'live' && worker.lease;
}

/** The statement itself: its guards are read and its rows written in one moment. */
function execute(next: State, m: Message, answered: boolean, setting: Setting): void {
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
    if (known.phase === 'starting') known.phase = result === 'applied' ? 'go' : 'none';
    else if (known.phase === 'tool' && setting.weakness === 'spawn at each answer') known.phase = 'go';
  } else if (known.phase === m.command || (m.command === 'release' && known.phase === 'releasing')) {
    known.phase = 'none';
  }
}

function changeRun(next: State, m: Message, setting: Setting): 'applied' | 'refused' {
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
  if ((m.command === 'claim' || m.command === 'start') && !isLive(next.workers[m.worker])) next.wrong ??= LAWS.life;
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
      return isLive(worker);
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
    // After a jump of the clock the janitor waits one TTL: by then a deadline from before the jump has passed.
    const waits = worker.jumped && (worker.ahead || worker.answer === 'fresh');
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

/** What time and the operating system do to one replica. */
function timeMoves(worker: Worker, w: number, state: State, setting: Setting): Move[] {
  const moves: Move[] = [];
  const at = (next: State) => next.workers[w] as Worker;
  if (worker.ahead) {
    moves.push([
      `the deadline of worker ${w} passes: its tools are stopped`,
      worker.up,
      (next) => {
        at(next).ahead = false;
        at(next).tools.fill(false);
      },
    ]);
  }
  const mayEnd = !worker.up || state.left.outage > 0;
  if (worker.lease && mayEnd && (!worker.ahead || setting.weakness === 'deadline after the lease')) {
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
          other.jumped = other.ahead || other.answer === 'fresh';
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
  if (worker.row === 'live') {
    if (state.left.drain > 0) {
      moves.push([
        `worker ${w} drains`,
        true,
        (next) => {
          next.left.drain -= 1;
          at(next).row = 'draining';
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
    if (phase !== 'tool' && phase !== 'starting') there.tools[r] = false;
  };
  const underWay = (command: RunCommand) =>
    state.mail.some((m) => m.command === command && m.worker === w && m.run === r && m.fence === known.fence);
  const send = (command: RunCommand, phase: Phase) => (next: State) => {
    become(phase)(next);
    next.mail.push(message(command, w, r, known.fence));
  };
  const sawCancel = run.flagged && run.holder === w && run.fence === known.fence;
  const draining = worker.row === 'draining';
  switch (known.phase) {
    case 'inbox':
      moves.push([`${name} reads the claim`, false, become('claimed')]);
      break;
    case 'claimed':
      if (draining) moves.push([`${name} gives back`, false, send('release', 'releasing')]);
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
      else {
        moves.push([`${name} the tool ends`, false, become('tool_ended')]);
        if (sawCancel) moves.push([`${name} stops the tool for the cancel`, false, become('cancel_done')]);
        if (draining) moves.push([`${name} stops the tool at the end of the drain`, false, become('drain_over')]);
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
          there.tools[r] = false;
          there.memory[r] = { phase: 'none', fence: 0 };
        },
      ],
    ];
  }
  return [];
}

function brokenLaw(before: State, after: State): string | undefined {
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
  return undefined;
}

/** Everything has ended; or no process is left, and what waits is pending. */
function isGoal(state: State): boolean {
  const nobody = state.workers.every((worker) => !worker.up);
  return state.runs.every((run) => isEnded(run.at) || (nobody && (run.at === 'pending' || run.at === 'absent')));
}

const ENDS: readonly EndState[] = ['succeeded', 'failed', 'canceled', 'interrupted'];

function* sightsOf(before: State, step: Step<State>): Iterable<string> {
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
  if (!unchanged || !label.includes('is carried out')) return;
  if (label.startsWith('start')) yield 'a start that comes too late';
  if (label.startsWith('claim')) yield 'a claim that comes too late';
  if (label.startsWith('settle')) yield 'a settling that comes too late';
  if (label.startsWith('release')) yield 'a release that comes too late';
  if (ENDING.some((command) => label.startsWith(command))) yield 'an end that comes too late';
}
