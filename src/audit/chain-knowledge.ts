/** What this process knows of chains: where they led when they held, what it has verified, and which are broken. */
import type { Logger } from '../platform/log/logger.js';
import type { ChainBreak, SeenChain } from './chain.js';

interface Known {
  seen?: SeenChain;
  /** The head that was met last. */
  headSeq: number;
  /** How far the entries were last found to hold without a gap. */
  verifiedSeq: number;
  /** The head of the last whole verification that held. */
  heldSeq?: number | undefined;
  broken?: ChainBreak | undefined;
}

export class ChainKnowledge {
  private readonly chains = new Map<string, Known>();

  constructor(private readonly log?: Pick<Logger, 'error' | 'info'>) {}

  /** Chains that held once. */
  get chainsSeen(): string[] {
    return [...this.chains].filter(([, { seen }]) => seen).map(([chain]) => chain);
  }

  /** How a chain stood furthest when it held: from then on it leads there. */
  seen(chain: string): SeenChain | undefined {
    return this.chains.get(chain)?.seen;
  }

  broken(chain: string): ChainBreak | undefined {
    return this.chains.get(chain)?.broken;
  }

  heldSeq(chain: string): number | undefined {
    return this.chains.get(chain)?.heldSeq;
  }

  /** How many entries of all chains hold, as far as it was looked. */
  get verifiedSeq(): number {
    return [...this.chains.values()].reduce((sum, { verifiedSeq }) => sum + verifiedSeq, 0);
  }

  /** How many entries all chains had when they were last looked at. */
  get headSeq(): number {
    return [...this.chains.values()].reduce((sum, { headSeq }) => sum + headSeq, 0);
  }

  get chainsBroken(): string[] {
    return [...this.chains].filter(([, { broken }]) => broken).map(([chain]) => chain);
  }

  noteHead(chain: string, seq: number): void {
    this.of(chain).headSeq = seq;
  }

  noteVerified(chain: string, seq: number): void {
    const known = this.of(chain);
    known.verifiedSeq = Math.max(known.verifiedSeq, seq);
  }

  /** A break is told once; another one of the same chain is told again. */
  noteBroken(chain: string, broken: ChainBreak): void {
    const known = this.of(chain);
    known.heldSeq = undefined;
    known.verifiedSeq = Math.min(known.verifiedSeq, broken.brokenAt - 1);
    if (known.broken?.brokenAt === broken.brokenAt && known.broken.check === broken.check) return;
    known.broken = broken;
    const { brokenAt: seq, check } = broken;
    this.log?.error({ code: 'audit_chain_broken', chain, seq, check }, `the audit chain ${chain} is broken at ${seq}`);
  }

  /** The whole chain holds; `before` is the break that was known when that verification began. */
  noteHeld(chain: string, { seq, link, anchors }: SeenChain, before: ChainBreak | undefined): void {
    const known = this.of(chain);
    // Found meanwhile by another: what was read before says nothing about it.
    if (known.broken !== before) return;
    const { seen } = known;
    if (seq > 0 && seq >= (seen?.seq ?? 0)) known.seen = { seq, link, anchors: Math.max(anchors, seen?.anchors ?? 0) };
    known.heldSeq = seq;
    this.noteVerified(chain, seq);
    if (!before) return;
    known.broken = undefined;
    this.log?.info({ code: 'audit_chain_holds', chain, seq }, `the audit chain ${chain} holds again`);
  }

  private of(chain: string): Known {
    const known = this.chains.get(chain) ?? { headSeq: 0, verifiedSeq: 0 };
    this.chains.set(chain, known);
    return known;
  }
}
