/** LoomSeal 0.1 as a table: what a bundle must and may hold. Every object but a payload is closed. */
import { parseJson } from './json.js';
import { Refusal } from './refusal.js';
import {
  anyObject,
  base64,
  filled,
  flag,
  integer,
  listOf,
  mapOf,
  object,
  oneOf,
  type Reader,
  text,
  textThat,
  withTree,
} from './schema.js';
import { shown } from './shown.js';
import { isTime } from './time.js';

const HEX = /^[0-9a-f]{64}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const CLAIM_TYPE = /^[a-z][a-z0-9_-]*\.[a-z][a-z0-9_-]*\/[0-9]+$/;

export const isDigest = (value: string): boolean => DIGEST.test(value);

const time = textThat(isTime, 'a time such as 2026-03-02T09:00:00Z');
const digest = textThat(isDigest, 'sha256: and 64 hexadecimal digits');
const link = textThat((value) => HEX.test(value), '64 hexadecimal digits');
const prev = textThat((value) => value === '' || HEX.test(value), 'nothing or 64 hexadecimal digits');
const claimType = textThat((value) => CLAIM_TYPE.test(value), 'a type such as acme.audit/1');

const coordinates = object({ seq: integer(1), link }, { prev });

const producer = object(
  { product: filled, product_version: filled, install_id: filled, public_key: base64(32), key_id: digest },
  {},
);
const subject = object({ type: oneOf('url', 'fleet', 'repo'), id: filled }, {});
const chain = object(
  { profile: oneOf('loomseal-chain-v1', 'switchtender-audit-v1'), keyed: flag, head: coordinates },
  { params: mapOf(text) },
);
const evidence = object({ role: filled, digest }, { media_type: text, present: flag, location: text });
/** Carried and hashed; nothing computes it again. */
const verdict = object(
  { policy: filled, decision: filled },
  { policy_digest: digest, inputs_digest: digest, detail: text },
);
const claim = withTree(
  object(
    { type: claimType, at: time, payload: anyObject },
    { evidence: listOf(evidence), verdict, chain: coordinates },
  ),
);
const anchor = object(
  { type: oneOf('rfc3161', 'git', 'https', 'rekor'), seq: integer(1), link, at: time, ref: filled },
  { proof: base64() },
);
const signature = object({ key_id: digest, alg: text, sig: base64(64) }, {});
const bundle = withTree(
  object(
    {
      loomseal: text,
      bundle_id: filled,
      created_at: time,
      producer,
      subject,
      claims: listOf(claim, 1),
      signatures: listOf(signature, 1),
    },
    { chain, anchors: listOf(anchor) },
  ),
);

type Read<R> = R extends Reader<infer T> ? T : never;
export type Bundle = Read<typeof bundle>;
export type Claim = Read<typeof claim>;
export type Anchor = Read<typeof anchor>;

/** Throws a `Refusal` of the stage `parse`. */
export function readBundle(bytes: Uint8Array): Bundle {
  const tree = parseJson(bytes);
  // Before all else: another version may well have other members.
  const version = tree instanceof Map ? tree.get('loomseal') : undefined;
  if (typeof version === 'string' && version !== '0.1') {
    throw new Refusal('parse', `LoomSeal ${shown(version)}: this verifier speaks 0.1 only`);
  }
  return bundle(tree, 'bundle');
}
