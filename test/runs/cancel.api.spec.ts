import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../src/kernel/ids.js';
import { type Answer, openSurface, type Request, type Surface } from '../send.js';
import { Holder } from './holder.fixture.js';

let root: Surface;
/** The surface with a queue of its own for each test. */
let surface: Surface;
beforeAll(async () => {
  root = await openSurface();
});
beforeEach(() => {
  surface = { ...root, queue: `q-${newId()}` };
});
afterAll(() => root.close());

async function submit(body: object = {}): Promise<string> {
  const json = { kind: 'noop', queue: surface.queue, ...body };
  const answer = await surface.send({ method: 'POST', path: '/v1/runs', json });
  expect(answer.status, answer.text).toBe(201);
  return answer.json.id;
}

function cancel(id: string, rest: Partial<Request> = {}): Promise<Answer> {
  return surface.send({ method: 'POST', path: `/v1/runs/${id}/cancel`, ...rest });
}

async function show(id: string) {
  return (await surface.send({ path: `/v1/runs/${id}` })).json;
}

it('a waiting run ends at once: 200, with who canceled it, and again 200 with the same receipt', async () => {
  const id = await submit();
  const first = await cancel(id);
  expect(first.status).toBe(200);
  expect(first.json).toMatchObject({
    id,
    state: 'canceled',
    fence: 0,
    worker: null,
    end: { code: 'canceled', kind: 'requested', exitCode: null, signal: null, by: first.json.principal.id },
  });
  expect(first.json.end.at).toBe(first.json.endedAt);
  expect(first.headers['audit-receipt']).toBe(first.json.receipts.ended);
  const again = await cancel(id);
  expect(again.status).toBe(200);
  expect(again.json).toEqual(first.json);
  expect(again.headers['audit-receipt']).toBe(first.headers['audit-receipt']);
});

it('a run that waits for its instant ends at once too', async () => {
  const id = await submit({ notBefore: '2999-01-01T00:00:00Z' });
  expect((await cancel(id)).json.state).toBe('canceled');
});

it.each(['claim', 'start'] as const)(
  'after a %s the holder is asked: 202, and every later call gives the same receipt',
  async (step) => {
    const id = await submit();
    const holder = await Holder.register(surface);
    await holder[step]();
    const first = await cancel(id);
    expect(first.status).toBe(202);
    expect(first.json).toMatchObject({ state: step === 'claim' ? 'claimed' : 'running', end: null });
    expect(first.json.cancelRequestedAt).toMatch(/Z$/);
    expect(first.headers['audit-receipt']).toBe(first.json.receipts.cancelRequested);
    const again = await cancel(id);
    expect(again.status).toBe(202);
    expect(again.headers['audit-receipt']).toBe(first.headers['audit-receipt']);
  },
);

it('a cancel that the holder carried out is answered 200 afterwards', async () => {
  const id = await submit();
  const holder = await Holder.register(surface);
  const hold = await holder.start();
  const asked = await cancel(id);
  const outcome = {
    state: 'canceled',
    code: 'canceled',
    kind: 'requested',
    detail: 'x',
    exitCode: null,
    signal: 'SIGTERM',
  } as const;
  await holder.finish(hold, outcome);
  const after = await cancel(id);
  expect(after.status).toBe(200);
  expect(after.json).toMatchObject({ state: 'canceled', end: { signal: 'SIGTERM' } });
  expect(after.headers['audit-receipt']).toBe(asked.headers['audit-receipt']);
});

it('a run that ended otherwise is 409 with its end, and stays what it is', async () => {
  const id = await submit();
  const holder = await Holder.register(surface);
  const failed = {
    state: 'failed',
    code: 'tool_failed',
    kind: null,
    detail: 'exit code 7',
    exitCode: 7,
    signal: null,
  } as const;
  await holder.finish(await holder.start(), failed);
  const before = await show(id);
  const answer = await cancel(id);
  expect(answer.status).toBe(409);
  expect(answer.json).toMatchObject({ code: 'run_ended', status: 409, end: before.end });
  expect(answer.json.detail).toContain('failed');
  expect(await show(id)).toEqual(before);
});

