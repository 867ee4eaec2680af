/** `Idempotency-Key`s, and the digest that tells whether another request bears the same one rightly. */
import type { FastifyRequest } from 'fastify';
import { digestOf } from '../../kernel/json.js';
import { Problem } from '../../kernel/problems.js';

const MAX_BYTES = 255;
/** Keys that the server gives itself. */
const RESERVED = 'st:';

/**
 * The key, or null when there is none. Its length is counted in bytes as they came on the wire: Node gives header
 * bytes as Latin-1, one character each. Throws `idempotency_key_invalid`.
 */
export function idempotencyKeyOf(request: FastifyRequest): string | null {
  const given = request.headers['idempotency-key'];
  if (given === undefined) return null;
  const names = request.raw.rawHeaders.filter((_, i) => i % 2 === 0);
  const isRepeated = names.filter((name) => name.toLowerCase() === 'idempotency-key').length > 1;
  if (isRepeated || Array.isArray(given)) throw invalid('send one Idempotency-Key');
  const fault = keyFaultOf(given);
  if (fault !== undefined) throw invalid(`the Idempotency-Key ${fault}`);
  return given;
}

/** A key that stands in a body, as it would come on the wire in the header. */
export function keyOfText(text: string): string {
  return Buffer.from(text).toString('latin1');
}

/** What is wrong with a key as it comes on the wire. */
export function keyFaultOf(key: string): string | undefined {
  if (key.length === 0) return 'is empty';
  if (key.length > MAX_BYTES) return `is longer than ${MAX_BYTES} bytes`;
  if (key.startsWith(RESERVED)) return `begins with ${RESERVED}: such keys are the server's own`;
  return undefined;
}

/** The digest of a request: method, path without its query, and the canonical form of the decoded body. */
export function requestDigestOf(request: FastifyRequest): string {
  return digestOfParts(request.method, request.url.split('?', 1)[0] ?? '', request.body);
}

/** The same of a request that came inside another one. */
export function digestOfParts(method: string, path: string, body: unknown): string {
  return digestOf({ method, path, body });
}

function invalid(detail: string): Problem {
  return new Problem('idempotency_key_invalid', detail);
}
