/**
 * How entries link, and what breaks a chain: the pure recomputation that verification is made of. The database links
 * in SQL when it appends; this is the other, independent side.
 */
import { sha256Hex } from '../kernel/json.js';
import type { ChainHead, StoredEntry } from './chain.js';

/** What a check finds: a missing entry, another entry before it, another content, another head, a chain grown shorter. */
export type ChainCheck = 'gap' | 'prev' | 'link' | 'head' | 'behind';

export interface ChainBreak {
  readonly brokenAt: number;
  readonly check: ChainCheck;
}

/** Where a recomputation stands: the last entry that held. */
export interface ChainPosition {
  readonly seq: number;
  readonly link: string;
}

/** The link of an entry, from the canonical text that is stored: lower-case hex. */
export function linkOf(chain: string, seq: number, prev: string, claim: string): string {
  return sha256Hex(
    `{"claim":"sha256:${sha256Hex(claim)}","domain":"loomseal-chain-v1","install_id":"${chain}","prev":"${prev}","seq":${seq}}`,
  );
}

/** Checks the entry that must follow `position`. */
export function checkNext(chain: string, position: ChainPosition, entry: StoredEntry): ChainBreak | undefined {
  if (entry.seq !== position.seq + 1) return { brokenAt: position.seq + 1, check: 'gap' };
  if (entry.prev !== position.link) return { brokenAt: entry.seq, check: 'prev' };
  if (entry.link !== linkOf(chain, entry.seq, entry.prev, entry.claim)) return { brokenAt: entry.seq, check: 'link' };
  return undefined;
}

/** Checks that the entries end where the head says. */
export function checkHead(position: ChainPosition, head: ChainHead): ChainBreak | undefined {
  if (position.seq !== head.seq) return { brokenAt: position.seq + 1, check: 'gap' };
  return position.link === head.link ? undefined : { brokenAt: head.seq, check: 'head' };
}
