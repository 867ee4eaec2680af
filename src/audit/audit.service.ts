/** Verification of a chain: recomputed from the stored text in windows, with flat memory and no long snapshot. */
import { Problem } from '../kernel/problems.js';
import type { Pool } from '../platform/db/db.js';
import { readHead, readWindow } from './audit.sql.js';
import { type ChainBreak, type ChainPosition, checkHead, checkNext } from './chain.rules.js';

const WINDOW_ENTRIES = 2_000;

export interface Verification {
  readonly ok: boolean;
  readonly chain: string;
  /** How many entries were recomputed and held. */
  readonly entries: number;
  readonly head: { readonly seq: number; readonly link: string };
  readonly anchors: number;
  readonly brokenAt?: number;
  readonly check?: ChainBreak['check'];
  readonly tookMs: number;
}

export class AuditService {
  /** The furthest head of each chain that this process has seen: a chain never grows shorter. */
  private readonly furthest = new Map<string, number>();
  private readonly running = new Map<string, Promise<Verification>>();
  private readonly next = new Map<string, Promise<Verification>>();

  constructor(private readonly pool: Pool) {}

  /**
   * Recomputes a chain from its first entry to the head it has now. A broken chain is an answer, not an error. One
   * recomputation of a chain runs at a time; who asks meanwhile shares the one after it, which sees all there is by then.
   */
  verify(chain: string): Promise<Verification> {
    const running = this.running.get(chain);
    if (!running) return this.begin(chain);
    const next = this.next.get(chain) ?? running.catch(() => undefined).then(() => this.begin(chain));
    this.next.set(chain, next);
    return next;
  }

  private begin(chain: string): Promise<Verification> {
    this.next.delete(chain);
    const verification = this.verifyNow(chain).finally(() => {
      if (this.running.get(chain) === verification) this.running.delete(chain);
    });
    this.running.set(chain, verification);
    return verification;
  }

  private async verifyNow(chain: string): Promise<Verification> {
    const begun = performance.now();
    const furthest = this.furthest.get(chain) ?? 0;
    const found = await readHead(this.pool, chain);
    if (!found) throw new Problem('not_found', 'there is no such chain');
    const { lastSeq, ...head } = found;
    this.furthest.set(chain, Math.max(furthest, head.seq));
    const { position, fault } = await this.recompute(chain, head.seq);
    const broken =
      fault ??
      checkHead(position, head) ??
      (head.seq < Math.max(furthest, lastSeq) ? ({ brokenAt: head.seq + 1, check: 'behind' } as const) : undefined);
    return {
      ok: broken === undefined,
      chain,
      entries: position.seq,
      head,
      anchors: 0,
      ...broken,
      tookMs: Math.round(performance.now() - begun),
    };
  }

  private async recompute(
    chain: string,
    until: number,
  ): Promise<{ position: ChainPosition; fault: ChainBreak | undefined }> {
    let position: ChainPosition = { seq: 0, link: '' };
    while (position.seq < until) {
      const window = await readWindow(this.pool, chain, position.seq + 1, until, WINDOW_ENTRIES);
      if (window.length === 0) break;
      for (const entry of window) {
        const fault = checkNext(chain, position, entry);
        if (fault) return { position, fault };
        position = { seq: entry.seq, link: entry.link };
      }
    }
    return { position, fault: undefined };
  }
}
