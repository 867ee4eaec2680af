/** The nouns of a chain: where it stands, and an entry as it is stored. Links are lower-case hex. */

export interface ChainHead {
  readonly seq: number;
  /** Lower-case hex; empty before the first entry. */
  readonly link: string;
}

export interface StoredEntry {
  readonly seq: number;
  readonly claim: string;
  readonly prev: string;
  readonly link: string;
}
