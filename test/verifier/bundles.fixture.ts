/**
 * Bundles made here, by code that shares nothing with the verifier: the worked example of the format, and whatever a
 * test makes of it. Sealing comes last, so that a lie is a signed one and only the check it is meant for can find it.
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import { canonicalJson, sha256Hex } from '../../src/kernel/json.js';

// biome-ignore lint/suspicious/noExplicitAny: a test may put anything anywhere
export type Loose = any;

const EXAMPLE_SEED = Buffer.from(Array.from({ length: 32 }, (_, index) => index + 1));
const OTHER_SEED = Buffer.alloc(32, 7);

export interface Key {
  readonly secret: KeyObject;
  readonly publicKey: Buffer;
  readonly fingerprint: string;
}

function keyOf(seed: Uint8Array): Key {
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]);
  const secret = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const publicKey = createPublicKey(secret).export({ format: 'der', type: 'spki' }).subarray(-32);
  return { secret, publicKey, fingerprint: `sha256:${sha256Hex(publicKey)}` };
}

export const KEY = keyOf(EXAMPLE_SEED);
export const OTHER_KEY = keyOf(OTHER_SEED);

/** The three entries of the worked example. */
export function exampleClaims(): Loose[] {
  return [
    {
      at: '2026-03-02T09:00:00Z',
      payload: { action: 'project.create', actor: 'usr_1', ok: true, target: 'prj_9' },
      type: 'acme.audit/1',
    },
    {
      at: '2026-03-02T09:00:01.250Z',
      payload: { actor: 'usr_é', action: 'a<b&c', n: -5, none: null, note: 'tab\there "q" \\ \u2028 \u0001' },
      type: 'acme.audit/1',
    },
    {
      at: '2026-03-02T09:00:02Z',
      evidence: [{ digest: `sha256:${sha256Hex('hello evidence\n')}`, media_type: 'text/plain', role: 'artifact' }],
      payload: { a: {}, b: [1, {}], '\u{1F600}': 1, '\uFB33': 2 },
      type: 'acme.audit/1',
    },
  ];
}

/** The link of a claim of loomseal-chain-v1, and what it is the hash of. */
export function linkOf(claim: Loose, seq: number, prev: string, installId = 'in_demo') {
  const { chain: _, ...content } = claim;
  const digest = `sha256:${sha256Hex(canonicalJson(content))}`;
  const input = canonicalJson({ claim: digest, domain: 'loomseal-chain-v1', install_id: installId, prev, seq });
  return { digest, input, link: sha256Hex(input) };
}

/** The claims with coordinates that hold. */
export function linked(claims: readonly Loose[], from = 1, before = '', installId = 'in_demo'): Loose[] {
  let prev = before;
  return claims.map((claim, index) => {
    const seq = from + index;
    const { link } = linkOf(claim, seq, prev, installId);
    const chain = { seq, prev, link };
    prev = link;
    return { ...claim, chain };
  });
}

/** An unsigned bundle of linked claims, whose head is the last of them. */
export function bundleOf(claims: readonly Loose[], key: Key = KEY, installId = 'in_demo'): Loose {
  const { seq, link } = claims.at(-1).chain;
  return {
    loomseal: '0.1',
    bundle_id: 'lsb_demo',
    created_at: '2026-03-02T10:00:00Z',
    producer: {
      product: 'acme',
      product_version: '1.0.0',
      install_id: installId,
      public_key: key.publicKey.toString('base64'),
      key_id: key.fingerprint,
    },
    subject: { type: 'fleet', id: 'org_1' },
    chain: { profile: 'loomseal-chain-v1', keyed: false, params: { install_id: installId }, head: { seq, link } },
    claims,
    signatures: [],
  };
}

export const exampleBundle = (): Loose => bundleOf(linked(exampleClaims()));

export function messageOf(bundle: Loose): string {
  return canonicalJson({ ...bundle, signatures: [] });
}

export function signatureOf(bundle: Loose, key: Key = KEY): Loose {
  const sig = sign(null, Buffer.from(messageOf(bundle)), key.secret).toString('base64');
  return { key_id: key.fingerprint, alg: 'ed25519', sig };
}

/** Signed by its key, whatever it says. */
export function sealed(bundle: Loose, key: Key = KEY): Loose {
  return { ...bundle, signatures: [signatureOf(bundle, key)] };
}

export function bytesOf(bundle: Loose): Buffer {
  return Buffer.from(`${canonicalJson(bundle)}\n`);
}

/** Entries of a plain kind. */
export function plainClaims(count: number, type = 'acme.audit/1'): Loose[] {
  const start = Date.parse('2026-03-02T09:00:00Z');
  return Array.from({ length: count }, (_, index) => ({
    at: new Date(start + index * 1_000).toISOString(),
    payload: { action: 'thing.changed', object: `thing_${index}`, principal: 'tok_1' },
    type,
  }));
}

/** Windows `[from, to]` of one chain, each a sealed bundle with the chain's honest head. */
export function windowsOf(claims: readonly Loose[], ranges: readonly (readonly [number, number])[]): Loose[] {
  const { seq, link } = claims.at(-1).chain;
  return ranges.map(([from, to]) => {
    const bundle = bundleOf(claims.slice(from - 1, to));
    return sealed({ ...bundle, chain: { ...bundle.chain, head: { seq, link } } });
  });
}
