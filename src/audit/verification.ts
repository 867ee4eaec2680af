/** The verdict on a chain, and what it is asked about. */
import type { ChainCheck, ChainHead } from './chain.js';

export interface Verification {
  readonly ok: boolean;
  readonly chain: string;
  /** How many entries were recomputed and held. */
  readonly entries: number;
  readonly head: ChainHead;
  /** Outside timestamps of the whole chain that equal their entries. */
  readonly anchors: number;
  readonly brokenAt?: number;
  readonly check?: ChainCheck;
  readonly tookMs: number;
}

/** Sequence numbers, both included; by default the whole chain. */
export interface Range {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** How many entries hold so far, of how many. */
export interface Progress {
  readonly verified: number;
  readonly of: number;
}
