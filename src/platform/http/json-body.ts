/**
 * From the bytes of a request to a JSON object that can be hashed and stored faithfully, or a problem that names the
 * fault. Pure. Invariant: what comes out holds no NUL, no lone surrogate, no overflowed number, nothing that could
 * reach a prototype, and is at most `MAX_DEPTH` deep.
 */
import { escapePointer, findUnstorable, type JsonValue } from '../../kernel/json.js';
import { invalidInput, Problem } from '../../kernel/problems.js';

export type JsonObject = { [key: string]: JsonValue };

/** Deeper than any request has reason to be, and shallow enough for every recursive walk. */
export const MAX_DEPTH = 64;

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The object in `bytes`. Throws `malformed_request` (400) or `invalid_input` (422, with a pointer). */
export function readJsonObject(bytes: Uint8Array): JsonObject {
  const text = decode(bytes);
  if (text.startsWith('\uFEFF')) throw malformed('the body begins with a byte order mark: send plain UTF-8');
  if (isTooDeep(text)) throw malformed(`the body is nested deeper than ${MAX_DEPTH} levels`);
  const value = parse(text);
  if (!isObject(value)) throw malformed('the body must be a JSON object');
  const poisoned = findPrototypeAccess(value);
  if (poisoned !== undefined) throw malformed(`the body has a member name that is not allowed: ${poisoned}`);
  const fault = findUnstorable(value);
  if (fault) throw invalidInput([fault]);
  return value;
}

function decode(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw malformed('the body is not valid UTF-8');
  }
}

function parse(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    // The engine's message quotes the body: it stays here.
    throw malformed('the body is not valid JSON');
  }
}

/** Counts brackets outside strings: the parser itself takes any depth, the walks behind it are recursive. */
export function isTooDeep(text: string): boolean {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i += 1) {
    const char = text.charCodeAt(i);
    if (inString) {
      if (char === 0x5c) i += 1;
      else if (char === 0x22) inString = false;
    } else if (char === 0x22) inString = true;
    else if (char === 0x7b || char === 0x5b) {
      depth += 1;
      if (depth > MAX_DEPTH) return true;
    } else if (char === 0x7d || char === 0x5d) depth -= 1;
  }
  return false;
}

/** The pointer of a member that a careless copy would turn into a prototype, made on the way back. */
export function findPrototypeAccess(value: JsonValue): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i += 1) {
      const found = findPrototypeAccess(value[i] ?? null);
      if (found !== undefined) return `/${i}${found}`;
    }
    return undefined;
  }
  for (const key of Object.keys(value)) {
    const member = value[key] ?? null;
    const isAccess =
      key === '__proto__' || (key === 'constructor' && isObject(member) && Object.hasOwn(member, 'prototype'));
    const found = isAccess ? '' : findPrototypeAccess(member);
    if (found !== undefined) return `/${escapePointer(key)}${found}`;
  }
  return undefined;
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function malformed(detail: string): Problem {
  return new Problem('malformed_request', detail);
}
