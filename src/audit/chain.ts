/** The nouns of a chain: where it stands, and what can be wrong with it. Links are lower-case hex. */

/**
 * No chain has so many entries. A number beyond it was written by somebody else: no list goes there, and what it is read
 * into holds it (15 digits, as in cursors and receipts).
 */
export const LAST_SEQ = 999_999_999_999_999;

export interface ChainHead {
  readonly seq: number;
  /** Empty before the first entry. */
  readonly link: string;
}

/** How a chain stood when all of it held: it leads there for ever, and what was dated stays dated. */
export interface SeenChain extends ChainHead {
  /** How many outside timestamps it had. */
  readonly anchors: number;
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
 * What a check finds: a missing entry, another entry before it, another content, columns that say something else than
 * the content, another head, a head behind one that was seen before, a timestamp that is none of this entry.
 */
export const CHAIN_CHECKS = ['gap', 'prev', 'link', 'column', 'head', 'behind', 'anchor'] as const;
export type ChainCheck = (typeof CHAIN_CHECKS)[number];

export interface ChainBreak {
  /** The first number that fails. */
  readonly brokenAt: number;
  readonly check: ChainCheck;
}
