/** What can be wrong about a request. Each mutation takes one apart and puts it together a little worse. */
import fc from 'fast-check';
import type { Operation, Things } from './document.js';
import {
  BAD_BYTES,
  HEADERS,
  HOSTILE,
  METHODS,
  PATHS,
  QUERY_NAMES,
  QUERY_VALUES,
  SEGMENTS,
  TOKENS,
  WRAPPED,
} from './hostile.js';
import type { Json } from './values.js';

/** A request that is still to be written: of its bodies the rawest counts. Texts but `text` are bytes as Latin-1. */
export interface Draft {
  readonly method: string;
  readonly path: string;
  /** Encoded: `name=value`. */
  readonly query: readonly string[];
  readonly headers: readonly (readonly [string, string])[];
  readonly json?: Json;
  readonly text?: string;
  readonly bytes?: Buffer;
}

export type Mutation = (draft: Draft) => Draft;

/** Percent-encoded, whatever is in it. */
export function percent(text: string): string {
  return Buffer.from(text)
    .toString('latin1')
    .replace(/[^A-Za-z0-9._~-]/g, (char) => `%${hex(char)}`);
}

function hex(char: string): string {
  return char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0');
}

export function mutations(operation: Operation, things: Things): fc.Arbitrary<Mutation> {
  const ofBody = fc.oneof(memberReplaced, memberAdded, memberRemoved, tokenReplaced, textBroken, bytesBroken);
  const ways = [headerGiven, methodChanged, pathChanged, queryChanged(operation), cursorDamaged(things), sizeBlown];
  const body = { weight: operation.body ? 12 : 2, arbitrary: ofBody };
  return fc.oneof(body, ...ways.map((arbitrary) => ({ weight: 2, arbitrary })));
}

// The values of a body.

type Path = readonly (string | number)[];

function placesOf(value: Json, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  const members = Array.isArray(value) ? value.slice(0, 5).map((one, i) => [i, one] as const) : Object.entries(value);
  return [path, ...members.flatMap(([name, one]) => placesOf(one, [...path, name]))];
}

/** The value with what `change` makes of the one at a place; undefined takes it out. */
function changedAt(value: Json, [name, ...rest]: Path, change: (old: Json) => Json | undefined): Json | undefined {
  if (name === undefined) return change(value);
  if (Array.isArray(value)) {
    return value.flatMap((one, i) => {
      const changed = i === name ? changedAt(one, rest, change) : one;
      return changed === undefined ? [] : [changed];
    });
  }
  const members = Object.entries(value as { [name: string]: Json }).flatMap(([key, one]) => {
    const changed = key === name ? changedAt(one, rest, change) : one;
    return changed === undefined ? [] : [[key, changed] as const];
  });
  return Object.fromEntries(members);
}

function atSomePlace(choice: number, change: (old: Json) => Json | undefined): Mutation {
  return (draft) => {
    const json = draft.json ?? {};
    const places = placesOf(json);
    return withBody(draft, { json: changedAt(json, places[choice % places.length] ?? [], change) ?? null });
  };
}

function withBody(draft: Draft, body: Pick<Draft, 'json' | 'text' | 'bytes'>): Draft {
  const isNamed = draft.headers.some(([name]) => name.toLowerCase() === 'content-type');
  const headers = isNamed ? draft.headers : [...draft.headers, ['Content-Type', 'application/json'] as const];
  return { ...draft, headers, ...body };
}

const choice = fc.nat({ max: 200 });
const values = fc.oneof(fc.constantFrom(...HOSTILE), fc.jsonValue() as fc.Arbitrary<Json>);
const names = fc.constantFrom(
  'surprise',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  '',
  '\u0000',
  '\ud800',
  'then',
  '$ref',
  'x'.repeat(20_000),
  '0',
  'length',
);

const memberReplaced = fc.tuple(choice, values).map(([at, value]) => atSomePlace(at, () => value));

const memberAdded = fc.tuple(choice, names, values).map(([at, name, value]) =>
  // Not as a literal would: `__proto__` is to become a member.
  atSomePlace(at, (old) =>
    Object.fromEntries([
      ...Object.entries(typeof old === 'object' && !Array.isArray(old) ? (old ?? {}) : {}),
      [name, value],
    ]),
  ),
);

const memberRemoved = choice.map((at) => atSomePlace(at + 1, () => undefined));

// Its text.

const MARK = '\u0001mark\u0001';

const tokenReplaced = fc.tuple(choice, fc.constantFrom(...TOKENS)).map(
  ([at, token]): Mutation =>
    (draft) => {
      const { json = null } = atSomePlace(at, () => MARK)(draft);
      return withBody(draft, { text: JSON.stringify(json).replace(JSON.stringify(MARK), () => token) });
    },
);

const textBroken = fc.oneof(
  fc.constantFrom(...WRAPPED).map(
    (wrap): Mutation =>
      (draft) =>
        withBody(draft, { text: wrap(textOf(draft)) }),
  ),
  choice.map(
    (keep): Mutation =>
      (draft) => {
        const text = textOf(draft);
        return withBody(draft, { text: text.slice(0, (keep * text.length) / 201) });
      },
  ),
);

function textOf({ json, text }: Draft): string {
  return text ?? JSON.stringify(json ?? {});
}

