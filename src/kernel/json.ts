/** JSON that is hashed or stored: the canonical form, digests, and what PostgreSQL or a hash could not take. */
import { hash } from 'node:crypto';
import canonicalize from 'canonicalize';

export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

/** RFC 8785 text of a plain JSON value. Throws on what JSON cannot say (NaN, lone surrogates). */
export function canonicalJson(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError('not a JSON value');
  return text;
}

/** Lower-case hex SHA-256; text is hashed as UTF-8. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex');
}

/** `sha256:` and the hex digest of the canonical form. */
export function digestOf(value: unknown): string {
  return `sha256:${sha256Hex(canonicalJson(value))}`;
}

/** A place in a value, as a JSON pointer, and what is wrong there. */
export interface JsonFault {
  readonly pointer: string;
  readonly message: string;
}

/**
 * The first place where a parsed value holds what can't be stored faithfully. The pointer is made on the way back from a
 * fault: made on the way down, it cost 0.9 µs a byte of a body that has none.
 */
export function findUnstorable(value: unknown): JsonFault | undefined {
  if (typeof value === 'string') return faultHere(stringFault(value));
  if (typeof value === 'number') return faultHere(Number.isFinite(value) ? undefined : 'number is out of range');
  if (typeof value !== 'object' || value === null) return undefined;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i += 1) {
      const found = findUnstorable(value[i]);
      if (found) return under(String(i), found);
    }
    return undefined;
  }
  for (const key of Object.keys(value)) {
    const fault = stringFault(key);
    if (fault) return under(key, { pointer: '', message: `member name: ${fault}` });
    const found = findUnstorable((value as Record<string, unknown>)[key]);
    if (found) return under(key, found);
  }
  return undefined;
}

function faultHere(message: string | undefined): JsonFault | undefined {
  return message === undefined ? undefined : { pointer: '', message };
}

/** The fault seen from the value that holds it under this name. */
function under(key: string, { pointer, message }: JsonFault): JsonFault {
  return { pointer: `/${escapePointer(key)}${pointer}`, message };
}

function stringFault(text: string): string | undefined {
  if (text.includes('\0')) return 'must not contain the character NUL';
  return text.isWellFormed() ? undefined : 'must be well-formed Unicode (lone surrogate)';
}

/** One reference token of a JSON pointer (RFC 6901), made printable. */
export function escapePointer(key: string): string {
  return key.replaceAll('\0', '\\u0000').toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1');
}
