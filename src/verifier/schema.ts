/** Readers that turn parsed JSON into typed values. Whatever does not fit throws a `Refusal` that names the place. */
import type { Json, JsonObject } from './json.js';
import { Refusal } from './refusal.js';
import { shown } from './shown.js';

/** `at` is the place in the document, such as `claims[3].chain.seq`. */
export type Reader<T> = (value: Json, at: string) => T;
type Readers<T> = { readonly [K in keyof T]: Reader<T[K]> };

function refuse(at: string, what: string): never {
  throw new Refusal('parse', `${at}: ${what}`);
}

export const text: Reader<string> = (value, at) => (typeof value === 'string' ? value : refuse(at, 'no text'));

export const flag: Reader<boolean> = (value, at) =>
  typeof value === 'boolean' ? value : refuse(at, 'neither true nor false');

export const filled: Reader<string> = (value, at) => text(value, at) || refuse(at, 'empty');

export const anyObject: Reader<JsonObject> = (value, at) => (value instanceof Map ? value : refuse(at, 'no object'));

export function integer(min: number): Reader<number> {
  return (value, at) =>
    typeof value === 'number' && value >= min ? value : refuse(at, `no integer of ${min} or more`);
}

export function textThat(fits: (text: string) => boolean, what: string): Reader<string> {
  return (value, at) => {
    const read = text(value, at);
    return fits(read) ? read : refuse(at, `${what} expected, it is "${shown(read)}"`);
  };
}

export function oneOf<const T extends string>(...words: readonly T[]): Reader<T> {
  return (value, at) => {
    const read = text(value, at);
    return words.find((word) => word === read) ?? refuse(at, `none of ${words.join(', ')}: "${shown(read)}"`);
  };
}

/** Standard base64 with its padding: what Node takes beyond that does not come back as it was. */
export function base64(length?: number): Reader<Buffer> {
  return (value, at) => {
    const read = text(value, at);
    const bytes = Buffer.from(read, 'base64');
    if (bytes.toString('base64') !== read) refuse(at, 'no standard base64');
    return length === undefined || bytes.length === length ? bytes : refuse(at, `not ${length} bytes`);
  };
}

export function listOf<T>(item: Reader<T>, min = 0): Reader<T[]> {
  return (value, at) => {
    if (!Array.isArray(value)) return refuse(at, 'no array');
    if (value.length < min) refuse(at, 'empty');
    return value.map((each, index) => item(each, `${at}[${index}]`));
  };
}

export function mapOf<T>(item: Reader<T>): Reader<Map<string, T>> {
  return (value, at) =>
    new Map([...anyObject(value, at)].map(([name, each]) => [name, item(each, `${at}.${shown(name)}`)]));
}

/** An object with these members and no others. */
export function object<R, O = object>(required: Readers<R>, optional: Readers<O>): Reader<R & Partial<O>> {
  const readers = new Map<string, Reader<unknown>>(Object.entries({ ...required, ...optional }));
  return (value, at) => {
    const members = anyObject(value, at);
    for (const name of Object.keys(required)) if (!members.has(name)) refuse(at, `without "${name}"`);
    const read = [...members].map(([name, member]) => {
      const reader = readers.get(name) ?? refuse(at, `"${shown(name)}" is unknown there`);
      return [name, reader(member, `${at}.${name}`)];
    });
    return Object.fromEntries(read) as R & Partial<O>;
  };
}

/** What `reader` makes of an object, and the object as it was parsed: that is what hashes and signatures cover. */
export function withTree<T>(reader: Reader<T>): Reader<T & { readonly tree: JsonObject }> {
  return (value, at) => ({ ...reader(value, at), tree: anyObject(value, at) });
}
