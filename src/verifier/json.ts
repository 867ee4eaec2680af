/**
 * JSON read strictly and written canonically (RFC 8785). `JSON.parse` will not do: it merges repeated members, rounds
 * numbers and takes half surrogate pairs, so that two readers could see two documents behind one signature.
 * Invariant: what is accepted has exactly one tree, and `canonical` gives that tree exactly one text.
 */
import { isUtf8 } from 'node:buffer';
import { Refusal } from './refusal.js';
import { shown } from './shown.js';

export type Json = null | boolean | number | string | Json[] | JsonObject;
/** A map, for a plain object would lose a member named `__proto__`. */
export type JsonObject = Map<string, Json>;

const MAX_DEPTH = 256;
/** Of all kinds together, some 100,000 entries: an empty object takes two bytes of a file and 250 of memory. */
const MAX_VALUES = 2_000_000;
/** The last integer that a double holds without its neighbor being taken for it. */
const MAX_INTEGER = 2n ** 53n;

const INTEGER = /^-?(0|[1-9][0-9]*)$/;
const FRACTION_OR_EXPONENT = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$/;
const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ['\\', '\\'],
  ['/', '/'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
]);
const WORDS: readonly (readonly [string, Json])[] = [
  ['null', null],
  ['true', true],
  ['false', false],
];

/** The one value that `bytes` hold. Throws a `Refusal` of the stage `parse` that names the byte. */
export function parseJson(bytes: Uint8Array): Json {
  if (!isUtf8(bytes)) throw new Refusal('parse', 'not valid UTF-8');
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    throw new Refusal('parse', 'starts with a byte order mark');
  }
  return new Parser(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)).document();
}

/** RFC 8785: no white space, members sorted by UTF-16 code units, which is how JavaScript compares strings. */
export function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  // Of a number without fraction, and of a text without lone surrogates, JSON.stringify makes just this form.
  if (!(value instanceof Map)) return JSON.stringify(value);
  const members = [...value].sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`;
}

class Parser {
  private at = 0;
  private values = 0;

  constructor(private readonly bytes: Buffer) {}

  document(): Json {
    this.skipSpace();
    const value = this.value(0);
    this.skipSpace();
    if (this.at < this.bytes.length) this.fail('something follows the document');
    return value;
  }

  private value(depth: number): Json {
    if (depth > MAX_DEPTH) this.fail(`nested more than ${MAX_DEPTH} deep`);
    this.values += 1;
    if (this.values > MAX_VALUES) this.fail(`more than ${MAX_VALUES} values: too much for this verifier`);
    const char = this.peek();
    if (char === '{') return this.object(depth);
    if (char === '[') return this.array(depth);
    if (char === '"') return this.string();
    if (char === '-' || (char >= '0' && char <= '9')) return this.number();
    for (const [word, value] of WORDS) {
      if (this.bytes.toString('latin1', this.at, this.at + word.length) !== word) continue;
      this.at += word.length;
      return value;
    }
    return this.fail(char === '' ? 'ends too early' : 'no JSON value');
  }

  private object(depth: number): JsonObject {
    const members = new Map<string, Json>();
    this.at += 1;
    this.skipSpace();
    if (this.skipIf('}')) return members;
    do {
      this.skipSpace();
      if (this.peek() !== '"') this.fail('a member has no name');
      // Compared as the text it means: "n" and "\u006e" are one name.
      const name = this.string();
      if (members.has(name)) this.fail(`the member "${shown(name)}" stands there twice`);
      this.skipSpace();
      if (!this.skipIf(':')) this.fail('no ":" behind the name of a member');
      this.skipSpace();
      members.set(name, this.value(depth + 1));
      this.skipSpace();
    } while (this.skipIf(','));
    if (!this.skipIf('}')) this.fail('an object does not end');
    return members;
  }

  private array(depth: number): Json[] {
    const items: Json[] = [];
    this.at += 1;
    this.skipSpace();
    if (this.skipIf(']')) return items;
    do {
      this.skipSpace();
      items.push(this.value(depth + 1));
      this.skipSpace();
    } while (this.skipIf(','));
    if (!this.skipIf(']')) this.fail('an array does not end');
    return items;
  }

  private number(): number {
    const begin = this.at;
    while (/[-+.0-9eE]/.test(this.peek())) this.at += 1;
    const literal = this.bytes.toString('latin1', begin, this.at);
    if (!INTEGER.test(literal)) {
      this.fail(FRACTION_OR_EXPONENT.test(literal) ? 'a number with a fraction or an exponent' : 'not a JSON number');
    }
    // Compared before it is a double, which would round it; first by length, for a long one takes long to read.
    const isSmall = literal.length <= 17 && BigInt(literal.replace('-', '')) <= MAX_INTEGER;
    if (!isSmall) this.fail('a number beyond 2^53');
    return Number(literal) + 0;
  }

  private string(): string {
    this.at += 1;
    const begin = this.at;
    let hasEscapes = false;
    for (;;) {
      const byte = this.bytes[this.at];
      if (byte === undefined) return this.fail('a text does not end');
      if (byte < 0x20) this.fail('a control character stands in a text as it is');
      if (byte === 0x22) break;
      hasEscapes ||= byte === 0x5c;
      this.at += byte === 0x5c ? 2 : 1;
    }
    const end = this.at;
    if (hasEscapes) return this.unescaped(begin, end);
    this.at += 1;
    return this.bytes.toString('utf8', begin, end);
  }

  /** Into bytes, which are never more than those of the escapes: a text grown by pieces takes many times its size. */
  private unescaped(begin: number, end: number): string {
    const text = Buffer.allocUnsafe(end - begin);
    let length = 0;
    this.at = begin;
    while (this.at < end) {
      const byte = this.bytes[this.at] ?? 0;
      this.at += 1;
      if (byte === 0x5c) length += text.write(this.escaped(), length, 'utf8');
      else length = text.writeUInt8(byte, length);
    }
    this.at = end + 1;
    return text.toString('utf8', 0, length);
  }

  /** What stands behind a backslash. */
  private escaped(): string {
    const char = this.peek();
    this.at += 1;
    if (char !== 'u') return ESCAPES.get(char) ?? this.fail('an escape that there is not');
    const unit = this.codeUnit();
    const text = String.fromCharCode(unit);
    if (unit < 0xd800 || unit > 0xdfff) return text;
    const hasPartner = unit < 0xdc00 && this.skipIf('\\') && this.skipIf('u');
    const pair = hasPartner ? text + String.fromCharCode(this.codeUnit()) : text;
    return pair.isWellFormed() ? pair : this.fail('a lone surrogate');
  }

  private codeUnit(): number {
    const hex = this.bytes.toString('latin1', this.at, this.at + 4);
    if (!/^[0-9a-fA-F]{4}$/.test(hex)) this.fail('an escape without four hexadecimal digits');
    this.at += 4;
    return Number.parseInt(hex, 16);
  }

  private skipSpace(): void {
    for (;;) {
      const byte = this.bytes[this.at];
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return;
      this.at += 1;
    }
  }

  private skipIf(char: string): boolean {
    if (this.peek() !== char) return false;
    this.at += 1;
    return true;
  }

  /** The character of the next byte; nothing at the end. */
  private peek(): string {
    const byte = this.bytes[this.at];
    return byte === undefined ? '' : String.fromCharCode(byte);
  }

  private fail(what: string): never {
    throw new Refusal('parse', `${what} (byte ${this.at})`);
  }
}
