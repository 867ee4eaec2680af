/** The state of the protocol's small world, and what tells two states apart. */
import { RUN_STATES } from '../../src/kernel/run-words.js';
import { RUN_TRANSITIONS, type RunCommand, type RunStanding } from '../../src/runs/run.machine.js';

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
  | 'grace after the lease'
  | 'claim for who drains'
  | 'start for who drains'
  | 'start until it is let'
  | 'start confirmed to the live alone'
  | 'drain of a life that is over'
  | 'undrain of a life that is over'
  | 'undrain of a process that stops'
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
  /** Processes that are told to stop. */
  readonly drain: number;
  /** How often a person takes a worker out of service; it is put back at any later moment, or never. */
  readonly service: number;
  /** 1: a tool that is told to stop runs on for its grace; 0: it ends at once. */
  readonly grace: 0 | 1;
  readonly weakness?: Weakness;
}

export interface Run {
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
export type Phase = 'none' | 'inbox' | 'claimed' | 'starting' | 'go' | 'tool' | 'releasing' | EndingCommand;
export type EndingCommand = 'tool_ended' | 'refuse' | 'tool_stopped' | 'drain_over' | 'cancel_done';
export const ENDING: readonly Phase[] = ['tool_ended', 'refuse', 'tool_stopped', 'drain_over', 'cancel_done'];

export interface Worker {
  row: 'live' | 'draining' | 'stopped' | 'lost';
  /** By the database's clock. */
  lease: boolean;
  /** The clock jumped while a deadline stood that was counted from a renewal before it. */
  jumped: boolean;
  up: boolean;
  /** Its process was told to stop; a worker that drains without that was drained by a person. */
  stopping: boolean;
  /** The supervisor's deadline lies ahead; when it passes, every tool is told to stop. */
  ahead: boolean;
  /** A renewal was carried out and its answer is under way; `stale`: its lease has ended meanwhile. */
  answer: 'none' | 'fresh' | 'stale';
  claiming: boolean;
  readonly memory: { phase: Phase; fence: number }[];
  readonly tools: boolean[];
  /** Tools that were told to stop, and run on until their grace is over. */
  readonly told: boolean[];
}

export interface Message {
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
    service: number;
  };
  /** Set by a step that itself did what a law forbids. */
  wrong: string | undefined;
}

export function initialState(setting: Setting): State {
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
      stopping: false,
      ahead: true,
      answer: 'none' as const,
      claiming: false,
      memory: Array.from({ length: setting.runs }, () => ({ phase: 'none' as const, fence: 0 })),
      tools: Array.from({ length: setting.runs }, () => false),
      told: Array.from({ length: setting.runs }, () => false),
    })),
    mail: Array.from({ length: setting.runs }, (_, run) => message('submit', -1, run, 0)),
    left: pick(setting),
    wrong: undefined,
  };
}

function pick({ lost, twice, crash, outage, jump, cancel, drain, service }: Setting): State['left'] {
  return { lost, twice, crash, outage, jump, cancel, drain, service };
}

export function message(command: RunCommand, worker: number, run: number, fence: number): Message {
  return { command, worker, run, fence, saw: undefined };
}

export function copy(state: State): State {
  return {
    runs: state.runs.map((run) => ({ ...run, entries: { ...run.entries } })),
    workers: state.workers.map((worker) => ({
      ...worker,
      memory: worker.memory.map((known) => ({ ...known })),
      tools: [...worker.tools],
      told: [...worker.told],
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
export function keyOf(state: State): string {
  const whole = state.workers.map((w) => {
    let text = `${ROWS.get(w.row)}${ANSWERS.get(w.answer)}${bits(w.lease, w.jumped, w.up, w.stopping, w.ahead, w.claiming, ...w.tools, ...w.told)}`;
    for (const known of w.memory) text += `${PHASES.get(known.phase)}${known.fence}`;
    return text;
  });
  const { lost, twice, crash, outage, jump, cancel, drain, service } = state.left;
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
  return `${least};${lost}${twice}${crash}${outage}${jump}${cancel}${drain}${service}`;
}
