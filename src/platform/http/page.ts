/**
 * Pages of a list, newest first: a size, and an opaque cursor behind the last item, which is an instant and an id to
 * us. What can't be understood is refused, never clamped or ignored.
 */
import type { ApiPropertyOptions } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { decodeId, encodeId, type IdPrefix } from '../../kernel/ids.js';
import { parseInstant } from '../../kernel/instant.js';
import type { InputFault } from '../../kernel/problems.js';

export const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 200;

/** `limit` in the OpenAPI document. */
export const LIMIT: ApiPropertyOptions = {
  type: 'integer',
  minimum: 1,
  maximum: MAX_LIMIT,
  required: false,
  default: DEFAULT_LIMIT,
  description: 'How many there are on a page at most.',
};

/** Where a page ends and the next one begins. `id` is a UUID. */
export interface PagePlace {
  readonly at: Date;
  readonly id: string;
}

/** For `@Holds()` on `limit`. */
export function limitFaults(value: unknown): InputFault[] {
  const isLimit = typeof value === 'string' && /^[1-9]\d{0,2}$/.test(value) && Number(value) <= MAX_LIMIT;
  return isLimit ? [] : [{ pointer: '', message: `must be an integer from 1 to ${MAX_LIMIT}` }];
}

/** For `@Holds()` on `cursor`. */
export function cursorFaultsOf(prefix: IdPrefix): (value: unknown) => InputFault[] {
  return (value) =>
    decodeCursor(prefix, value) ? [] : [{ pointer: '', message: 'must be a cursor that this list gave' }];
}

/** What checked parameters ask for. */
export function pageOf(
  prefix: IdPrefix,
  query: { readonly limit?: string; readonly cursor?: string },
): { after: PagePlace | undefined; limit: number } {
  return {
    after: query.cursor === undefined ? undefined : decodeCursor(prefix, query.cursor),
    limit: query.limit === undefined ? DEFAULT_LIMIT : Number(query.limit),
  };
}

/** The cursor behind a page's last item, also given as a `Link` header; null when there are no more. */
export function nextPage(
  prefix: IdPrefix,
  request: FastifyRequest,
  reply: FastifyReply,
  last: PagePlace | undefined,
): string | null {
  return last ? linkNext(request, reply, encodeCursor(prefix, last)) : null;
}

/** Gives a cursor of the next page as a `Link` header too. */
export function linkNext(request: FastifyRequest, reply: FastifyReply, cursor: string): string {
  const url = new URL(request.url, 'http://capstan');
  url.searchParams.set('cursor', cursor);
  void reply.header('link', `<${url.pathname}${url.search}>; rel="next"`);
  return cursor;
}

/** The cursor behind this place. */
export function encodeCursor(prefix: IdPrefix, { at, id }: PagePlace): string {
  return Buffer.from(`${at.toISOString()} ${encodeId(prefix, id)}`).toString('base64url');
}

function decodeCursor(prefix: IdPrefix, value: unknown): PagePlace | undefined {
  if (typeof value !== 'string' || value.length > 200) return undefined;
  const [instant = '', name = '', ...rest] = Buffer.from(value, 'base64url').toString('latin1').split(' ');
  const [at, id] = [parseInstant(instant), decodeId(prefix, name)];
  if (!at || id === undefined || rest.length > 0) return undefined;
  // Only what we would write ourselves: anything else is damaged.
  return encodeCursor(prefix, { at, id }) === value ? { at, id } : undefined;
}