it('20 cancels at once make one end and one entry', async () => {
  const id = await submit();
  const answers = await Promise.all(Array.from({ length: 20 }, () => cancel(id)));
  expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([200]));
  expect(new Set(answers.map((answer) => answer.headers['audit-receipt'])).size).toBe(1);
});

it('another organization’s run is 404, and goes on', async () => {
  const id = await submit();
  const { token } = await surface.stranger();
  expect((await cancel(id, { token })).status).toBe(404);
  expect((await show(id)).state).toBe('pending');
});

describe('F084 a call without input', () => {
  const taken: [string, Partial<Request>][] = [
    ['nothing at all', {}],
    ['an empty body that says JSON', { body: '', headers: { 'content-type': 'application/json' } }],
    ['an empty body that says something else', { body: '', headers: { 'content-type': 'text/plain' } }],
    ['{}', { body: '{}', headers: { 'content-type': 'application/json' } }],
    ['{} without Content-Type', { body: Buffer.from('{}') }],
  ];
  it.each(taken)('takes %s', async (_, rest) => {
    for (const overTheWire of [false, true]) {
      const answer = await cancel(await submit(), { ...rest, overTheWire });
      expect(answer.status, answer.text).toBe(200);
    }
  });

  const refused: [string, Partial<Request>, number][] = [
    ['a member', { json: { force: true } }, 422],
    ['a list', { json: [] }, 400],
    ['garbage', { body: '{', headers: { 'content-type': 'application/json' } }, 400],
    ['garbage without Content-Type', { body: Buffer.from('x') }, 400],
    ['a form', { body: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } }, 415],
    ['a parameter', { path: '?force=true' }, 422],
  ];
  it.each(refused)('refuses %s, and changes nothing', async (_, rest, status) => {
    const id = await submit();
    const path = `/v1/runs/${id}/cancel${rest.path ?? ''}`;
    const answer = await surface.send({ method: 'POST', ...rest, path });
    expect(answer.status, answer.text).toBe(status);
    expect((await show(id)).state).toBe('pending');
  });
});

it('S4-48 no route puts a started run back: its state only ever goes to canceled', async () => {
  const document = (await surface.send({ path: '/openapi.json' })).json;
  expect(JSON.stringify(document)).not.toMatch(/requeue|put.?back|release/i);
  const id = await submit();
  const holder = await Holder.register(surface);
  await holder.start();
  const changes = Object.entries<object>(document.paths).flatMap(([path, operations]) =>
    Object.keys(operations)
      .filter((method) => method !== 'get')
      .map((method) => ({ method: method.toUpperCase(), path })),
  );
  expect(changes.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([
    'POST /v1/audit/key',
    'POST /v1/runs',
    'POST /v1/runs/batch',
    'POST /v1/runs/cancel',
    'POST /v1/runs/rerun',
    'POST /v1/runs/{id}/cancel',
    'POST /v1/runs/{id}/rerun',
    // What becomes of a worker's runs is not in their hands either.
    'POST /v1/workers/{id}/drain',
    'POST /v1/workers/{id}/undrain',
    'PUT /v1/queues/{name}',
    'PUT /v1/retention',
  ]);
  const session = await surface.session();
  for (const lease of ['10 minutes', '-10 minutes']) {
    await session.query(`update workers set lease_until = now() + $2::interval where id = $1`, [holder.id, lease]);
    expect((await surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', id } })).status).toBe(200);
    expect(await show(id)).toMatchObject({ state: 'running', fence: 1, worker: { name: holder.name } });
    expect((await cancel(id)).status).toBe(202);
    expect((await surface.send({ method: 'POST', path: `/v1/runs/${id}/rerun` })).status).toBe(409);
    expect(await show(id)).toMatchObject({ state: 'running', fence: 1, worker: { name: holder.name } });
  }
});
