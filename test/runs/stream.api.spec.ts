/** A run followed over its stream: order, resuming, filters, and what viewers cost. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../src/kernel/ids.js';
import { openSurface, type Surface } from '../send.js';
import { until } from '../server.js';
import { Holder } from './holder.fixture.js';
import { StreamClient } from './stream.fixture.js';

let root: Surface;
let surface: Surface;
let base: string;
beforeAll(async () => {
  root = await openSurface();
  base = await root.base();
});
beforeEach(() => {
  surface = { ...root, queue: `q-${newId()}` };
});
afterAll(() => root.close());

async function pending(): Promise<string> {
  const json = { kind: 'noop', queue: surface.queue };
  return (await surface.send({ method: 'POST', path: '/v1/runs', json })).json.id;
}

async function running(limitBytes?: number) {
  const id = await pending();
  const holder = await Holder.register(surface, limitBytes);
  const hold = await holder.start();
  const write = (text: string | Buffer, stream: 1 | 2 = 1) => holder.write(hold, stream, Buffer.from(text));
  return { id, write, end: () => holder.finish(hold) };
}

const follow = (id: string, query = '', lastEventId?: string) =>
  StreamClient.open({ base, token: surface.token, path: `/v1/runs/${id}/stream${query}`, lastEventId });

const types = (client: StreamClient) => client.of('event').map(({ data }) => data.type);

describe('the messages', () => {
  it('tell a run from its submit to its end, in order, and then the connection is closed', async () => {
    const id = await pending();
    const client = await follow(id);
    await until('the submit is told', () => types(client).includes('run.submitted'));
    const holder = await Holder.register(surface);
    const hold = await holder.start();
    await holder.write(hold, 1, Buffer.from('one\n'));
    await holder.write(hold, 2, Buffer.from([0, 255, 10]));
    await until('the output is told', () => client.of('output').length === 2);
    await holder.finish(hold);
    await client.closed;
    expect(client.seen.map(({ event, data }) => data.type ?? data.stream ?? event)).toEqual([
      'run.submitted',
      'run.claimed',
      'run.started',
      'stdout',
      'stderr',
      'run.ended',
      'end',
    ]);
    expect(client.seen.map((seen) => seen.id)).toEqual([
      '1.0.0',
      undefined,
      '1.1.0',
      '1.1.1',
      '1.1.2',
      '2.1.2',
      undefined,
    ]);
    expect(client.output('stderr')).toEqual(Buffer.from([0, 255, 10]));
    const run = (await surface.send({ path: `/v1/runs/${id}` })).json;
    expect(client.end).toEqual(run);
    const [, claimed, started] = client.of('event').map(({ data }) => data);
    expect(claimed).toEqual({
      seq: null,
      type: 'run.claimed',
      at: run.claimedAt,
      data: { worker: run.worker.id, workerName: 'test-holder', fence: 1 },
    });
    expect(started).toMatchObject({ seq: null, at: run.startedAt, data: { worker: run.worker.id, fence: 1 } });
    expect(client.retryMs).toBe(1000);
  });

  it('come with the headers of every answer, and nothing keeps or gathers them', async () => {
    const { id, end } = await running();
    const client = await follow(id);
    expect(client.status).toBe(200);
    expect(client.answer.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'capstan-replica': expect.stringMatching(/^r\d$/),
      'x-content-type-options': 'nosniff',
      'x-request-id': expect.stringMatching(/^req_/),
    });
    // It is meant for nginx, which heeds it and keeps it.
    if (!client.answer.headers.server) expect(client.answer.headers['x-accel-buffering']).toBe('no');
    await end();
    await client.closed;
    const head = await surface.send({ method: 'HEAD', path: `/v1/runs/${id}/stream`, overTheWire: true });
    expect(head.status).toBe(200);
    expect(head.headers['content-type']).toBe('text/event-stream');
    expect(head.bytes).toHaveLength(0);
  });
});

describe('a connection that was lost', () => {
  it('F075 goes on behind any id without gap or double', async () => {
    const { id, write, end } = await running();
    for (let i = 0; i < 8; i += 1) await write(`${i}\n`, i % 3 === 0 ? 2 : 1);
    await end();
    const whole = await follow(id);
    await whole.closed;
    expect(whole.of('output')).toHaveLength(8);
    for (const [at, seen] of whole.seen.entries()) {
      if (seen.id === undefined) continue;
      const rest = await follow(id, '', seen.id);
      await rest.closed;
      const expected = whole.seen.slice(at + 1);
      const isBeforeClaim = at === 0;
      expect(rest.seen, seen.id).toEqual(expected);
      expect(
        rest.seen.some(({ data }) => data.type === 'run.claimed'),
        seen.id,
      ).toBe(isBeforeClaim);
    }
  });

  it('goes on at the end with the end alone', async () => {
    const { id, end } = await running();
    await end();
    const whole = await follow(id);
    await whole.closed;
    const again = await follow(id, '', whole.lastId);
    await again.closed;
    expect(again.seen.map(({ event }) => event)).toEqual(['end']);
  });

  it('goes on behind an id that this replica has not reached yet', async () => {
    const { id, write, end } = await running();
    const first = await follow(id);
    await until('it is caught up', () => types(first).includes('run.started'));
    // As another replica would have told it.
    const ahead = await follow(id, '', '1.1.1');
    await write('one\n');
    await write('two\n');
    await end();
    await Promise.all([first.closed, ahead.closed]);
    expect(first.output().toString()).toBe('one\ntwo\n');
    expect(ahead.output().toString()).toBe('two\n');
  });

  it.each(['0', '1.1', 'x', '1.1.1.1', '1.0.5', '-1.0.0', '99999999999999999.1.1'])(
    'is refused with %j, which no stream gave',
    async (lastEventId) => {
      const id = await pending();
      const answer = await surface.send({
        path: `/v1/runs/${id}/stream`,
        headers: { 'last-event-id': lastEventId },
      });
      expect(answer.status).toBe(400);
      expect(answer.json).toMatchObject({
        code: 'malformed_request',
        detail: expect.stringContaining('Last-Event-ID'),
      });
    },
  );
});

describe('a part of the output', () => {
  it('is one stream alone, with all events', async () => {
    const { id, write, end } = await running();
    await write('out 1\n', 1);
    await write('err\n', 2);
    await write('out 2\n', 1);
    await end();
    for (const [name, text] of [
      ['stdout', 'out 1\nout 2\n'],
      ['stderr', 'err\n'],
    ] as const) {
      const client = await follow(id, `?stream=${name}`);
      await client.closed;
      expect(client.output().toString()).toBe(text);
      expect(types(client)).toEqual(['run.submitted', 'run.claimed', 'run.started', 'run.ended']);
      expect(client.end.state).toBe('succeeded');
    }
  });

  it('begins so many lines before the present end, to the byte, and goes on from there', async () => {
    const { id, write, end } = await running();
    await write('a\nb\nc\nd');
    await write('e\nf\n');
    const clients = new Map<string, StreamClient>();
    for (const tail of ['0', '1', '2', '3', '99']) clients.set(tail, await follow(id, `?tail=${tail}`));
    await write('g\n');
    await end();
    const seen: Record<string, string> = {};
    for (const [tail, client] of clients) {
      await client.closed;
      seen[tail] = client.output().toString();
      expect(types(client)).toEqual(['run.submitted', 'run.claimed', 'run.started', 'run.ended']);
      expect(client.of('cut')).toEqual([]);
    }
    const all = 'a\nb\nc\nde\nf\ng\n';
    expect(seen).toEqual({ 0: 'g\n', 1: 'f\ng\n', 2: 'de\nf\ng\n', 3: 'c\nde\nf\ng\n', 99: all });
  });

  it('of one stream begins so many of its lines before the end', async () => {
    const { id, write, end } = await running();
    await write('a\nb\n', 2);
    await write('1\n2\n3\n', 1);
    await write('c\n', 2);
    await end();
    const client = await follow(id, '?stream=stdout&tail=2');
    await client.closed;
    expect(client.output().toString()).toBe('2\n3\n');
  });

  it('with an id begins behind the id, whatever lines were asked for', async () => {
    const { id, write, end } = await running();
    await write('a\n');
    await write('b\n');
    await end();
    const client = await follow(id, '?tail=0', '1.1.1');
    await client.closed;
    expect(client.output().toString()).toBe('b\n');
  });

  it.each(['?stream=3', '?stream=', '?tail=-1', '?tail=100001', '?tail=1.5', '?tail=', '?tail=1&tail=2', '?since=1'])(
    '%s is refused',
    async (query) => {
      const id = await pending();
      const answer = await surface.send({ path: `/v1/runs/${id}/stream${query}` });
      expect(answer.status).toBe(422);
    },
  );
});

describe('output that was dropped', () => {
  const line = (i: number) => `${String(i).padStart(9, '0')}\n`.repeat(1_000);

  it('shows as a cut between what is kept, with the bytes that are missing', async () => {
    const { id, write, end } = await running(100_000);
    for (let i = 0; i < 30; i += 1) await write(line(i));
    await end();
    const client = await follow(id);
    await client.closed;
    const [cut, ...more] = client.of('cut');
    expect(more).toEqual([]);
    expect(cut?.data).toMatchObject({ fence: 1, bytes: 300_000 - client.output().length });
    const numbers = client.of('output').map(({ data }) => data.batch);
    expect(numbers.filter((batch) => batch <= cut?.data.after).at(-1)).toBe(cut?.data.after);
    expect(numbers.find((batch) => batch > cut?.data.after)).toBe(cut?.data.next);
    // The cut has its place among the messages, and an id to go on behind.
    const rest = await follow(id, '', cut?.id);
    await rest.closed;
    expect(rest.of('cut')).toEqual([]);
    expect(rest.of('output')[0]?.data.batch).toBe(cut?.data.next);
  });

  it('is not missed by who was there all the time', async () => {
    const { id, write, end } = await running(100_000);
    const client = await follow(id);
    for (let i = 0; i < 30; i += 1) {
      await write(line(i));
      await until('it was taken', () => client.output().length === (i + 1) * 10_000);
    }
    await end();
    await client.closed;
    expect(client.of('cut')).toEqual([]);
    expect(client.output()).toHaveLength(300_000);
  });
});

it('what another organization has, and what there isn’t, is 404', async () => {
  const id = await pending();
  const { token } = await surface.stranger();
  const own = await follow(id);
  for (const [path, asked] of [
    [`/v1/runs/${id}/stream`, token],
    [`/v1/runs/${newId()}/stream`, surface.token],
    [`/v1/runs/${id}/events`, token],
  ] as const) {
    const answer = await surface.send({ path, token: asked });
    expect(answer.status, path).toBe(404);
    const head = await surface.send({ method: 'HEAD', path, token: asked });
    expect(head.status, path).toBe(404);
  }
  own.reset();
});

it('F074 a line of 5 MB and 50,000 lines are told whole before the end', async () => {
  const { id, write, end } = await running();
  const client = await follow(id);
  const parts: Buffer[] = [];
  const put = async (part: Buffer) => {
    parts.push(part);
    await write(part);
  };
  for (let i = 0; i < 40; i += 1) await put(Buffer.alloc(128 * 1024, 'x'));
  for (let i = 0; i < 500; i += 1) {
    await put(Buffer.from(Array.from({ length: 100 }, (_, n) => `line ${i * 100 + n}\n`).join('')));
  }
  await end();
  await client.closed;
  expect(client.output().equals(Buffer.concat(parts))).toBe(true);
  expect(client.seen.at(-1)?.event).toBe('end');
});
