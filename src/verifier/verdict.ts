/** What the verifier answers. */
import type { AnchorFacts } from './anchors.js';
import type { EvidenceFacts } from './evidence.js';
import type { Stage } from './refusal.js';
import type { SpanFacts } from './spans.js';

/** What the file says of itself. It is proven as far as `Verdict.proven` says, and not at all unless `ok`. */
export interface Facts {
  readonly bundleId: string;
  readonly createdAt: string;
  /** Of the key in the file. */
  readonly fingerprint: string;
  readonly isPinned: boolean;
  readonly producer: { readonly product: string; readonly version: string; readonly installId: string };
  readonly subject: { readonly type: string; readonly id: string };
  readonly claims: {
    readonly count: number;
    readonly types: readonly string[];
    readonly firstAt: string;
    readonly lastAt: string;
  };
  readonly chain?: ChainFacts;
  readonly anchors: readonly AnchorFacts[];
  readonly spans?: SpanFacts;
  readonly evidence: EvidenceFacts;
}

export interface ChainFacts {
  readonly profile: string;
  readonly isKeyed: boolean;
  readonly installId: string;
  readonly from: number;
  readonly to: number;
  readonly head: { readonly seq: number; readonly link: string };
  /** The head is the last entry; otherwise it lies beyond and is only declared. */
  readonly headMatched: boolean;
}

export interface Verdict {
  readonly ok: boolean;
  /** `signed, chained (full), …`; `not verified` unless `ok`. */
  readonly level: string;
  readonly failed?: { readonly stage: Stage; readonly reason: string; readonly seq?: number };
  /** Missing when the file could not even be read. */
  readonly facts?: Facts;
  /** Sentences for people. */
  readonly proven: readonly string[];
  readonly notProven: readonly string[];
  readonly notes: readonly string[];
}
