/** When a timestamp that holds is of no use all the same: our own verifier takes it, others refuse it. Pure. */
import type { TimeStamp } from '../verifier/rfc3161.js';

/** Verifiers refuse a timestamp that is older than the entry by more. */
const CLOCKS_APART_MS = 5 * 60_000;

/** Why some verifier would refuse this timestamp of an entry of that time; `undefined` when none would. */
export function anchorFault(stamp: TimeStamp, entryAtMs: number): string | undefined {
  const { genTimeMs, hasOneSigner, certificateFromMs, certificateToMs } = stamp;
  if (!hasOneSigner) return 'has more than one signer in its token';
  if (entryAtMs - genTimeMs > CLOCKS_APART_MS) {
    return (
      "dated the entry more than 5 minutes before the entry's own time, which is the database's: " +
      "look at the clock of the database server first, then at the authority's"
    );
  }
  // Comparisons with what is no number don't hold.
  const isValid = genTimeMs >= certificateFromMs && genTimeMs <= certificateToMs;
  return isValid ? undefined : 'dated the entry at a time when its own certificate is not valid';
}
