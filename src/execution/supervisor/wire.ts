/**
 * Decodes the fields of control messages, whoever speaks them. Invariant: what is not exactly what was expected is a
 * FrameError; nothing is guessed and nothing is converted.
 */
import { FrameError } from './frames.js';

export type Fields = Record<string, unknown>;

/** The object in a control message's payload. Throws FrameError, as everything here. */
export function parseFields(payload: Buffer): Fields {
  let value: unknown;
  try {
    value = JSON.parse(payload.toString());
  } catch {
    throw new FrameError('not JSON');
  }
  return fields(value);
}

export function fields(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new FrameError('not an object');
  return value as Fields;
}

/** An object of `read` values. `fromEntries` defines each name as it is, `__proto__` included. */
export function mapOf<T>(value: unknown, read: (item: unknown) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(fields(value)).map(([name, item]) => [name, read(item)]));
}

export function list(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new FrameError('not a list');
  return value;
}

export function text(value: unknown): string {
  if (typeof value !== 'string') throw new FrameError('not a text');
  return value;
}

export function flag(value: unknown): boolean {
  if (typeof value !== 'boolean') throw new FrameError('not a flag');
  return value;
}

/** A whole number from 0 on. */
export function count(value: unknown): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw new FrameError('not a count');
  return value;
}

/** kill(-1) is every process of the user, kill(0) the caller's own group. */
export function groupId(value: unknown): number {
  const pgid = count(value);
  if (pgid < 2) throw new FrameError('not a process group');
  return pgid;
}

export function oneOf<T extends string>(value: unknown, known: readonly T[]): T {
  const found = known.find((item) => item === value);
  if (found === undefined) throw new FrameError('not a known word');
  return found;
}

/** Null, or what `read` makes of it. */
export function orNull<T>(value: unknown, read: (item: unknown) => T): T | null {
  return value === null ? null : read(value);
}
