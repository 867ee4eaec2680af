/** What a bundle says of itself, read off before anything is checked, and what is odd about it and refuses nothing. */
import type { Bundle } from './bundle.js';
import { shown } from './shown.js';
import { fingerprintOf } from './signature.js';
import { SPAN_TYPE } from './spans.js';
import type { Facts } from './verdict.js';

/** `pinned` is the fingerprint that was asked for. */
export function factsOf(bundle: Bundle, pinned: string | undefined): Facts {
  const { producer, subject, claims, chain } = bundle;
  const fingerprint = fingerprintOf(producer.public_key);
  const from = claims[0]?.chain?.seq ?? 0;
  const to = claims.at(-1)?.chain?.seq ?? 0;
  return {
    bundleId: bundle.bundle_id,
    createdAt: bundle.created_at,
    fingerprint,
    isPinned: pinned === fingerprint,
    producer: { product: producer.product, version: producer.product_version, installId: producer.install_id },
    subject: { type: subject.type, id: subject.id },
    claims: {
      count: claims.length,
      types: [...new Set(claims.map(({ type }) => type))].sort(),
      firstAt: claims[0]?.at ?? '',
      lastAt: claims.at(-1)?.at ?? '',
    },
    ...(chain && {
      chain: {
        profile: chain.profile,
        isKeyed: chain.keyed,
        installId: chain.params?.get('install_id') ?? producer.install_id,
        from,
        to,
        head: { seq: chain.head.seq, link: chain.head.link },
        headMatched: chain.head.seq === to,
      },
    }),
    anchors: [],
    evidence: { verified: 0, referenced: 0, missing: 0 },
  };
}

const REGISTERED: readonly string[] = ['switchtender.audit/1', 'switchtender.run/1', SPAN_TYPE];

/** What is odd and refuses nothing. */
export function remarksOn({ claims, chain, producer, signatures }: Bundle): string[] {
  const notes: string[] = [];
  const unknown = [...new Set(claims.map(({ type }) => type))].filter((type) => !REGISTERED.includes(type));
  if (unknown.length > 0) {
    const listed = unknown.slice(0, 5).map((type) => shown(type));
    const more = unknown.length > listed.length ? ` and ${unknown.length - listed.length} more` : '';
    notes.push(`Types of entries outside the registry of LoomSeal: ${listed.join(', ')}${more}.`);
  }
  const first = claims[0]?.chain;
  if (chain && first && first.seq > 1 && !first.prev) {
    notes.push(`Entry ${first.seq} is not the first of its chain, yet it names no entry before it.`);
  }
  const installId = chain?.params?.get('install_id');
  if (installId !== undefined && installId !== producer.install_id) {
    notes.push(`The chain is that of ${shown(installId)}, the producer is ${shown(producer.install_id)}.`);
  }
  if (!chain && claims.some((claim) => claim.chain)) notes.push('Entries have coordinates, and there is no chain.');
  if (signatures.length > 1)
    notes.push(`One of the ${signatures.length} signatures counts: that of the producer's key.`);
  return notes;
}
