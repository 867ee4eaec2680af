import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../src/kernel/ids.js';
import { type Answer, openSurface, type Request, type Surface } from '../send.js';
import { Holder } from './holder.fixture.js';

let root: Surface;
let surface: Surface;
beforeAll(async () => {
  root = await openSurface();
});
beforeEach(() => {
  surface = { ...root, queue: `q-${newId()}` };
});
afterAll(() => root.close());

type Chunk = readonly [stream: 1 | 2, data: Buffer];

/** A running run that has written these chunks. */
async function runThatWrote(
  chunks: readonly Chunk[],
): Promise<{ id: string; holder: Holder; write: (chunk: Chunk) => Promise<void> }> {
  const json = { kind: 'noop', queue: surface.queue };
  const { id } = (await surface.send({ method: 'POST', path: '/v1/runs', json })).json;
  const holder = await Holder.register(surface);
  const hold = await holder.start();
  const write = ([stream, data]: Chunk) => holder.write(hold, stream, data);
  for (const chunk of chunks) await write(chunk);
  return { id, holder, write };
}

function read(id: string, query = '', rest: Partial<Request> = {}): Promise<Answer> {
  return surface.send({ path: `/v1/runs/${id}/output${query}`, ...rest });
}

const hostile: Chunk[] = [
  [1, randomBytes(100_000)],
  [1, Buffer.from('A\0B\n')],
  [2, Buffer.from([0xff, 0xfe, 0x0a])],
  [1, Buffer.from('hi', 'utf16le')],
  [1, Buffer.from([0xed, 0xa0, 0x80, 0x0a])],
  [2, Buffer.from([0xe2, 0x9c])],
  [2, Buffer.from([0x93])],
];
const all = Buffer.concat(hostile.map(([, data]) => data));
const ofStream = (stream: 1 | 2) => Buffer.concat(hostile.filter(([of]) => of === stream).map(([, data]) => data));

describe('F080 bytes that are no text', () => {
  it('come out as they went in, both streams in order of arrival, as text that no browser guesses about', async () => {
    const { id } = await runThatWrote(hostile);
    for (const overTheWire of [false, true]) {
      const answer = await read(id, '', { overTheWire });
      expect(answer.status).toBe(200);
      expect(answer.bytes.equals(all)).toBe(true);
      expect(answer.headers).toMatchObject({
        'content-type': 'text/plain; charset=utf-8',
        'x-content-type-options': 'nosniff',
        'content-length': String(all.length),
        'accept-ranges': 'bytes',
        'cache-control': 'no-store',
      });
    }
  });

  it('come out by stream', async () => {
    const { id } = await runThatWrote(hostile);
    expect((await read(id, '?stream=stdout')).bytes.equals(ofStream(1))).toBe(true);
    expect((await read(id, '?stream=stderr')).bytes.equals(ofStream(2))).toBe(true);
  });
});

it('a run that wrote nothing has an empty output', async () => {
  const { id } = await runThatWrote([]);
  const answer = await read(id);
  expect(answer.status).toBe(200);
  expect(answer.bytes).toHaveLength(0);
});

it('HEAD says how long the output is and sends none of it', async () => {
  const { id } = await runThatWrote(hostile);
  const answer = await read(id, '', { method: 'HEAD', overTheWire: true });
  expect(answer.status).toBe(200);
  expect(answer.headers['content-length']).toBe(String(all.length));
  expect(answer.bytes).toHaveLength(0);
  const ranged = await read(id, '', { method: 'HEAD', overTheWire: true, headers: { range: 'bytes=0-3' } });
  expect(ranged.status, 'a range is of a GET alone').toBe(200);
});

