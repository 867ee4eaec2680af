/**
 * A strict reader of DER, the encoding of timestamps and certificates: definite lengths in their shortest form, nothing
 * beyond the end, nothing left over. Whoever reads says which value must come next, one level at a time: nothing here
 * recurses, so no nesting of a hostile file can exhaust anything.
 */
import { Refusal } from './refusal.js';

export const TAG = Object.freeze({
  boolean: 0x01,
  integer: 0x02,
  octets: 0x04,
  oid: 0x06,
  time: 0x18,
  sequence: 0x30,
  set: 0x31,
});

/** The tag of a context-specific member that is itself a value or several. */
export const constructed = (number: number): number => 0xa0 | number;
/** The tag of a context-specific member that holds bytes. */
export const primitive = (number: number): number => 0x80 | number;

export interface Der {
  readonly tag: number;
  readonly content: Uint8Array;
  /** Tag, length and content. */
  readonly whole: Uint8Array;
}

/** Reads the values that stand in `bytes` one after the other. `what` names them in refusals. */
export class DerReader {
  private at = 0;

  constructor(
    private readonly bytes: Uint8Array,
    private readonly what: string,
  ) {}

  get isAtEnd(): boolean {
    return this.at === this.bytes.length;
  }

  /** The next value, which must have this tag. */
  take(tag: number): Der {
    return this.takeIf(tag) ?? this.refuse('holds something else than it should');
  }

  /** The next value when it has this tag; otherwise nothing is read. */
  takeIf(tag: number): Der | undefined {
    return this.bytes[this.at] === tag ? this.takeAny() : undefined;
  }

  takeAny(): Der {
    const begin = this.at;
    const tag = this.byte();
    if ((tag & 0x1f) === 0x1f) this.refuse('has a tag of more than one byte');
    const length = this.length();
    const from = this.at;
    if (length > this.bytes.length - from) this.refuse('ends too early');
    this.at = from + length;
    return { tag, content: this.bytes.subarray(from, this.at), whole: this.bytes.subarray(begin, this.at) };
  }

  /** What stands in the next value, which must have this tag. */
  open(tag: number, what = this.what): DerReader {
    return new DerReader(this.take(tag).content, what);
  }

  /** Nothing may follow. */
  end(): void {
    if (!this.isAtEnd) this.refuse('holds more than it should');
  }

  private length(): number {
    const first = this.byte();
    if (first < 0x80) return first;
    const size = first & 0x7f;
    if (size === 0) this.refuse('has no definite length');
    if (size > 4) this.refuse('ends too early');
    let length = 0;
    for (let i = 0; i < size; i += 1) length = length * 256 + this.byte();
    if (length < 0x80 || length < 256 ** (size - 1)) this.refuse('has a length that is not in its shortest form');
    return length;
  }

  private byte(): number {
    const byte = this.bytes[this.at];
    if (byte === undefined) return this.refuse('ends too early');
    this.at += 1;
    return byte;
  }

  private refuse(reason: string): never {
    throw new Refusal('anchor', `${this.what} ${reason}`);
  }
}

/** A whole number of any size as hex, two digits a byte, without the zero byte that only marks it as positive. */
export function integerHex({ content }: Der): string {
  const [first, second] = content;
  const isMinimal = second === undefined || !((first === 0 && second < 0x80) || (first === 0xff && second >= 0x80));
  if (first === undefined || !isMinimal) throw new Refusal('anchor', 'a number is not in its shortest form');
  return Buffer.from(first === 0 && second !== undefined ? content.subarray(1) : content).toString('hex');
}

const LONGEST_OID = 64;

/** An object identifier in dotted form. */
export function oidText({ content }: Der): string {
  const last = content.at(-1);
  if (last === undefined || last >= 0x80 || content.length > LONGEST_OID) throw badOid();
  const arcs: bigint[] = [];
  let arc: bigint | undefined;
  for (const byte of content) {
    if (arc === undefined && byte === 0x80) throw badOid();
    arc = ((arc ?? 0n) << 7n) | BigInt(byte & 0x7f);
    if (byte >= 0x80) continue;
    arcs.push(arc);
    arc = undefined;
  }
  const [first = 0n, ...rest] = arcs;
  const root = first < 80n ? first / 40n : 2n;
  return [root, first - root * 40n, ...rest].join('.');
}

function badOid(): Refusal {
  return new Refusal('anchor', 'an object identifier is malformed');
}
