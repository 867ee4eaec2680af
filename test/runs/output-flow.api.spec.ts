import { get, type IncomingMessage } from 'node:http';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { type LocalSurface, openLocalSurface } from '../send.js';
import { Holder } from './holder.fixture.js';

const CHUNK = Buffer.alloc(128 * 1024, 'x');
const CHUNKS = 256;

let surface: LocalSurface;
beforeAll(async () => {
  surface = await openLocalSurface();
});
afterEach(() => {
  vi.restoreAllMocks();
});
afterAll(() => surface.close());

/** Resolves once `value()` has stayed the same for a while. */
async function untilStill(value: () => number): Promise<number> {
  let last = value();
  let stillFor = 0;
  await vi.waitFor(
    () => {
      const now = value();
      stillFor = now === last ? stillFor + 1 : 0;
      last = now;
      expect(stillFor).toBeGreaterThan(10);
    },
    { timeout: 20_000, interval: 50 },
  );
  return last;
}

it('F083 a reader that stops reading stops the database being read, and gets the rest when it goes on', async () => {
  const json = { kind: 'noop', queue: surface.queue };
  const { id } = (await surface.send({ method: 'POST', path: '/v1/runs', json })).json;
  const holder = await Holder.register(surface);
  const hold = await holder.start();
  for (let i = 0; i < CHUNKS; i += 1) await holder.write(hold, 1, CHUNK);

  const { read } = surface.platform.pools;
  const statements = vi.spyOn(read, 'run');
  const url = `${await surface.base()}/v1/runs/${id}/output`;
  const headers = { authorization: `Bearer ${surface.token}` };
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { headers }, resolve).on('error', reject);
  });
  const whileStopped = await untilStill(() => statements.mock.calls.length);
  let bytes = 0;
  answer.on('data', (part: Buffer) => {
    bytes += part.length;
  });
  await new Promise((resolve, reject) => answer.on('end', resolve).on('error', reject));
  expect(bytes).toBe(CHUNKS * CHUNK.length);
  const total = statements.mock.calls.length;
  expect(whileStopped, `${whileStopped} of ${total} statements for a reader that took nothing`).toBeLessThan(
    total * 0.7,
  );
});

it('a reader that goes away in the middle leaves nothing running', async () => {
  const json = { kind: 'noop', queue: surface.queue };
  const { id } = (await surface.send({ method: 'POST', path: '/v1/runs', json })).json;
  const holder = await Holder.register(surface);
  const hold = await holder.start();
  for (let i = 0; i < CHUNKS; i += 1) await holder.write(hold, 1, CHUNK);

  const { read } = surface.platform.pools;
  const statements = vi.spyOn(read, 'run');
  const url = `${await surface.base()}/v1/runs/${id}/output`;
  const headers = { authorization: `Bearer ${surface.token}` };
  await new Promise<void>((resolve, reject) => {
    get(url, { headers }, (answer) => {
      answer.once('data', () => {
        answer.destroy();
        resolve();
      });
    }).on('error', reject);
  });
  const statementsThen = await untilStill(() => statements.mock.calls.length);
  expect(read.inFlight).toBe(0);
  expect(statementsThen).toBeLessThan((CHUNKS / 4) * 0.7);
});

it('F071 a slow reader of a run that drops output meanwhile gets what is left, and one line for each part it missed', async () => {
  const json = { kind: 'noop', queue: surface.queue };
  const { id } = (await surface.send({ method: 'POST', path: '/v1/runs', json })).json;
  const holder = await Holder.register(surface, 96 * CHUNK.length);
  const hold = await holder.start();
  const write = async (letter: string, chunks: number) => {
    for (let i = 0; i < chunks; i += 1) await holder.write(hold, 1, Buffer.alloc(CHUNK.length, letter));
  };
  await write('a', 48);
  await write('b', 200);
  const url = `${await surface.base()}/v1/runs/${id}/output`;
  const headers = { authorization: `Bearer ${surface.token}` };
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { headers }, resolve).on('error', reject);
  });
  // All that this reader was to find behind the first half is dropped while it stands still.
  await write('c', 200);
  let text = '';
  answer.setEncoding('latin1').on('data', (part: string) => {
    text += part;
  });
  await new Promise((resolve, reject) => answer.on('end', resolve).on('error', reject));
  expect(text.replace(/a{2,}/, 'aa')).toMatch(/^aa\n\[capstan: bytes \d+-\d+ of the output were dropped: [^\n]+\]\n$/);
});
