/**
 * What the scheduler may do, as plain data: a history is a list of these, so it can be shrunk, printed and kept in a
 * file. Numbers that choose (`r`, `nth`) are taken modulo what there is; a step that can't be taken changes nothing.
 */
import fc from 'fast-check';

export const FAULTS = [
  'refuse',
  'lose answer',
  'hold',
  'commit late',
  'pause before answer',
  'crash before answer',
] as const;
/** What happens to one statement: not sent; answer lost; carried out long after; committed late; its sender stops or dies. */
export type Fault = (typeof FAULTS)[number];

/** Where faults are worth most. */
const FAULTY = [
  'any',
  'writing',
  'claimIfLive',
  'claimIfLive',
  'startIfHeld',
  'startIfHeld',
  'startIfHeld',
  'finishIfHeld',
  'finishIfHeld',
  'finishIfHeld',
  'releaseIfHeld',
  'cancelIfLive',
  'settleIfOrphaned',
  'settleIfOrphaned',
  'reapIfExpired',
  'reapIfExpired',
  'renewIfAlive',
  'submitIfNew',
  'keepKeys',
  'registerIfNew',
  'leaveIfAlive',
  'putIfUnchanged',
  'append_output_if_held',
  'append_reports_if_held',
  'drop_output_if_held',
  'holdingsOf',
  'findOwnEnds',
  'promoteDue',
  'pulse',
];

export const TOOL_ACTS = ['write', 'report', 'end', 'fail'] as const;

export type Step =
  | { readonly do: 'work' | 'janitor' | 'renew'; readonly r: number }
  | {
      readonly do: 'submit';
      readonly r: number;
      readonly org: number;
      readonly key: number | null;
      readonly id: number | null;
      readonly kind: 'noop' | 'command';
      readonly priority: number;
      readonly queue: number;
      readonly waitMs: number;
      readonly count: number;
    }
  | { readonly do: 'resend'; readonly r: number; readonly nth: number }
  | { readonly do: 'cancel'; readonly r: number; readonly nth: number }
  | { readonly do: 'rerun'; readonly r: number; readonly nth: number; readonly key: number | null }
  | { readonly do: 'tool'; readonly nth: number; readonly act: (typeof TOOL_ACTS)[number]; readonly bytes: number }
  /** Time passes, for everybody. */
  | { readonly do: 'time'; readonly ms: number }
  /** The database's clock alone is set. */
  | { readonly do: 'clock'; readonly ms: number }
  /** The monotonic clock of one process stood still for so long. */
  | { readonly do: 'skew'; readonly r: number; readonly ms: number }
  /** Happens to the next statement of this name; `writing` is the next of any that writes. */
  | { readonly do: 'fault'; readonly r: number; readonly fault: Fault; readonly to: string }
  /** From here on the database can't be reached from this process; or it can again. */
  | { readonly do: 'cut' | 'mend'; readonly r: number }
  | { readonly do: 'carry out'; readonly nth: number }
  | { readonly do: 'commit' }
  | { readonly do: 'pause' | 'resume'; readonly r: number }
  | { readonly do: 'crash'; readonly r: number; readonly stubborn: boolean }
  | { readonly do: 'begin'; readonly r: number }
  | { readonly do: 'stop'; readonly r: number; readonly drainMs: number }
  | { readonly do: 'supervisor dies'; readonly r: number }
  | { readonly do: 'drain' | 'undrain'; readonly r: number; readonly nth: number }
  /** The next wake-up that is sent to this process is lost. */
  | { readonly do: 'lose wake-up'; readonly r: number };

const r = fc.nat({ max: 5 });
const nth = fc.nat({ max: 11 });
const key = fc.constantFrom(null, null, null, 0, 1, 2);

const passing = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 1, max: 400 }) },
  { weight: 6, arbitrary: fc.integer({ min: 400, max: 2_500 }) },
  { weight: 3, arbitrary: fc.integer({ min: 4_500, max: 6_000 }) },
);

const submit = fc.record({
  do: fc.constant('submit' as const),
  r,
  org: fc.nat({ max: 1 }),
  key,
  id: fc.constantFrom(null, null, null, 0, 1, 2, 3, 4, 5),
  kind: fc.constantFrom('command', 'command', 'command', 'noop'),
  priority: fc.constantFrom(0, 0, 5),
  queue: fc.constantFrom(0, 0, 1),
  waitMs: fc.constantFrom(0, 0, 0, 2_000, 20_000),
  count: fc.constantFrom(1, 1, 1, 3),
});

/** One step, more often what keeps a cluster going than what is in its way. */
export const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 52, arbitrary: fc.record({ do: fc.constant('work' as const), r }) },
  { weight: 16, arbitrary: fc.record({ do: fc.constant('janitor' as const), r }) },
  { weight: 48, arbitrary: fc.record({ do: fc.constant('renew' as const), r }) },
  { weight: 32, arbitrary: fc.record({ do: fc.constant('time' as const), ms: passing }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('time' as const), ms: fc.integer({ min: 6_000, max: 35_000 }) }),
  },
  { weight: 14, arbitrary: submit },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('resend' as const), r, nth }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('cancel' as const), r, nth }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('rerun' as const), r, nth, key }) },
  {
    weight: 18,
    arbitrary: fc.record({
      do: fc.constant('tool' as const),
      nth,
      act: fc.constantFrom(...TOOL_ACTS),
      bytes: fc.integer({ min: 1, max: 300 }),
    }),
  },
  {
    weight: 24,
    arbitrary: fc.record({
      do: fc.constant('fault' as const),
      r,
      fault: fc.constantFrom(...FAULTS),
      to: fc.constantFrom(...FAULTY),
    }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('carry out' as const), nth }) },
  { weight: 4, arbitrary: fc.constant({ do: 'commit' as const }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('pause' as const), r }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('resume' as const), r }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('crash' as const), r, stubborn: fc.boolean() }) },
  { weight: 10, arbitrary: fc.record({ do: fc.constant('begin' as const), r }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('stop' as const), r, drainMs: fc.constantFrom(0, 3_000) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('supervisor dies' as const), r }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cut' as const), r }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('mend' as const), r }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('drain' as const, 'undrain' as const), r, nth }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('lose wake-up' as const), r }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('clock' as const),
      ms: fc.constantFrom(-45_000, -3_000, 900, 3_000, 45_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('skew' as const), r, ms: fc.constantFrom(500, 4_000, 40_000) }),
  },
);

/** A step in a line of a trace. */
export function textOf(step: Step): string {
  const { do: what, ...rest } = step;
  const facts = Object.entries(rest).map(([name, value]) => `${name} ${value === null ? 'none' : String(value)}`);
  return facts.length === 0 ? what : `${what} (${facts.join(', ')})`;
}
