/** The `Idempotency-Key` of a request, and the digest that tells whether another request bears it rightly. */
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
  if (given.length === 0) throw invalid('the Idempotency-Key is empty');
  if (given.length > MAX_BYTES) throw invalid(`the Idempotency-Key is longer than ${MAX_BYTES} bytes`);
  if (given.startsWith(RESERVED)) throw invalid(`keys that begin with ${RESERVED} are the server's own`);
  return given;
}

/** The digest of a request: method, path without its query, and the canonical form of the decoded body. */
export function requestDigestOf(request: FastifyRequest): string {
  const path = request.url.split('?', 1)[0];
  return digestOf({ method: request.method, path, body: request.body });
}

function invalid(detail: string): Problem {
  return new Problem('idempotency_key_invalid', detail);
}
