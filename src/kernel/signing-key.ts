/**
 * The Ed25519 key that signs evidence, made of a 32-byte seed. Invariant: once made it is held by Node's crypto alone;
 * nothing here hands a seed or a private key out again.
 */
import { createHash, createPrivateKey, createPublicKey, type KeyObject, randomBytes, sign } from 'node:crypto';

const SEED_BYTES = 32;
const PUBLIC_KEY_BYTES = 32;
/** What stands before the seed in the DER of an Ed25519 private key (RFC 8410). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

export class SigningKey {
  /** `sha256:` and the hex digest of the 32 raw bytes of the public key. */
  readonly fingerprint: string;
  /** The 32 raw bytes in base64. */
  readonly publicKey: string;

  private constructor(private readonly key: KeyObject) {
    const raw = Buffer.from(createPublicKey(key).export({ format: 'jwk' }).x ?? '', 'base64url');
    this.publicKey = raw.toString('base64');
    this.fingerprint = fingerprintOf(raw);
  }

  /** `seed` has 32 bytes and stays the caller's. */
  static of(seed: Uint8Array): SigningKey {
    const der = Buffer.concat([PKCS8_PREFIX, seed]);
    const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
    der.fill(0);
    return new SigningKey(key);
  }

  /** The signature in base64; it is made beside the main thread, which a long message would keep. */
  sign(message: Uint8Array): Promise<string> {
    return new Promise((resolve, reject) => {
      sign(null, message, this.key, (error, signature) => {
        if (error) reject(error);
        else resolve(signature.toString('base64'));
      });
    });
  }
}

/** A new random seed. */
export function newSeed(): Buffer {
  return randomBytes(SEED_BYTES);
}

/** The fingerprint of a public key's raw bytes. */
export function fingerprintOf(publicKey: Uint8Array): string {
  return `sha256:${createHash('sha256').update(publicKey).digest('hex')}`;
}

/** The raw bytes of a public key in standard base64, spelled in the one way there is; `undefined` when it is none. */
export function publicKeyIn(text: string): Buffer | undefined {
  const raw = Buffer.from(text, 'base64');
  return raw.length === PUBLIC_KEY_BYTES && raw.toString('base64') === text ? raw : undefined;
}
