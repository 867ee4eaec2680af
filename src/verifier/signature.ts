/** The signature: whoever holds the key that the bundle itself names has signed all of it but the signatures. */
import { createPublicKey, hash, verify } from 'node:crypto';
import type { Bundle } from './bundle.js';
import { canonical } from './json.js';
import { Refusal } from './refusal.js';

/** What stands before the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo (RFC 8410). */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

/**
 * Keys of small order, in every encoding, without the sign bit: whoever wants to can make a signature that holds under
 * them, for nobody has their secret.
 */
const WEAK_KEYS: readonly string[] = [
  '00'.repeat(32),
  `01${'00'.repeat(31)}`,
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  `ec${'ff'.repeat(30)}7f`,
  `ed${'ff'.repeat(30)}7f`,
  `ee${'ff'.repeat(30)}7f`,
];

function isWeak(publicKey: Uint8Array): boolean {
  const unsigned = Buffer.from(publicKey);
  unsigned[31] = (unsigned[31] ?? 0) & 0x7f;
  return WEAK_KEYS.includes(unsigned.toString('hex'));
}

/** The digest of the raw key, not of any encoding of it. */
export function fingerprintOf(publicKey: Uint8Array): string {
  return `sha256:${hash('sha256', publicKey)}`;
}

/** `pinned` is the fingerprint that was learned elsewhere; without it, any key will do. */
export function checkSignature({ producer, signatures, tree }: Bundle, pinned: string | undefined): void {
  const fingerprint = fingerprintOf(producer.public_key);
  if (producer.key_id !== fingerprint) refuse('producer.key_id is not the digest of producer.public_key');
  if (isWeak(producer.public_key)) refuse('a key under which anybody can sign');
  // `alg` is outside the signed bytes: it never selects an algorithm, and a foreign one is refused in every entry.
  if (signatures.some(({ alg }) => alg !== 'ed25519')) refuse('an algorithm other than ed25519');
  const own = signatures.filter(({ key_id }) => key_id === fingerprint);
  if (own.length === 0) refuse("no signature of the producer's key");

  const key = createPublicKey({ key: Buffer.concat([SPKI_PREFIX, producer.public_key]), format: 'der', type: 'spki' });
  const message = Buffer.from(canonical(new Map([...tree, ['signatures', []]])));
  if (!own.some(({ sig }) => verify(null, message, key, sig))) {
    refuse("the producer's key has not signed this: it was changed after signing, or signed with another key");
  }
  if (pinned !== undefined && pinned !== fingerprint) refuse(`signed by ${fingerprint}, not by the pinned ${pinned}`);
}

function refuse(reason: string): never {
  throw new Refusal('signature', reason);
}
