/** What a request that makes runs bears besides its body. */
import type { FastifyRequest } from 'fastify';
import { idempotencyKeyOf, requestDigestOf } from '../platform/http/idempotency.js';
import { traceparentOf } from '../platform/http/request-id.js';
import type { Bearing } from './submits.js';

/** Throws `idempotency_key_invalid`. The digest of a body, which may have 16 MiB, is not made for nothing. */
export function bearingOf(request: FastifyRequest): Bearing {
  const key = idempotencyKeyOf(request);
  const requestDigest = key === null ? '' : requestDigestOf(request);
  return { traceparent: traceparentOf(request.headers.traceparent), key, requestDigest };
}
