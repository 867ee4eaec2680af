/** Reads the members of a server's answer that are printed or decided on. Unknown members are no concern here. */
import { Failure } from './failure.js';

export type Fields = Readonly<Record<string, unknown>>;

export function fieldsOf(value: unknown, what: string): Fields {
  // A JSON value that is an object and no list has members by name.
  if (isFields(value)) return value;
  throw unexpected(`${what} is not an object`);
}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function listOf(fields: Fields, name: string): readonly unknown[] {
  const value = fields[name];
  if (Array.isArray(value)) return value;
  throw unexpected(`${name} is not a list`);
}

export function textOf(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value === 'string') return value;
  throw unexpected(`${name} is not a text`);
}

export function numberOf(fields: Fields, name: string): number {
  const value = fields[name];
  if (typeof value === 'number') return value;
  throw unexpected(`${name} is not a number`);
}

export function booleanOf(fields: Fields, name: string): boolean {
  const value = fields[name];
  if (typeof value === 'boolean') return value;
  throw unexpected(`${name} is neither true nor false`);
}

/** `null` also when the member is absent. */
export function optional<T>(fields: Fields, name: string, read: (fields: Fields, name: string) => T): T | null {
  return fields[name] === undefined || fields[name] === null ? null : read(fields, name);
}

export function unexpected(what: string): Failure {
  const detail = `this is not the answer of a Capstan server: ${what}`;
  return new Failure('unable', { title: 'unexpected answer', detail, code: 'unexpected_answer' }, [
    'does the URL lead to a Capstan server, and is it of this version? see GET /v1/version',
  ]);
}
