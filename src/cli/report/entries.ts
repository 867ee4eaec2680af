/** The entries of bundles that were verified. What wasn't may hold anything, and is never read here. */
import type { Entry } from './facts.rules.js';

/** Just what is read of a claim; the verifier has found it to be so. */
interface Claim {
  readonly type: string;
  readonly at: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly chain?: { readonly seq: number; readonly link: string };
}

/** Entries by their number: windows may overlap. Without a chain they are counted through. */
export class Entries {
  private readonly bySeq = new Map<number, Entry>();

  add(bundle: Uint8Array): void {
    const { claims } = JSON.parse(Buffer.from(bundle).toString('utf8')) as { readonly claims: readonly Claim[] };
    for (const [index, { type, at, payload, chain }] of claims.entries()) {
      const { seq, link } = chain ?? { seq: index + 1, link: '' };
      this.bySeq.set(seq, { seq, at, type, link, payload });
    }
  }

  inOrder(): Entry[] {
    return [...this.bySeq.values()].sort((a, b) => a.seq - b.seq);
  }
}