describe('a Range', () => {
  const text = '0123456789abcdefghij';
  const chunks: Chunk[] = [...text].map((letter, i) => [i % 3 === 0 ? 2 : 1, Buffer.from(letter.repeat(3))]);
  const whole = Buffer.concat(chunks.map(([, data]) => data));
  let id: string;
  beforeEach(async () => {
    ({ id } = await runThatWrote(chunks));
  });
  const ranged = (range: string, query = '') => read(id, query, { headers: { range } });

  it('of any shape gives exactly those bytes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), fc.option(fc.nat(80), { nil: undefined }), async (first, more) => {
        const last = more === undefined ? undefined : first + more;
        const answer = await ranged(`bytes=${first}-${last ?? ''}`);
        const expected = whole.subarray(first, last === undefined ? undefined : last + 1);
        expect(answer.status).toBe(206);
        expect(answer.bytes.equals(expected)).toBe(true);
        expect(answer.headers['content-range']).toBe(`bytes ${first}-${first + expected.length - 1}/${whole.length}`);
        expect(answer.headers['content-length']).toBe(String(expected.length));
      }),
      { numRuns: 60 },
    );
  });

  it('counts within the named stream', async () => {
    const stderr = Buffer.concat(chunks.filter(([stream]) => stream === 2).map(([, data]) => data));
    const answer = await ranged('bytes=4-10', '?stream=stderr');
    expect(answer.bytes.equals(stderr.subarray(4, 11))).toBe(true);
    expect(answer.headers['content-range']).toBe(`bytes 4-10/${stderr.length}`);
  });

  it('from the end gives the last bytes, or all when there are fewer', async () => {
    expect((await ranged('bytes=-4')).text).toBe('ijjj'.slice(-4));
    const more = await ranged('bytes=-1000');
    expect(more.status).toBe(206);
    expect(more.bytes.equals(whole)).toBe(true);
  });

  it.each(['bytes=60-', 'bytes=1000-2000', 'bytes=-0'])('%s is outside: 416, saying how long it is', async (range) => {
    const answer = await ranged(range);
    expect(answer.status).toBe(416);
    expect(answer.headers['content-range']).toBe(`bytes */${whole.length}`);
    expect(answer.json.code).toBe('range_not_satisfiable');
  });

  it.each(['bytes=5-2', 'bytes=0-1,4-5', 'lines=1-2', 'bytes', 'bytes=a-b', 'bytes=-'])(
    '%s is none: all of it',
    async (range) => {
      const answer = await ranged(range);
      expect(answer.status).toBe(200);
      expect(answer.bytes.equals(whole)).toBe(true);
    },
  );

  it('behind what there was gives what came after: a reader who asks again misses and repeats nothing', async () => {
    const run = await runThatWrote([[1, Buffer.from('one ')]]);
    const seen = [(await read(run.id)).bytes];
    for (const word of ['two ', 'three']) {
      const range = `bytes=${Buffer.concat(seen).length}-`;
      expect((await read(run.id, '', { headers: { range } })).status).toBe(416);
      await run.write([2, Buffer.from(word)]);
      seen.push((await read(run.id, '', { headers: { range } })).bytes);
    }
    expect(Buffer.concat(seen).toString()).toBe('one two three');
  });
});

it('another organization’s output is 404', async () => {
  const { id } = await runThatWrote(hostile);
  const { token } = await surface.stranger();
  expect((await read(id, '', { token })).status).toBe(404);
});

it.each(['?stream=stdin', '?stream=', '?stream=stdout&stream=stderr', '?lines=3'])('%s is 422', async (query) => {
  const { id } = await runThatWrote([]);
  expect((await read(id, query)).status).toBe(422);
});

describe('?tail=N', () => {
  const ofLines = (n: number, line = 'line') =>
    Buffer.from(Array.from({ length: n }, (_, i) => `${line} ${i}\n`).join(''));

  it('gives the last N lines, however they lie in chunks; a newline at the end begins none', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('a', 'bb', '\n', '\n\n', 'c\nd', '\ne'), { minLength: 1, maxLength: 30 }),
        fc.integer({ min: 1, max: 12 }),
        async (parts, lines) => {
          const { id } = await runThatWrote(parts.map((part, i): Chunk => [i % 4 ? 1 : 2, Buffer.from(part)]));
          const text = parts.join('');
          const all = text.split('\n');
          const open = text.endsWith('\n') ? all.slice(0, -1) : all;
          const expected = open.slice(-lines).join('\n') + (text.endsWith('\n') ? '\n' : '');
          const answer = await read(id, `?tail=${lines}`);
          expect(answer.text).toBe(expected);
          expect(answer.headers['content-length']).toBe(String(Buffer.byteLength(expected)));
        },
      ),
      { numRuns: 40 },
    );
  });

  it('counts within the named stream, gives all when there are fewer, and nothing for 0', async () => {
    const { id } = await runThatWrote([
      [1, Buffer.from('o1\no2\n')],
      [2, Buffer.from('e1\ne2\n')],
      [1, Buffer.from('o3\n')],
    ]);
    expect((await read(id, '?tail=2&stream=stdout')).text).toBe('o2\no3\n');
    expect((await read(id, '?tail=9')).text).toBe('o1\no2\ne1\ne2\no3\n');
    expect((await read(id, '?tail=0')).text).toBe('');
    expect((await read((await runThatWrote([])).id, '?tail=5')).text).toBe('');
  });

  it('reads only as far back as it must', async () => {
    const { id } = await runThatWrote([
      [1, ofLines(20_000, 'x'.repeat(100))],
      [1, ofLines(3, 'last')],
    ]);
    expect((await read(id, '?tail=2')).text).toBe('last 1\nlast 2\n');
  });

  it.each(['-1', '1.5', 'x', '100001', '', '1&tail=2'])('%j is 422', async (tail) => {
    const { id } = await runThatWrote([]);
    expect((await read(id, `?tail=${tail}`)).status).toBe(422);
  });
});

