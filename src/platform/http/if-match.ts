/** `If-Match` (RFC 9110 §13.1.1): how a thing has to stand for the request to change it. */
import type { FastifyRequest } from 'fastify';
import { Problem } from '../../kernel/problems.js';

const TAG = '(?:W/)?"[\\x21\\x23-\\x7e\\x80-\\xff]*"';
const TAGS = new RegExp(TAG, 'g');
/** Elements of a list may be empty. */
const LIST = new RegExp(`^[ \\t,]*${TAG}(?:[ \\t]*,[ \\t,]*${TAG})*[ \\t,]*$`);

/**
 * Whether a thing that exists may be changed while it has this `ETag`; without the header, and with `*`, whatever it
 * is. A weak tag is never the same as another (strong comparison). Throws `malformed_request`.
 */
export function ifMatchOf(request: FastifyRequest): (etag: string) => boolean {
  const given = request.headers['if-match'];
  if (given === undefined || given === '*') return () => true;
  if (!LIST.test(given)) throw new Problem('malformed_request', 'If-Match must be *, or ETags in double quotes');
  const tags: readonly string[] = given.match(TAGS) ?? [];
  return (etag) => tags.includes(etag);
}
