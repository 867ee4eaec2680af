/** When a timestamp that holds is of no use all the same. */

/** Verifiers refuse a timestamp that is older than the entry by more. */
const CLOCKS_APART_MS = 5 * 60_000;

/** Why a verifier would refuse a timestamp of this time for an entry of that time; `undefined` when it wouldn't. */
export function clockFault(genTimeMs: number, entryAtMs: number): string | undefined {
  const earlyMs = entryAtMs - genTimeMs;
  if (earlyMs <= CLOCKS_APART_MS) return undefined;
  return (
    "dated the entry more than 5 minutes before the entry's own time, which is the database's: " +
    "look at the clock of the database server first, then at the authority's"
  );
}