describe('F071 an output that outgrew its limit', () => {
  const limitBytes = 1024 * 1024;

  /** Numbered lines in both streams, more than is kept; what was written, and what of it is to be served. */
  async function runThatWroteTooMuch(isEnded = true) {
    const json = { kind: 'noop', queue: surface.queue };
    const { id } = (await surface.send({ method: 'POST', path: '/v1/runs', json })).json;
    const holder = await Holder.register(surface, limitBytes);
    const hold = await holder.start();
    const written: Chunk[] = [];
    let line = 0;
    for (let i = 0; i < 60; i += 1) {
      const lines = Array.from({ length: 2_000 }, (_, n) => `line ${line + n + 1} of many`).join('\n');
      line += 2_000;
      written.push([i % 5 === 0 ? 2 : 1, Buffer.from(`${lines}\n`)]);
    }
    for (const [stream, data] of written) await holder.write(hold, stream, data);
    if (isEnded) await holder.finish(hold);
    return { id, written };
  }

  const bytesOf = (written: readonly Chunk[], stream?: 1 | 2) =>
    Buffer.concat(written.filter(([of]) => stream === undefined || of === stream).map(([, data]) => data));

  it.each([undefined, 'stdout', 'stderr'] as const)(
    'keeps the first half and the latest, and one line names exactly what is missing (stream %s)',
    async (stream) => {
      const { id, written } = await runThatWroteTooMuch();
      const all = bytesOf(written, stream === undefined ? undefined : stream === 'stdout' ? 1 : 2);
      const answer = await read(id, stream === undefined ? '' : `?stream=${stream}`);
      const [line = '', from = '', last = ''] =
        /\n\[capstan: bytes (\d+)-(\d+) of (?:the output|stdout|stderr) were dropped: [^\n]+\]\n/.exec(answer.text) ??
        [];
      const expected = `${all.subarray(0, Number(from)).toString()}${line}${all.subarray(Number(last) + 1).toString()}`;
      // A difference of a megabyte of text takes minutes to print.
      expect(answer.text === expected, `${line} in ${answer.text.length} bytes`).toBe(true);
      expect(answer.headers['content-length']).toBe(String(answer.bytes.length));
      expect(line).not.toBe('');
      expect(answer.bytes.length).toBeLessThanOrEqual(limitBytes + line.length);
      expect(answer.headers['capstan-output-cut']).toBe(String(Number(last) + 1 - Number(from)));
      const outside = await read(id, stream ? `?stream=${stream}` : '', { headers: { range: 'bytes=99999999-' } });
      expect([outside.status, outside.headers['capstan-output-cut']]).toEqual([
        416,
        answer.headers['capstan-output-cut'],
      ]);
    },
  );

  it('has ranges of that text, across the gap too, and a tail', async () => {
    const { id } = await runThatWroteTooMuch();
    const whole = (await read(id)).bytes;
    const gap = whole.indexOf('\n[capstan: ');
    for (const [first, last] of [
      [0, 10],
      [gap - 5, gap + 5],
      [gap + 5, gap + 300],
      [gap - 100_000, gap + 200_000],
      [whole.length - 7, whole.length - 1],
    ] as const) {
      const answer = await read(id, '', { headers: { range: `bytes=${first}-${last}` } });
      expect(answer.status).toBe(206);
      expect(answer.bytes.equals(whole.subarray(first, last + 1))).toBe(true);
      expect(answer.headers['content-range']).toBe(`bytes ${first}-${last}/${whole.length}`);
    }
    expect((await read(id, '?tail=3')).bytes.equals(whole.subarray(whole.lastIndexOf('line 119998')))).toBe(true);
    const more = await read(id, '?tail=100000');
    expect(more.bytes.equals(whole.subarray(gap)), 'a tail ends at the gap, and says so').toBe(true);
  });

  it('can be read while the run goes on and more of it is dropped: what is missing is named where it is met', async () => {
    const { id } = await runThatWroteTooMuch(false);
    const answer = await read(id, '', { overTheWire: true });
    expect(answer.status).toBe(200);
    expect(answer.headers['content-length'], 'nobody knows how much will be left').toBe(undefined);
    expect(answer.text.match(/\[capstan: bytes/g)).toHaveLength(1);
    expect(answer.text.endsWith('line 120000 of many\n')).toBe(true);
    const tail = await read(id, '?tail=100000', { overTheWire: true });
    expect(tail.text === answer.text.slice(answer.text.indexOf('\n[capstan: ')), 'a tail says where it ends').toBe(
      true,
    );
    const ranged = await read(id, '', { headers: { range: 'bytes=524280-524400' }, overTheWire: true });
    expect(ranged.status, 'no offset holds for long enough').toBe(200);
    expect(ranged.headers['accept-ranges']).toBe('none');
    expect(ranged.text === answer.text).toBe(true);
  });
});
