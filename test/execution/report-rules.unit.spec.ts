import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import {
  decodeOutput,
  decodeReport,
  MAX_LINE_BYTES,
  MAX_PROGRESS_BYTES,
  type ReportLine,
  ReportLines,
} from '../../src/execution/report.rules.js';
import { MAX_OUTPUT_FILE_BYTES } from '../../src/execution/supervisor/protocol.js';

/** What the lines are when the bytes come in these pieces. */
function linesOf(...pieces: Buffer[]): { number: number; text: string | null }[] {
  const lines = new ReportLines();
  const found: ReportLine[] = pieces.flatMap((piece) => [...lines.read(piece)]);
  const rest = lines.rest();
  if (rest !== null) found.push(rest);
  return found.map(({ number, bytes }) => ({ number, text: bytes?.toString('latin1') ?? null }));
}

function cutAt(bytes: Buffer, places: readonly number[]): Buffer[] {
  const borders = [0, ...[...places].sort((a, b) => a - b), bytes.length];
  return borders.slice(1).map((end, i) => bytes.subarray(borders[i], end));
}

const decode = (bytes: string | Buffer) => decodeReport({ number: 1, bytes: Buffer.from(bytes) });
const refusal = (bytes: string | Buffer) => {
  const decoded = decode(bytes);
  return decoded !== null && 'refused' in decoded ? decoded.refused : decoded;
};

describe('lines of an events file', () => {
  it('are the same wherever their bytes were cut', () => {
    const bytes = Buffer.from('{"a":"ä€😀"}\n\n\r\n{"b":2}\nlast');
    const whole = linesOf(bytes);
    expect(whole.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5]);
    for (let place = 0; place <= bytes.length; place += 1) expect(linesOf(...cutAt(bytes, [place]))).toEqual(whole);
    expect(linesOf(...cutAt(bytes, [...bytes.keys()]))).toEqual(whole);
  });

  it('are what lies between newlines, for any bytes in any pieces', () => {
    const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array.map((byte) => byte % 16)));
    fc.assert(
      fc.property(bytes, fc.array(fc.nat(200), { maxLength: 8 }), (data, cuts) => {
        const places = cuts.filter((place) => place <= data.length);
        const expected = data.toString('latin1').split('\n');
        if (expected.at(-1) === '') expected.pop();
        expect(linesOf(...cutAt(data, places)).map(({ text }) => text)).toEqual(expected);
      }),
    );
  });

  it('may be 256 KiB long; a longer one is named once, thrown away as it comes, and the next one is read', () => {
    const longest = Buffer.alloc(MAX_LINE_BYTES, 'x');
    const tooLong = Buffer.concat([longest, Buffer.from('x')]);
    const [end, next] = [Buffer.from('\n'), Buffer.from('next\n')];
    const pieces = cutAt(Buffer.concat([longest, end, tooLong, end, next]), [1, 70_000, MAX_LINE_BYTES + 70_000]);
    expect(linesOf(...pieces).map(({ number, text }) => [number, text?.length ?? null])).toEqual([
      [1, MAX_LINE_BYTES],
      [2, null],
      [3, 4],
    ]);
    expect(linesOf(...Array(40).fill(longest), end, next).map(({ number, text }) => [number, text])).toEqual([
      [1, null],
      [2, 'next'],
    ]);
    expect(linesOf(...Array(3).fill(longest)).map(({ text }) => text)).toEqual([null]);
  });
});

