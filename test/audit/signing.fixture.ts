/** An application in this process that signs, and what a bundle of it holds. */
import { KeyService } from '../../src/audit/key.service.js';
import { SigningKey } from '../../src/kernel/signing-key.js';
import { verifyBundle } from '../../src/verifier/verify.js';
import type { Answer, LocalSurface } from '../send.js';

/** 32 bytes in base64, as `capstan audit keygen` prints them. */
export function seedOf(byte: number): string {
  return Buffer.alloc(32, byte).toString('base64');
}

export function keyOf(byte: number): SigningKey {
  return SigningKey.of(Buffer.alloc(32, byte));
}

/** The application takes this key as if it had been started with it. */
export async function giveKey(surface: LocalSurface, key: SigningKey): Promise<SigningKey> {
  await surface.app.get(KeyService).admit(key);
  return key;
}

interface Claim {
  readonly payload: Readonly<Record<string, unknown>>;
  readonly chain: { readonly seq: number; readonly link: string };
}

/** Of an answer that is a bundle; its claims, and what our verifier says of it when pinned to this key. */
export function bundleIn({ bytes }: Pick<Answer, 'bytes'>, { fingerprint }: SigningKey) {
  const verdict = verifyBundle(bytes, { fingerprint });
  const document = JSON.parse(bytes.toString()) as { claims: Claim[]; anchors?: { seq: number }[]; bundle_id: string };
  const range = [verdict.facts?.chain?.from, verdict.facts?.chain?.to];
  return { document, verdict, range, actions: document.claims.map(({ payload }) => payload.action) };
}
