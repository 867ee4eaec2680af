/**
 * Whether the stored timestamps are what an authority gave: each token is opened, for whoever rewrites a chain can also
 * write beside it which link was dated. A process opens each once, and from then on knows it by its digest.
 */
import { setImmediate } from 'node:timers/promises';
import type { Pool } from '../platform/db/db.js';
import { readTimeStamp } from '../verifier/rfc3161.js';
import { type AnchorDigest, anchorDigests, type OpenedAnchor, readAnchors } from './anchors.sql.js';
import type { ChainBreak } from './chain.js';

/** Of one statement. */
const PAGE = 1_000;
/** So many tokens, of 0.5 ms each, keep the main thread without letting it go. */
const BATCH = 20;
/** Some 10 MB. Beyond it the oldest are opened again. */
const MOST_KNOWN = 100_000;

export interface AnchorRange {
  readonly chain: string;
  /** Numbers of entries, both included. */
  readonly from: number;
  readonly until: number;
}

export interface AnchorFinding {
  /** All before this number was looked at: behind the range, when it is done. */
  readonly from: number;
  readonly opened: number;
  readonly fault?: ChainBreak;
}

export class AnchorCheck {
  /** Digests of timestamps that hold. */
  private readonly known = new Set<string>();

  constructor(
    private readonly pool: Pool,
    private readonly mostKnown = MOST_KNOWN,
  ) {}

  /** The first number whose timestamp doesn't hold. Throws the signal's reason. */
  async firstFault(range: AnchorRange, signal: AbortSignal): Promise<ChainBreak | undefined> {
    let { from } = range;
    while (from <= range.until) {
      signal.throwIfAborted();
      const found = await this.look({ ...range, from }, PAGE);
      if (found.fault) return found.fault;
      from = found.from;
    }
    return undefined;
  }

  /** Looks at the first timestamps of a range; of those that are not known it opens `most` at most. */
  async look({ chain, from, until }: AnchorRange, most: number): Promise<AnchorFinding> {
    const page = await anchorDigests(this.pool, chain, { from, to: until }, PAGE + 1);
    const unknown = page.slice(0, PAGE).filter(({ digest }) => digest === null || !this.known.has(digest));
    const opened = unknown.slice(0, most);
    const next = unknown[most]?.seq ?? page[PAGE]?.seq ?? until + 1;
    const faults = [twiceIn(page), await this.open(chain, opened)].filter((seq) => seq !== undefined);
    const first = Math.min(...faults);
    return {
      from: next,
      opened: opened.length,
      ...(first <= next && { fault: { brokenAt: first, check: 'anchor' } }),
    };
  }

  /** The first of them that doesn't hold. */
  private async open(chain: string, asked: readonly AnchorDigest[]): Promise<number | undefined> {
    for (let done = 0; done < asked.length; done += BATCH) {
      const seqs = asked.slice(done, done + BATCH).map(({ seq }) => seq);
      const read = new Map((await readAnchors(this.pool, chain, seqs)).map((anchor) => [anchor.seq, anchor]));
      for (const seq of seqs) {
        const anchor = read.get(seq);
        if (!anchor || !holds(anchor)) return seq;
        this.remember(anchor.digest);
      }
      await setImmediate();
    }
    return undefined;
  }

  private remember(digest: string): void {
    this.known.add(digest);
    const [oldest] = this.known;
    if (this.known.size > this.mostKnown && oldest !== undefined) this.known.delete(oldest);
  }
}

function holds({ token, link, at }: OpenedAnchor): boolean {
  try {
    return readTimeStamp(token, link).genTime === at;
  } catch {
    // Whatever is wrong with it: it is what somebody stored, and will be as wrong the next time.
    return false;
  }
}

/** The number that two of them have. */
function twiceIn(page: readonly AnchorDigest[]): number | undefined {
  return page.find(({ seq }, index) => page[index + 1]?.seq === seq)?.seq;
}