describe('a line', () => {
  it('is an event of its own type with its other members, or a message', () => {
    expect(decode('{"type":"progress","percent":50,"note":null}')).toEqual({
      type: 'progress',
      data: { percent: 50, note: null },
    });
    expect(decode('{"text":"hi"}')).toEqual({ type: 'message', data: { text: 'hi' } });
    expect(decode('{}')).toEqual({ type: 'message', data: {} });
    for (const value of [[1], 'text', 7, true, null]) {
      expect(decode(JSON.stringify(value))).toEqual({ type: 'message', data: { value } });
    }
    expect(decode(' {"type":"a.b_c-9"}\r')).toEqual({ type: 'a.b_c-9', data: {} });
  });

  it.each(['', ' ', '\t\r', '   \r'])('that is blank (%j) is none', (text) => {
    expect(decode(text)).toBeNull();
  });

  it.each(['run.ended', 'run.', 'Progress', '', '9a', 'a b', `a${'b'.repeat(63)}`, 'a\n', 7, null, {}])(
    'of type %j is refused: the types of the product itself cannot be told by a tool',
    (type) => {
      expect(refusal(JSON.stringify({ type }))).toContain('its type must match');
    },
  );

  it.each([
    ['not valid UTF-8', Buffer.from([0x22, 0xc3, 0x28, 0x22])],
    ['not valid UTF-8', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
    ['not valid UTF-8', Buffer.from('\xffcut', 'latin1')],
    ['not valid JSON', '{"a":1'],
    ['not valid JSON', '{"a":1} {"b":2}'],
    ['not valid JSON', '\uFEFF{"a":1}'],
    ['not valid JSON', Buffer.alloc(8)],
    ['nested deeper than 64 levels', `${'['.repeat(65)}${']'.repeat(65)}`],
    ['a value in it cannot be stored: must not contain the character NUL', '{"secret":"a\\u0000"}'],
    ['a value in it cannot be stored: member name: must not contain the character NUL', '{"secret\\u0000":1}'],
    ['a value in it cannot be stored: must be well-formed Unicode (lone surrogate)', '{"a":["\\ud800"]}'],
    ['a value in it cannot be stored: number is out of range', '{"a":1e999}'],
    ['a value in it cannot be stored: number is out of range', '[0,[{"a":[-1e999]}]]'],
    ['a member has a name that is not allowed', '{"a":{"__proto__":{}}}'],
    ['a member has a name that is not allowed', '[{"a":{"constructor":{"prototype":null}}}]'],
  ])('is refused as %s, and the reason does not quote it', (reason, bytes) => {
    expect(refusal(bytes)).toBe(reason);
  });

  it('may hold what is deep, long and strange, as long as it can be stored', () => {
    const deep = `${'['.repeat(64)}${']'.repeat(64)}`;
    expect(decode(deep)).toMatchObject({ type: 'message' });
    expect(decode('{"constructor":{"a":1},"prototype":{}}')).toHaveProperty('data');
    expect(decode('{"a":"[[[[\\"{","b":"\\u001b[31m\\u2028"}')).toMatchObject({ data: { a: '[[[["{' } });
  });

  it('is looked through without a note of each place, which would hold everything else up for 200 ms', () => {
    const replaces = vi.spyOn(String.prototype, 'replaceAll');
    expect(decode(`[${'[],{"a":0},'.repeat(20_000)}1e999]`)).toHaveProperty('refused');
    expect(decode(`[${'[],{"a":0},'.repeat(20_000)}0]`)).toHaveProperty('data');
    expect(replaces.mock.calls.length, 'only on the way back from a fault').toBeLessThan(10);
    replaces.mockRestore();
  });

  it('of progress may hold 16 KiB', () => {
    const overhead = '{"note":""}'.length;
    const progress = (bytes: number) => JSON.stringify({ type: 'progress', note: 'x'.repeat(bytes - overhead) });
    expect(decode(progress(MAX_PROGRESS_BYTES))).toMatchObject({ type: 'progress' });
    expect(refusal(progress(MAX_PROGRESS_BYTES + 1))).toContain('a progress of more than');
    expect(decode(JSON.stringify({ type: 'other', note: 'x'.repeat(MAX_PROGRESS_BYTES) }))).toHaveProperty('data');
  });
});

describe('an output file', () => {
  it('is any JSON value, of at most 256 KiB', () => {
    for (const value of [null, 0, 'text', [1, { a: null }], { a: 'ä' }]) {
      expect(decodeOutput(Buffer.from(`${JSON.stringify(value, null, 2)}\n`))).toEqual({ value });
    }
    const longest = `"${'x'.repeat(MAX_OUTPUT_FILE_BYTES - 2)}"`;
    expect(decodeOutput(Buffer.from(longest))).toHaveProperty('value');
    expect(decodeOutput(Buffer.from(`${longest} `))).toEqual({ refused: 'longer than 262144 bytes' });
  });

  it('that is missing or blank is none', () => {
    for (const text of ['', '\n', ' \r\n']) expect(decodeOutput(Buffer.from(text))).toEqual({ value: null });
  });

  it('is refused with its reason when it is not JSON', () => {
    expect(decodeOutput(Buffer.from('done'))).toEqual({ refused: 'not valid JSON' });
    expect(decodeOutput(Buffer.from([0x22, 0xff, 0x22]))).toEqual({ refused: 'not valid UTF-8' });
    expect(decodeOutput(Buffer.from('{"a":"\\u0000"}'))).toHaveProperty('refused');
    expect(decodeOutput(Buffer.from('\xffcut\n', 'latin1'))).toEqual({ refused: 'not valid UTF-8' });
  });
});
