/**
 * Anchors: places outside the producer's reach where a link was published or stamped with a time. Whoever made the chain
 * anew later could not have given it a link that was anchored before.
 */
import type { Anchor, Bundle } from './bundle.js';
import { Refusal } from './refusal.js';
import { readTimeStamp, type TimeStamp } from './rfc3161.js';
import { nanosOf } from './time.js';

/** How far the clock of a time-stamping authority may be behind that of the producer. */
const CLOCK_TOLERANCE_MS = 5 * 60_000;

export interface AnchorFacts {
  readonly seq: number;
  readonly type: Anchor['type'];
  readonly ref: string;
  /** As the producer says; nobody compares it. */
  readonly at: string;
  /**
   * `proof`: the timestamp holds for an entry of the bundle. `reference`: it names such an entry; look it up at `ref`.
   * `head only`: it names the declared head, which lies beyond the entries, so it says nothing about them.
   */
  readonly binds: 'proof' | 'reference' | 'head only';
  readonly timestamp?: Pick<TimeStamp, 'genTime' | 'signer' | 'policy' | 'serial'>;
}

/** `links` are those of the bundle's own entries. An anchor that names anything else sinks the bundle. */
export function checkAnchors({ anchors = [], chain, claims }: Bundle, links: readonly string[] = []): AnchorFacts[] {
  const first = claims[0]?.chain?.seq ?? 1;
  return anchors.map((anchor) => {
    const { seq, type, ref, at, link } = anchor;
    if (chain === undefined) throw new Refusal('anchor', 'there is an anchor and no chain');
    const isMatched = links[seq - first] === link;
    const { head } = chain;
    const isHeadOnly = head.seq >= first + links.length && head.seq === seq && head.link === link;
    if (!isMatched && !isHeadOnly) throw new Refusal('anchor', 'an anchor names no entry of this bundle', seq);
    const timestamp = timestampOf(anchor, claims[seq - first]?.at);
    const binds = isMatched ? (timestamp ? 'proof' : 'reference') : 'head only';
    return { seq, type, ref, at, binds, ...(timestamp && { timestamp }) };
  });
}

/** Of a proof that holds; only those of RFC 3161 are opened. `entryAt` is the time of the entry that it covers. */
function timestampOf({ type, proof, link, seq }: Anchor, entryAt: string | undefined): AnchorFacts['timestamp'] {
  if (type !== 'rfc3161' || proof === undefined || proof.length === 0) return undefined;
  const { genTime, genTimeMs, signer, policy, serial } = namingEntry(seq, () => readTimeStamp(proof, link));
  if (entryAt !== undefined && genTimeMs < Number(nanosOf(entryAt) / 1_000_000n) - CLOCK_TOLERANCE_MS) {
    throw new Refusal('anchor', `the timestamp of ${genTime} is older than the entry that it covers`, seq);
  }
  return { genTime, signer, policy, serial };
}

function namingEntry<T>(seq: number, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof Refusal ? new Refusal(error.stage, error.reason, seq) : error;
  }
}
