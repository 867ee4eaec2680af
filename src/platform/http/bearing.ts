/** What a request that makes runs bears besides its body. */
import type { FastifyRequest } from 'fastify';
import { idempotencyKeyOf, requestDigestOf } from './idempotency.js';
import { traceparentOf } from './request-id.js';

/** What a request that makes something bears besides its input. */
export interface Bearing {
  readonly traceparent: string | null;
  /** The `Idempotency-Key`, and the digest of the request that bears it. */
  readonly key: string | null;
  readonly requestDigest: string;
}

/** Throws `idempotency_key_invalid`. The digest of a body, which may have 16 MiB, is not made for nothing. */
export function bearingOf(request: FastifyRequest): Bearing {
  const key = idempotencyKeyOf(request);
  const requestDigest = key === null ? '' : requestDigestOf(request);
  return { traceparent: traceparentOf(request.headers.traceparent), key, requestDigest };
}
