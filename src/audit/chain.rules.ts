/** What is wrong with a chain, from what was found of it. Pure. */
import type { ChainBreak, ChainStand, SeenChain } from './chain.js';

/** The first of these breaks; of several at one number the one that stands first here. */
export function firstBreak(...breaks: readonly (ChainBreak | undefined)[]): ChainBreak | undefined {
  return breaks
    .filter((each) => each !== undefined)
    .reduce<ChainBreak | undefined>(
      (first, each) => (first && first.brokenAt <= each.brokenAt ? first : each),
      undefined,
    );
}

/** A chain that isn't there any more. */
export const GONE: ChainBreak = Object.freeze({ brokenAt: 1, check: 'behind' });

/** What a look at a chain shows to be wrong. `seen` is how it stood furthest when it held. */
export function breakOf(stand: ChainStand, seen: SeenChain | undefined): ChainBreak | undefined {
  const { seq, link, lastSeq, linkAtHead, linkAtSeen, anchors, strayAnchor } = stand;
  return firstBreak(
    seq > 0 && linkAtHead === null ? { brokenAt: seq, check: 'gap' } : undefined,
    seq > 0 && linkAtHead !== null && linkAtHead !== link ? { brokenAt: seq, check: 'head' } : undefined,
    // Entries that the head doesn't know: it was moved back.
    lastSeq > seq ? { brokenAt: seq + 1, check: 'behind' } : undefined,
    // A chain never grows shorter, and what it led to it leads to for ever.
    seen && linkAtSeen !== seen.link ? { brokenAt: Math.min(seen.seq, seq + 1), check: 'behind' } : undefined,
    strayAnchor === null ? undefined : { brokenAt: strayAnchor, check: 'anchor' },
    // Which of them is gone nobody can say any more.
    seen && anchors < seen.anchors ? { brokenAt: Math.min(seen.seq, seq + 1), check: 'anchor' } : undefined,
  );
}
