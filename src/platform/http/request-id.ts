/** The names a request travels under: its id, and the trace it belongs to. */
import { encodeId, newId } from '../../kernel/ids.js';

const MAX_LENGTH = 128;

/** The caller's `X-Request-Id` when it is 1 to 128 visible ASCII characters, otherwise a new one. */
export function requestIdOf(given: string | readonly string[] | undefined): string {
  if (typeof given === 'string' && given.length <= MAX_LENGTH && /^[\x21-\x7e]+$/.test(given)) return given;
  return encodeId('req', newId());
}

/** A `traceparent` that follows W3C Trace Context, or null: a bad one is dropped, as the standard asks. */
export function traceparentOf(given: string | readonly string[] | undefined): string | null {
  if (typeof given !== 'string') return null;
  const match = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/.exec(given);
  if (!match) return null;
  const [, version, trace, parent, rest] = match;
  if (version === 'ff' || /^0+$/.test(trace ?? '') || /^0+$/.test(parent ?? '')) return null;
  if (version === '00' && rest !== undefined) return null;
  // A later version may carry more: what is known of it is kept.
  return given.slice(0, 55);
}
