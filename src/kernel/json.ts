/** JSON that is hashed or stored: the canonical form, digests, and what PostgreSQL or a hash could not take. */
import { createHash } from 'node:crypto';
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
  return createHash('sha256').update(data).digest('hex');
}

/** `sha256:` and the hex digest of the canonical form. */
export function digestOf(value: unknown): string {
  return `sha256:${sha256Hex(canonicalJson(value))}`;
}

/** The first place, as a JSON pointer and the reason, where a parsed value holds what can't be stored faithfully. */
export function findUnstorable(value: unknown, pointer = ''): { pointer: string; message: string } | undefined {
  if (typeof value === 'string') {
    const fault = stringFault(value);
    return fault ? { pointer, message: fault } : undefined;
  }
  if (typeof value === 'number' && !Number.isFinite(value)) return { pointer, message: 'number is out of range' };
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, member] of Object.entries(value)) {
    const at = `${pointer}/${escapePointer(key)}`;
    const fault = stringFault(key);
    if (fault) return { pointer: at, message: `member name: ${fault}` };
    const found = findUnstorable(member, at);
    if (found) return found;
  }
  return undefined;
}

function stringFault(text: string): string | undefined {
  if (text.includes('\0')) return 'must not contain the character NUL';
  return text.isWellFormed() ? undefined : 'must be well-formed Unicode (lone surrogate)';
}

/** One reference token of a JSON pointer (RFC 6901), made printable. */
export function escapePointer(key: string): string {
  return key.replaceAll('\0', '\\u0000').toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1');
}
