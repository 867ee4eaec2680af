/** The nouns of a chain: where it stands, and what can be wrong with it. Links are lower-case hex. */

export interface ChainHead {
  readonly seq: number;
  /** Empty before the first entry. */
  readonly link: string;
}

/** What one look at a chain tells besides its entries' content: all of it is of one instant. */
export interface ChainStand extends ChainHead {
  readonly chain: string;
  /** The newest entry's number: that of the head, or somebody moved one of them. */
  readonly lastSeq: number;
  /** The link of the entry that the head names, and of the one that `seen` named; null when it isn't there. */
  readonly linkAtHead: string | null;
  readonly linkAtSeen: string | null;
  /** Outside timestamps that equal their entries, and the first number of one that doesn't. */
  readonly anchors: number;
  readonly strayAnchor: number | null;
}

/**
 * What a check finds: a missing entry, another entry before it, another content, another head, a head behind one that
 * was seen before, another entry than was timestamped.
 */
export const CHAIN_CHECKS = ['gap', 'prev', 'link', 'head', 'behind', 'anchor'] as const;
export type ChainCheck = (typeof CHAIN_CHECKS)[number];

export interface ChainBreak {
  /** The first number that fails. */
  readonly brokenAt: number;
  readonly check: ChainCheck;
}