const bytesBroken = fc.oneof(
  fc.tuple(choice, fc.constantFrom(...BAD_BYTES)).map(
    ([at, bad]): Mutation =>
      (draft) => {
        const bytes = Buffer.from(textOf(draft));
        const cut = Math.floor((at * bytes.length) / 200);
        return withBody(draft, { bytes: Buffer.concat([bytes.subarray(0, cut), bad, bytes.subarray(cut)]) });
      },
  ),
  fc.constant<Mutation>((draft) => withBody(draft, { bytes: Buffer.from(textOf(draft), 'utf16le') })),
  fc.uint8Array({ maxLength: 200 }).map(
    (bytes): Mutation =>
      (draft) =>
        withBody(draft, { bytes: Buffer.from(bytes) }),
  ),
);

const sizeBlown = fc.constantFrom(1_048_576, 1_048_577, 1_048_577, 3_000_000).map(
  (size): Mutation =>
    (draft) =>
      withBody(draft, {
        bytes: Buffer.concat([Buffer.from(textOf(draft)), Buffer.alloc(size, 0x20)]).subarray(0, size),
      }),
);

// Around it.

const headerGiven = fc.oneof(
  ...Object.entries(HEADERS).map(([name, given]) =>
    fc.tuple(fc.constantFrom(...given), fc.boolean()).map(([value, isAdded]) => withHeader(name, value, isAdded)),
  ),
  fc.constantFrom('Host', 'Authorization', 'Content-Type').map(
    (name): Mutation =>
      (draft) => ({ ...draft, headers: others(draft, name) }),
  ),
  fc.constant<Mutation>((draft) => ({
    ...draft,
    headers: [...draft.headers, ...Array.from({ length: 300 }, (_, i) => [`X-${i}`, 'x'] as const)],
  })),
);

/** In place of the one that there is, or beside it. */
function withHeader(name: string, value: string, isAdded: boolean): Mutation {
  return (draft) => ({ ...draft, headers: [...(isAdded ? draft.headers : others(draft, name)), [name, value]] });
}

function others({ headers }: Draft, name: string): Draft['headers'] {
  return headers.filter(([one]) => one.toLowerCase() !== name.toLowerCase());
}

const methodChanged = fc.constantFrom(...METHODS).map(
  (method): Mutation =>
    (draft) => ({ ...draft, method }),
);

const pathChanged = fc.oneof(
  fc.tuple(choice, fc.constantFrom(...SEGMENTS)).map(
    ([at, segment]): Mutation =>
      (draft) => {
        const parts = draft.path.split('/');
        return { ...draft, path: parts.with(1 + (at % (parts.length - 1)), segment).join('/') };
      },
  ),
  fc.constantFrom(...PATHS).map(
    (change): Mutation =>
      (draft) => ({ ...draft, path: change(draft.path) }),
  ),
);

function queryChanged({ parameters }: Operation): fc.Arbitrary<Mutation> {
  const known = parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => name);
  const own = known.length > 0 ? [fc.constantFrom(...known), fc.constantFrom(...known)] : [];
  const name = fc.oneof(...own, fc.constantFrom(...QUERY_NAMES));
  const given = fc.tuple(name, fc.constantFrom(...QUERY_VALUES), fc.integer({ min: 1, max: 3 }));
  const added = given.map(
    ([one, value, times]): Mutation =>
      (draft) => ({ ...draft, query: [...draft.query, ...Array<string>(times).fill(`${one}=${value}`)] }),
  );
  const odd = fc.constantFrom(
    '?',
    '&&&',
    '=',
    '===',
    '#',
    'a',
    'a;b=1',
    'limit',
    ...[1_000].map((n) => 'a=1&'.repeat(n)),
  );
  return fc.oneof(
    { weight: 4, arbitrary: added },
    odd.map(
      (text): Mutation =>
        (draft) => ({ ...draft, query: [...draft.query, text] }),
    ),
  );
}

/** A cursor of another list, or one that was changed in one place; in the body where that has one. */
function cursorDamaged({ cursors }: Things): fc.Arbitrary<Mutation> {
  const damaged = fc
    .tuple(fc.constantFrom(...cursors), choice, fc.constantFrom('', 'A', '_', '=', '%', '\u00e9'))
    .map(([cursor, at, char]) => {
      const place = at % cursor.length;
      return `${cursor.slice(0, place)}${char}${cursor.slice(place + 1)}`;
    });
  const inside = fc
    .tuple(fc.constantFrom(...cursors), choice, fc.constantFrom('', '0', '9', ' ', '\u0000', 'z'))
    .map(([cursor, at, char]) => {
      const text = Buffer.from(cursor, 'base64url').toString('latin1');
      const place = at % text.length;
      return Buffer.from(`${text.slice(0, place)}${char}${text.slice(place + 1)}`, 'latin1').toString('base64url');
    });
  return fc.tuple(fc.oneof(fc.constantFrom(...cursors), damaged, inside), fc.boolean()).map(
    ([cursor, isInBody]): Mutation =>
      (draft) => {
        const { json } = draft;
        const hasBody = typeof json === 'object' && json !== null && !Array.isArray(json);
        if (isInBody && hasBody) return { ...draft, json: { ...json, cursor } };
        return {
          ...draft,
          query: [...draft.query.filter((one) => !one.startsWith('cursor=')), `cursor=${percent(cursor)}`],
        };
      },
  );
}
