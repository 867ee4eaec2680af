/** Holds the laws against what is stored, as far as time allows: what waits, then keys, then runs from the newest on. */
import type { Check, Fault, OnProgress } from '../kernel/diagnosis.js';
import { encodeId } from '../kernel/ids.js';
import { isTimeout, type Pool } from '../platform/db/db.js';
import type { Budget } from './budget.js';
import { WINDOW } from './invariants.js';
import { type KeyPlace, lookAtKeys, nextKey } from './keys.sql.js';
import { LAW_NAMES, LAWS, type Look, TIMED_LAWS, type Violation } from './laws.js';
import { estimatedRuns } from './replicas.sql.js';
import { lookAtRuns, nextRun } from './runs.sql.js';
import { lookAtStanding } from './standing.sql.js';

/** So many are told; with more, what to do doesn't depend on the rest. */
const MOST_TOLD = 1_000;

interface Sweep {
  readonly violations: Violation[];
  looked: number;
  isWhole: boolean;
  /** What can't be looked at: a statement about it alone takes too long. */
  readonly tooLong: string[];
}

interface Sweeps<Place> {
  readonly look: (place: Place | undefined, limit: number) => Promise<Look<Place>>;
  /** The place of the next object. */
  readonly next: (place: Place | undefined) => Promise<Place | undefined>;
  readonly nameOf: (place: Place) => string;
  readonly lasts: () => boolean;
  readonly onLooked?: (looked: number) => void;
}

/** Looks until the budget has lasted `untilMs`, at keys until `keysUntilMs`; at one window of each in any case. */
export async function lawsCheck(
  pool: Pool,
  budget: Budget,
  { keysUntilMs, untilMs }: { readonly keysUntilMs: number; readonly untilMs: number },
  onProgress: OnProgress,
): Promise<Check> {
  const standing = await unlessTooLong(() => lookAtStanding(pool));
  const estimate = await estimatedRuns(pool);
  const keys = await sweep<KeyPlace>({
    look: (after, limit) => lookAtKeys(pool, after, limit),
    next: (after) => nextKey(pool, after),
    nameOf: ({ key }) => `the key ${JSON.stringify(key)}`,
    lasts: () => budget.lasts(keysUntilMs),
  });
  const runs = await sweep<string>({
    look: (before, limit) => lookAtRuns(pool, { before, limit }),
    next: (before) => nextRun(pool, before),
    nameOf: (id) => encodeId('run', id),
    lasts: () => budget.lasts(untilMs),
    onLooked: (looked) => onProgress(`laws: checked ${looked} of about ${Math.max(estimate, looked)} runs`),
  });
  const waiting = standing === undefined ? 'unknown' : standing.isAnybodyAble ? 'judged' : 'nobody';
  return checkOf(
    [...(standing?.violations ?? []), ...keys.violations, ...runs.violations],
    runs,
    keys,
    estimate,
    NOTES_OF_WAITING[waiting],
  );
}

const NOTES_OF_WAITING: Readonly<Record<'judged' | 'nobody' | 'unknown', string | undefined>> = Object.freeze({
  judged: undefined,
  nobody:
    'nobody is known to have been connected for two minutes, so whether anything waits too long was not judged ' +
    `(${TIMED_LAWS.join(', ')})`,
  unknown: `not looked at, since a statement took too long: whether anything waits too long (${TIMED_LAWS.join(', ')})`,
});

function checkOf(
  violations: readonly Violation[],
  runs: Sweep,
  keys: Sweep,
  estimate: number,
  waiting: string | undefined,
): Check {
  const isFull = violations.length >= MOST_TOLD;
  const about = Math.max(estimate, runs.looked + 1);
  const notes = [
    ...(waiting === undefined ? [] : [waiting]),
    ...[...keys.tooLong, ...runs.tooLong].map(
      (object) => `${object} was not looked at: a statement about it alone takes too long`,
    ),
    ...(isFull ? [`there may be more: no more than ${MOST_TOLD} are told`] : []),
    ...(runs.isWhole || isFull
      ? []
      : [
          `checked the newest ${runs.looked} of about ${about} runs; \`--all\` checks the rest, as the replicas do all the time`,
        ]),
    ...(keys.isWhole || isFull ? [] : [`checked ${keys.looked} idempotency keys, and not the others`]),
  ];
  return {
    name: 'laws',
    summary: `${LAW_NAMES.length - (waiting === undefined ? 0 : TIMED_LAWS.length)} laws hold; runs checked: ${runs.looked}`,
    faults: violations.slice(0, MOST_TOLD).map(faultOf),
    notes,
  };
}

function faultOf({ law, object, detail }: Violation): Fault {
  const { holds, remedy } = LAWS[law];
  return { what: `${object} breaks the law ${law} (${holds}): ${detail}`, remedy, object, law };
}

/** A window that takes too long is looked at in halves, down to one object; that one is told, and left behind. */
async function sweep<Place>({ look, next, nameOf, lasts, onLooked }: Sweeps<Place>): Promise<Sweep> {
  const result: Sweep = { violations: [], looked: 0, isWhole: false, tooLong: [] };
  let place: Place | undefined;
  let width = WINDOW;
  while (result.violations.length < MOST_TOLD) {
    const found = await unlessTooLong(() => look(place, width));
    if (found) {
      result.violations.push(...found.violations);
      result.looked += found.looked;
      onLooked?.(result.looked);
      width = Math.min(width * 2, WINDOW);
      if (found.next === undefined) return { ...result, isWhole: true };
      place = found.next;
    } else if (width > 1) {
      width = Math.floor(width / 2);
    } else {
      const behind = await unlessTooLong(() => next(place));
      if (behind === undefined) break;
      result.tooLong.push(nameOf(behind));
      place = behind;
    }
    if (!lasts()) break;
  }
  return result;
}

async function unlessTooLong<T>(look: () => Promise<T>): Promise<T | undefined> {
  try {
    return await look();
  } catch (error) {
    if (!isTimeout(error)) throw error;
    return undefined;
  }
}
