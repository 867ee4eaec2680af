/**
 * The document that is signed: LoomSeal 0.1 in its canonical form (RFC 8785), made of the text of the entries as it is
 * stored. Whether that comes out canonical is not taken for granted here: a bundle is checked before it is sent.
 */
import { canonicalJson } from '../kernel/json.js';
import type { SigningKey } from '../kernel/signing-key.js';
import type { ChainHead } from './chain.js';

/** An entry as it is stored; links are lower-case hex. */
export interface StoredEntry {
  readonly seq: number;
  readonly claim: string;
  readonly prev: string;
  readonly link: string;
}

export interface BundleAnchor {
  readonly type: 'rfc3161';
  readonly seq: number;
  readonly link: string;
  /** The authority's own time, RFC 3339. */
  readonly at: string;
  /** Its URL. */
  readonly ref: string;
  /** Its token, in base64. */
  readonly proof: string;
}

export interface BundleContent {
  readonly id: string;
  readonly createdAt: string;
  readonly product: { readonly name: string; readonly version: string };
  /** Id of the chain, which its links hold as `install_id`. */
  readonly chain: string;
  /** Id of whose chain it is. */
  readonly subject: string;
  /** The newest coordinates of the whole chain. */
  readonly head: ChainHead;
  /** Of entries in order and without a gap, as `claimsOf` makes them. */
  readonly claims: readonly Buffer[];
  /** Of entries in the window only. */
  readonly anchors: readonly BundleAnchor[];
}

/** The bytes of the signed bundle: its canonical form and a newline. */
export async function signBundle(content: BundleContent, key: SigningKey): Promise<Buffer> {
  const { before, behind, after } = around(content, key);
  const claims = content.claims.flatMap((part, index) => (index === 0 ? [part] : [COMMA, part]));
  const withSignatures = (text: string, end = '') =>
    Buffer.concat([Buffer.from(before), ...claims, Buffer.from(`${behind}${text}${after}${end}`)]);
  const sig = await key.sign(withSignatures('[]'));
  return withSignatures(canonicalJson([{ alg: 'ed25519', key_id: key.fingerprint, sig }]), '\n');
}

/**
 * The text of entries as it stands in a bundle, without brackets: to be made of a thousand at a time, so that it never
 * keeps the main thread for long. What is hashed is the text as it is stored, so that is what is sent, and nothing is
 * parsed for it (0.2 s in ten thousand). Their coordinates go in behind the first member, `at`.
 */
export function claimsOf(entries: readonly StoredEntry[]): Buffer {
  const texts = entries.map(({ seq, claim, prev, link }) => {
    const behindAt = claim.indexOf('",') + 2;
    const coordinates = `"chain":{"link":"${link}","prev":"${prev}","seq":${seq}},`;
    return `${claim.slice(0, behindAt)}${coordinates}${claim.slice(behindAt)}`;
  });
  return Buffer.from(texts.join(','));
}

const COMMA = Buffer.from(',');

/** What stands before the claims, between them and the value of `signatures`, and after that: members in their order. */
function around(content: BundleContent, { fingerprint, publicKey }: SigningKey) {
  const { id, createdAt, product, chain, subject, head, anchors } = content;
  const coordinates = { profile: 'loomseal-chain-v1', keyed: false, params: { install_id: chain }, head };
  const producer = {
    product: product.name,
    product_version: product.version,
    install_id: chain,
    public_key: publicKey,
    key_id: fingerprint,
  };
  const anchored = anchors.length > 0 ? `"anchors":${canonicalJson(anchors)},` : '';
  return {
    before: `{${anchored}"bundle_id":${canonicalJson(id)},"chain":${canonicalJson(coordinates)},"claims":[`,
    behind: `],"created_at":${canonicalJson(createdAt)},"loomseal":"0.1","producer":${canonicalJson(producer)},"signatures":`,
    after: `,"subject":${canonicalJson({ type: 'fleet', id: subject })}}`,
  };
}
