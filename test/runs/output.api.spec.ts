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
