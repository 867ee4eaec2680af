/**
 * Has the newest entry of each chain that grows dated by an outside authority. Of all replicas one asks at a time for a
 * chain; when it fails, anybody may ask again once its turn is over. Nothing is stored that the verifier doesn't accept.
 */
import type { Pool } from '../platform/db/db.js';
import type { Logger } from '../platform/log/logger.js';
import type { Loop } from '../platform/loop.js';
import type { AnchorMetrics } from './anchor.metrics.js';
import { anchorFault } from './anchor.rules.js';
import { type DueHead, storeAnchorIfHolds, takeAnchorTurn } from './anchors.sql.js';
import type { ChainKnowledge } from './chain-knowledge.js';
import type { requestTimeStamp } from './tsa.js';

/** Longer than a request and its statements take, so that nobody asks for the same at the same time. */
const TURN_MS = 60_000;

export interface AnchorParts {
  readonly pool: Pool;
  readonly url: string;
  /** A chain that is known to be broken is dated no more, as nothing of it is signed. */
  readonly knowledge: Pick<ChainKnowledge, 'chainsBroken'>;
  /** Time between two timestamps of a chain. */
  readonly intervalMs: number;
  readonly request: typeof requestTimeStamp;
  readonly log: Logger;
  readonly metrics: AnchorMetrics;
}

export class AnchorLoop implements Loop {
  readonly name = 'anchor';
  /** Of the last try, when it failed. */
  private failure: string | undefined;

  constructor(private readonly parts: AnchorParts) {}

  /** One chain. After a failure the next is asked for later, for it would fail too. */
  async step(signal: AbortSignal): Promise<'idle' | 'more'> {
    const { pool, intervalMs, knowledge } = this.parts;
    const due = await takeAnchorTurn(pool, intervalMs, TURN_MS, knowledge.chainsBroken);
    if (!due) return 'idle';
    const reason = await this.anchor(due, signal);
    if (reason !== undefined && signal.aborted) return 'idle';
    this.note(due, reason);
    return reason === undefined ? 'more' : 'idle';
  }

  /** Why no timestamp was stored. */
  private async anchor(due: DueHead, signal: AbortSignal): Promise<string | undefined> {
    const { pool, url, request } = this.parts;
    const answer = await request(url, due.link, signal);
    if ('reason' in answer) return answer.reason;
    const { token, stamp } = answer;
    const fault = anchorFault(stamp, due.entryAtMs);
    if (fault) return fault;
    const anchor = { seq: due.seq, link: due.link, at: stamp.genTime, ref: nameOf(url), token };
    const isStored = await storeAnchorIfHolds(pool, due.chain, anchor);
    return isStored ? undefined : 'dated an entry that has changed since, or that somebody else has had dated';
  }

  private note({ chain, seq }: DueHead, reason: string | undefined): void {
    const { log, metrics, url } = this.parts;
    const fields = { chain, seq, authority: nameOf(url) };
    metrics.count(reason === undefined ? 'stored' : 'failed');
    if (reason === undefined) {
      log.info({ code: 'anchor_stored', ...fields }, 'an outside authority dated the newest entry of a chain');
    } else if (reason !== this.failure) {
      log.warn({ code: 'anchor_failed', ...fields, reason }, `no timestamp: the authority ${reason}`);
    }
    this.failure = reason;
  }
}

/** Without the query, which may hold a key: this name stands in bundles and logs. */
function nameOf(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}
