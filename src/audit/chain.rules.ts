/** What is wrong with a chain, from what was found of it. Pure. */
import type { ChainBreak, ChainHead, ChainStand } from './chain.js';

/** The first of these breaks; of several at one number the one that stands first here. */
export function firstBreak(...breaks: readonly (ChainBreak | undefined)[]): ChainBreak | undefined {
  return breaks
    .filter((each) => each !== undefined)
    .reduce<ChainBreak | undefined>(
      (first, each) => (first && first.brokenAt <= each.brokenAt ? first : each),
      undefined,
    );
}

/** What a look at a chain shows to be wrong. `seen` is the furthest head that held before. */
export function breakOf(stand: ChainStand, seen: ChainHead | undefined): ChainBreak | undefined {
  const { seq, link, lastSeq, linkAtHead, linkAtSeen, strayAnchor } = stand;
  return firstBreak(
    seq > 0 && linkAtHead === null ? { brokenAt: seq, check: 'gap' } : undefined,
    seq > 0 && linkAtHead !== null && linkAtHead !== link ? { brokenAt: seq, check: 'head' } : undefined,
    // Entries that the head doesn't know: it was moved back.
    lastSeq > seq ? { brokenAt: seq + 1, check: 'behind' } : undefined,
    // A chain never grows shorter, and what it led to it leads to for ever.
    seen && linkAtSeen !== seen.link ? { brokenAt: Math.min(seen.seq, seq + 1), check: 'behind' } : undefined,
    strayAnchor === null ? undefined : { brokenAt: strayAnchor, check: 'anchor' },
  );
}
