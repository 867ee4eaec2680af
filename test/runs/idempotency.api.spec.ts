import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../src/kernel/ids.js';
import { type Answer, openSurface, type Surface } from '../send.js';
import { Holder } from './holder.fixture.js';

let surface: Surface;
beforeAll(async () => {
  surface = await openSurface();
});
afterAll(() => surface.close());

interface Submit {
  readonly key?: string | readonly string[];
  readonly token?: string;
  readonly body?: object;
  readonly overTheWire?: boolean;
}

function submit({ key, token, body = {}, overTheWire = false }: Submit): Promise<Answer> {
  return surface.send({
    method: 'POST',
    path: '/v1/runs',
    json: { kind: 'noop', queue: surface.queue, ...body },
    overTheWire,
    ...(token === undefined ? {} : { token }),
    ...(key === undefined ? {} : { headers: { 'Idempotency-Key': key } }),
  });
}

/** How UTF-8 text looks to whoever reads header bytes as Latin-1. */
function onTheWire(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

async function countRuns(): Promise<number> {
  const session = await surface.session();
  const { rows } = await session.query('select count(*)::integer as n from runs where queue = $1', [surface.queue]);
  return rows[0].n;
}

it('S4-110 a retry with the same key is answered with the run that the first made', async () => {
  const key = newId();
  const first = await submit({ key });
  const again = await submit({ key });
  expect([first.status, again.status]).toEqual([201, 200]);
  expect(first.headers['idempotency-replayed']).toBeUndefined();
  expect(again.headers['idempotency-replayed']).toBe('true');
  expect(again.headers['audit-receipt']).toBe(first.headers['audit-receipt']);
  expect(again.json).toEqual(first.json);
});

it('S4-110 the same key of two organizations makes two runs', async () => {
  const key = newId();
  const { token } = await surface.stranger();
  const [ours, theirs] = await Promise.all([submit({ key }), submit({ key, token })]);
  expect([ours.status, theirs.status]).toEqual([201, 201]);
  expect(ours.json.id).not.toBe(theirs.json.id);
});

it('F093 100 submits at once with one key make one run, and every answer carries it', async () => {
  for (let round = 0; round < 3; round += 1) {
    const key = newId();
    const before = await countRuns();
    const answers = await Promise.all(Array.from({ length: 100 }, () => submit({ key, overTheWire: true })));
    expect(answers.map((answer) => answer.status).sort()).toEqual([...Array(99).fill(200), 201]);
    expect(new Set(answers.map((answer) => answer.json.id)).size).toBe(1);
    expect(new Set(answers.map((answer) => answer.headers['audit-receipt'])).size).toBe(1);
    expect(await countRuns()).toBe(before + 1);
  }
});

it('F093 of two requests at once with one key and two bodies, one makes its run and the other is refused', async () => {
  for (let round = 0; round < 5; round += 1) {
    const key = newId();
    const answers = await Promise.all([submit({ key, body: { name: 'a' } }), submit({ key, body: { name: 'b' } })]);
    expect(answers.map((answer) => answer.status).sort()).toEqual([201, 422]);
  }
});

it('S4-112 without a key each call makes a new run', async () => {
  const [first, second] = [await submit({}), await submit({})];
  expect([first.status, second.status]).toEqual([201, 201]);
  expect(first.json.id).not.toBe(second.json.id);
});

describe('S4-111 a key is 1 to 255 bytes as they come on the wire', () => {
  it.each([
    ['255 characters', 'k'.repeat(255), 201],
    ['256 characters', 'k'.repeat(256), 400],
    ['127 letters of two bytes and one more', onTheWire(`${'é'.repeat(127)}x`), 201],
    ['128 letters of two bytes', onTheWire('é'.repeat(128)), 400],
    ['nothing', '', 400],
    ["the server's own prefix", 'st:1', 400],
    ['a prefix of the prefix', 'st', 201],
  ])('%s', async (_, key, status) => {
    for (const overTheWire of [false, true]) {
      const answer = await submit({ key: key === '' || status === 400 ? key : rotated(key, overTheWire), overTheWire });
      expect(answer.status, answer.text).toBe(status);
      if (status === 400) expect(answer.json.code).toBe('idempotency_key_invalid');
    }
  });

  it('sent twice is refused, even when both are equal', async () => {
    const answer = await submit({ key: ['a', 'a'], overTheWire: true });
    expect(answer.status).toBe(400);
    expect(answer.json.code).toBe('idempotency_key_invalid');
  });

  it('with a comma is one key', async () => {
    const key = `${newId()}, x`;
    expect((await submit({ key })).status).toBe(201);
    expect((await submit({ key })).status).toBe(200);
  });

  /** Another key of the same length for the second way of sending. */
  function rotated(key: string, isSecond: boolean): string {
    return isSecond ? key.replace(/.$/, 'z') : key;
  }
});

describe('what counts as the same request', () => {
  it('a body that only differs in the order of its members is the same', async () => {
    const key = newId();
    const send = (body: string) =>
      surface.send({
        method: 'POST',
        path: '/v1/runs',
        body,
        headers: { 'content-type': 'application/json', 'idempotency-key': key },
      });
    const first = await send(`{"kind":"noop","queue":"${surface.queue}","labels":{"a":"1","b":"2"}}`);
    const again = await send(` {"labels" : {"b":"\\u0032","a":"1"}, "queue":"${surface.queue}","kind":"noop"}`);
    expect([first.status, again.status]).toEqual([201, 200]);
  });

  it('another body is 422 `idempotency_key_reused`, and the first run is what it was', async () => {
    const key = newId();
    const first = await submit({ key });
    const other = await submit({ key, body: { name: 'other' } });
    expect(other.status).toBe(422);
    expect(other.json.code).toBe('idempotency_key_reused');
    expect((await submit({ key })).json).toEqual(first.json);
  });

  it('a member spelled out with its default makes another request of it', async () => {
    const key = newId();
    await submit({ key });
    expect((await submit({ key, body: { priority: 0 } })).json.code).toBe('idempotency_key_reused');
  });
});

it('a refused request leaves no key: the corrected one is taken', async () => {
  const key = newId();
  expect((await submit({ key, body: { priority: 1_000 } })).status).toBe(422);
  const taken = await submit({ key, body: { priority: 1 } });
  expect(taken.status).toBe(201);
  const id = newId();
  expect((await submit({ body: { id } })).status).toBe(201);
  const clashing = newId();
  expect((await submit({ key: clashing, body: { id, kind: 'command', spec: { argv: ['x'] } } })).status).toBe(409);
  expect((await submit({ key: clashing })).status).toBe(201);
});

it('a replay shows the run as it is now, with the receipt of the first', async () => {
  const key = newId();
  const queue = `${surface.queue}-ends`;
  const first = await submit({ key, body: { queue } });
  const holder = await Holder.register({ ...surface, queue });
  await holder.finish(await holder.start());
  const again = await submit({ key, body: { queue } });
  expect(again.status).toBe(200);
  expect(again.json).toMatchObject({ id: first.json.id, state: 'succeeded', end: { code: 'ok', exitCode: 0 } });
  expect(again.headers['audit-receipt']).toBe(first.headers['audit-receipt']);
  expect(again.json.receipts.ended).toMatch(/^org_/);
});

it('a replay after the run was removed is 410, and makes no new run', async () => {
  const key = newId();
  await submit({ key });
  const session = await surface.session();
  await session.query('update idempotency_keys set run_id = $2 where key = $1', [key, newId()]);
  const before = await countRuns();
  const again = await submit({ key });
  expect(again.status).toBe(410);
  expect(again.json.code).toBe('run_removed');
  expect(await countRuns()).toBe(before);
});

it('a key is in the audit entry of the run it made, and the chain holds', async () => {
  const key = onTheWire(`ключ-${newId()}`);
  const { json: run } = await submit({ key });
  const session = await surface.session();
  const { rows } = await session.query("select claim from audit_entries where claim like '%' || $1 || '%'", [run.id]);
  expect(rows.map((row) => JSON.parse(row.claim).payload)).toEqual([expect.objectContaining({ object: run.id, key })]);
  expect((await surface.send({ path: '/v1/audit/verify' })).json).toMatchObject({ ok: true });
});

it('S4-110 a key that came with an id known before is kept like any other', async () => {
  const id = newId();
  expect((await submit({ body: { id } })).status).toBe(201);
  expect((await submit({ body: { id }, key: 'late key' })).status).toBe(200);
  expect((await submit({ body: { id }, key: 'late key' })).status).toBe(200);
  const other = await submit({ body: { name: 'another body' }, key: 'late key' });
  expect([other.status, other.json.code]).toEqual([422, 'idempotency_key_reused']);
});
