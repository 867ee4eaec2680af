/**
 * Whether a LoomSeal bundle holds, without asking anybody. The checks run in the order below; the first that fails ends
 * it, and whatever a file holds, the answer is a verdict.
 */
import { checkAnchors } from './anchors.js';
import { readBundle } from './bundle.js';
import { checkChain } from './chain.js';
import { checkEvidence, digestsOf, type EvidenceOptions } from './evidence.js';
import { factsOf, remarksOn } from './facts.js';
import { notProven, proven } from './meaning.js';
import { Refusal } from './refusal.js';
import { checkSignature } from './signature.js';
import { type Beat, beatsOf, checkBeats, type SpanFacts } from './spans.js';
import type { Facts, Verdict } from './verdict.js';

export interface VerifyOptions extends EvidenceOptions {
  /** `sha256:` and 64 hexadecimal digits: the key that must have signed. */
  readonly fingerprint?: string | undefined;
}

/** What a verified bundle adds to a range of several. */
export interface Window {
  /** Of the entry before the first one. */
  readonly prev: string;
  readonly links: readonly string[];
  readonly beats: readonly Beat[];
  readonly digests: ReadonlySet<string>;
}

/** Never throws because of the bytes. */
export function verifyBundle(bytes: Uint8Array, options: VerifyOptions = {}): Verdict {
  return verifyWindow(bytes, options).verdict;
}

/** The same, with what it takes to join the bundle to others. */
export function verifyWindow(bytes: Uint8Array, options: VerifyOptions): { verdict: Verdict; window?: Window } {
  let facts: Facts | undefined;
  let notes: string[] = [];
  try {
    const bundle = readBundle(bytes);
    facts = factsOf(bundle, options.fingerprint);
    notes = remarksOn(bundle);
    checkSignature(bundle, options.fingerprint);
    const links = checkChain(bundle);
    const anchors = checkAnchors(bundle, links);
    const beats = beatsOf(bundle);
    const digests = digestsOf(bundle);
    facts = withChecks(facts, { anchors, spans: checkBeats(beats), evidence: checkEvidence(digests, options) });
    const window = { prev: bundle.claims[0]?.chain?.prev ?? '', links: links ?? [], beats, digests };
    return { verdict: accepted(facts, notes), window };
  } catch (error) {
    return { verdict: refused(error, facts, notes) };
  }
}

type Checks = Pick<Facts, 'anchors' | 'evidence'> & { readonly spans: SpanFacts | undefined };

export function withChecks(facts: Facts, { spans, ...checks }: Checks): Facts {
  return { ...facts, ...checks, ...(spans && { spans }) };
}

export function accepted(facts: Facts, notes: readonly string[]): Verdict {
  return { ok: true, level: levelOf(facts), facts, proven: proven(facts), notProven: notProven(facts), notes };
}

/** Of a `Refusal`; whatever else was thrown is a mistake of ours and is thrown again. */
export function refused(error: unknown, facts: Facts | undefined, notes: readonly string[]): Verdict {
  if (!(error instanceof Refusal)) throw error;
  const { stage, reason, seq } = error;
  const failed = { stage, reason, ...(seq !== undefined && { seq }) };
  return { ok: false, level: 'not verified', failed, ...(facts && { facts }), proven: [], notProven: [], notes };
}

function levelOf({ chain, anchors, spans }: Facts): string {
  const levels = ['signed'];
  if (chain) levels.push(chain.isKeyed ? 'chained (structural)' : 'chained (full)');
  const hasProof = anchors.some(({ binds }) => binds === 'proof');
  const isAnchored = hasProof || anchors.some(({ binds }) => binds === 'reference');
  if (isAnchored) levels.push(hasProof ? 'anchored (proof verified)' : 'anchored by reference');
  // A beat says when: without a time from outside that is the producer's word alone.
  if (isAnchored && spans) levels.push('spanned');
  return levels.join(', ');
}
