/** Holds the laws against what is stored, as far as time allows: what waits, then keys, then runs from the newest on. */
import type { Check, Fault, OnProgress } from '../kernel/diagnosis.js';
import { isTimeout, type Pool } from '../platform/db/db.js';
import type { Budget } from './budget.js';
import { WINDOW } from './invariants.js';
import { type KeyPlace, lookAtKeys } from './keys.sql.js';
import { LAW_NAMES, LAWS, type Look, type Violation } from './laws.js';
import { estimatedRuns } from './replicas.sql.js';
import { lookAtRuns } from './runs.sql.js';
import { lookAtStanding } from './standing.sql.js';

/** So many are told; with more, what to do doesn't depend on the rest. */
const MOST_TOLD = 1_000;

interface Sweep {
  readonly violations: Violation[];
  looked: number;
  isWhole: boolean;
}

/** Looks until the budget has lasted `untilMs`, at keys until `keysUntilMs`; at one window of each in any case. */
export async function lawsCheck(
  pool: Pool,
  budget: Budget,
  { keysUntilMs, untilMs }: { readonly keysUntilMs: number; readonly untilMs: number },
  onProgress: OnProgress,
): Promise<Check> {
  const standing = await lookAtStanding(pool);
  const estimate = await estimatedRuns(pool);
  const keys = await sweep<KeyPlace>(
    (after, limit) => lookAtKeys(pool, after, limit),
    () => budget.lasts(keysUntilMs),
  );
  const runs = await sweep<string>(
    (before, limit) => lookAtRuns(pool, { before, limit }),
    () => budget.lasts(untilMs),
    (looked) => onProgress(`laws: checked ${looked} of about ${Math.max(estimate, looked)} runs`),
  );
  return checkOf([...standing.violations, ...keys.violations, ...runs.violations], runs, keys, estimate);
}

function checkOf(violations: readonly Violation[], runs: Sweep, keys: Sweep, estimate: number): Check {
  const isFull = violations.length >= MOST_TOLD;
  const about = Math.max(estimate, runs.looked + 1);
  const notes = [
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
    summary: `${LAW_NAMES.length} laws hold; runs checked: ${runs.looked}`,
    faults: violations.slice(0, MOST_TOLD).map(faultOf),
    notes,
  };
}

function faultOf({ law, object, detail }: Violation): Fault {
  const { holds, remedy } = LAWS[law];
  return { what: `${object} breaks the law ${law} (${holds}): ${detail}`, remedy, object, law };
}

/** A window that takes too long is looked at in halves. */
async function sweep<Place>(
  look: (place: Place | undefined, limit: number) => Promise<Look<Place>>,
  lasts: () => boolean,
  onLooked: (looked: number) => void = () => undefined,
): Promise<Sweep> {
  const result: Sweep = { violations: [], looked: 0, isWhole: false };
  let place: Place | undefined;
  let width = WINDOW;
  while (result.violations.length < MOST_TOLD) {
    try {
      const { violations, looked, next } = await look(place, width);
      result.violations.push(...violations);
      result.looked += looked;
      onLooked(result.looked);
      width = Math.min(width * 2, WINDOW);
      if (next === undefined) return { ...result, isWhole: true };
      place = next;
    } catch (error) {
      if (!isTimeout(error) || width <= 1) throw error;
      width = Math.floor(width / 2);
    }
    if (!lasts()) break;
  }
  return result;
}
