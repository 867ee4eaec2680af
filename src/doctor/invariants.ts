/** Everything that the laws are about, one look after another: for who is done, and wants to know that all of it holds. */
import type { Pool } from '../platform/db/db.js';
import { type KeyPlace, lookAtKeys } from './keys.sql.js';
import type { Look, Violation } from './laws.js';
import { lookAtRuns } from './runs.sql.js';
import { lookAtStanding } from './standing.sql.js';

/** Objects of one statement. */
export const WINDOW = 500;

/**
 * Every law that something breaks: in the whole installation, or by these runs (their ids) and by what waits, for who
 * looks again and again. Sends one statement after another.
 */
export async function violations(
  pool: Pick<Pool, 'run'>,
  window?: { readonly runs: readonly string[] },
): Promise<Violation[]> {
  const waiting = (await lookAtStanding(pool)).violations;
  if (window !== undefined) return [...waiting, ...(await lookAtRuns(pool, { ids: window.runs })).violations];
  return [
    ...waiting,
    ...(await foundBy<string>((before) => lookAtRuns(pool, { before, limit: WINDOW }))),
    ...(await foundBy<KeyPlace>((after) => lookAtKeys(pool, after, WINDOW))),
  ];
}

/** All that is found by looking at a window after the other. */
async function foundBy<Place>(look: (place: Place | undefined) => Promise<Look<Place>>): Promise<Violation[]> {
  const found: Violation[] = [];
  let place: Place | undefined;
  do {
    const { violations, next } = await look(place);
    found.push(...violations);
    place = next;
  } while (place !== undefined);
  return found;
}
