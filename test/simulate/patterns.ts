/**
 * Steps that chance alone seldom puts in a row: what a fault does to a statement shows only when leases, janitors and
 * people have gone on meanwhile. A pattern is nothing but single steps, and is taken apart before it is shrunk.
 */
import fc from 'fast-check';
import { anyStep, FAULTS, type Fault, type Step } from './steps.js';

export type Pattern =
  /** Time in which leases are renewed, except for one process. */
  | { readonly do: 'go on'; readonly without: number; readonly rounds: number }
  /** A fault to a statement about a run; its process is away; the others go on, or not yet; and it comes back. */
  | {
      readonly do: 'lapse';
      readonly r: number;
      readonly fault: Fault;
      readonly to: string;
      readonly rounds: number;
      readonly isSettled: boolean;
    }
  /** A fault to a statement about a run whose worker is taken out of service meanwhile, and put back. */
  | { readonly do: 'service'; readonly r: number; readonly fault: Fault; readonly to: string; readonly ms: number }
  /** A fault to a statement about a run that is canceled meanwhile. */
  | { readonly do: 'cancel race'; readonly r: number; readonly fault: Fault; readonly to: string }
  /** A fault to what a janitor does about somebody who comes back meanwhile. */
  | { readonly do: 'reap race'; readonly r: number; readonly fault: Fault; readonly to: string };

const ROUND_MS = 4_800;

const r = fc.nat({ max: 5 });
const fault = fc.constantFrom(...FAULTS, 'hold' as const, 'commit late' as const, 'pause before answer' as const);
const about = fc.constantFrom('claimIfLive', 'startIfHeld', 'finishIfHeld', 'releaseIfHeld', 'append_reports_if_held');

const anyPattern: fc.Arbitrary<Pattern> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('go on' as const), without: r, rounds: fc.integer({ min: 2, max: 8 }) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('lapse' as const),
      r,
      fault,
      to: about,
      rounds: fc.constantFrom(1, 5, 7, 7, 8),
      isSettled: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('service' as const),
      r,
      fault,
      to: about,
      ms: fc.constantFrom(500, 6_200),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('cancel race' as const), r, fault, to: about }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('reap race' as const),
      r,
      fault,
      to: fc.constantFrom('reapIfExpired', 'settleIfOrphaned', 'renewIfAlive'),
    }),
  },
);

const LONGEST_HISTORY = 100;

/** Histories of all lengths, all of them equally likely. */
export const anyHistory: fc.Arbitrary<(Step | Pattern)[]> = fc.array(
  fc.oneof({ weight: 9, arbitrary: anyStep }, { weight: 1, arbitrary: anyPattern }),
  { maxLength: LONGEST_HISTORY, size: 'max' },
);

/** The single steps of a history, in a cluster of so many processes. */
export function taken(history: readonly (Step | Pattern)[], processes: number): Step[] {
  return history.flatMap((step) => partsOf(step, processes));
}

function partsOf(step: Step | Pattern, processes: number): Step[] {
  switch (step.do) {
    case 'go on':
      return goOn(step.without, step.rounds, processes);
    case 'lapse':
      return [
        ...hit(step),
        ...goOn(step.r, step.rounds, processes),
        ...(step.isSettled ? janitorAt(step.r + 1) : []),
        ...comeBack(step.r),
        ...janitorAt(step.r + 1),
      ];
    case 'service':
      return [
        ...hit(step),
        { do: 'drain', r: step.r + 1, nth: step.r },
        { do: 'time', ms: step.ms },
        { do: 'work', r: step.r },
        { do: 'undrain', r: step.r + 1, nth: step.r },
        { do: 'time', ms: 1_100 },
        { do: 'fault', r: step.r, fault: 'pause before answer', to: 'claimIfLive' },
        { do: 'work', r: step.r },
        { do: 'work', r: step.r },
        { do: 'cancel', r: step.r + 1, nth: 0 },
        ...comeBack(step.r),
      ];
    case 'cancel race':
      return [...hit(step), { do: 'cancel', r: step.r + 1, nth: 0 }, ...comeBack(step.r)];
    case 'reap race':
      return [
        ...awake(step.r),
        ...goOn(step.r, 7, processes),
        { do: 'fault', r: step.r + 1, fault: step.fault, to: step.to },
        ...janitorAt(step.r + 1),
        { do: 'renew', r: step.r },
        ...comeBack(step.r + 1),
        { do: 'work', r: step.r },
      ];
    default:
      return [step];
  }
}

/** A run comes to this process, and the fault to one of the statements that this takes. */
function hit({ r, fault, to }: { readonly r: number; readonly fault: Fault; readonly to: string }): Step[] {
  return [
    ...awake(r),
    { do: 'fault', r, fault, to },
    {
      do: 'submit',
      r: r + 1,
      org: 0,
      key: null,
      id: null,
      kind: 'command',
      priority: 5,
      queue: 0,
      waitMs: 0,
      count: 1,
    },
    { do: 'work', r },
    { do: 'tool', nth: 0, act: 'report', bytes: 7 },
    ...(to === 'finishIfHeld' ? [{ do: 'tool' as const, nth: 0, act: 'end' as const, bytes: 1 }] : []),
  ];
}

function awake(r: number): Step[] {
  return [
    { do: 'begin', r: 0 },
    { do: 'resume', r: 0 },
    { do: 'mend', r: 0 },
    { do: 'renew', r },
    { do: 'work', r },
  ];
}

function goOn(without: number, rounds: number, processes: number): Step[] {
  const others = Array.from({ length: processes }, (_, r) => r).filter((r) => r !== without % processes);
  const round: Step[] = [...others.map((r) => ({ do: 'renew' as const, r })), { do: 'time', ms: ROUND_MS }];
  return Array.from({ length: rounds }, () => round).flat();
}

/** It sees what there is to do, does it, and takes what comes of it. */
function janitorAt(r: number): Step[] {
  return [
    { do: 'work', r },
    { do: 'janitor', r },
    { do: 'work', r },
  ];
}

/** What was under way arrives, and the process goes on. */
function comeBack(r: number): Step[] {
  return [{ do: 'carry out', nth: 0 }, { do: 'commit' }, { do: 'resume', r: 0 }, { do: 'work', r }, { do: 'renew', r }];
}
