/** `POST /v1/runs/{id}/rerun`: a new run that does again what an ended one did. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { decodeId, newId } from '../../src/kernel/ids.js';
import type { Outcome } from '../../src/runs/run.js';
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

function rerun(id: string, rest: Partial<Request> = {}): Promise<Answer> {
  return surface.send({ method: 'POST', path: `/v1/runs/${id}/rerun`, ...rest });
}

const cancel = (id: string) => surface.send({ method: 'POST', path: `/v1/runs/${id}/cancel` });
const show = async (id: string) => (await surface.send({ path: `/v1/runs/${id}` })).json;
const list = async () => (await surface.send({ path: `/v1/runs?queue=${surface.queue}` })).json.items;

const ENDS: readonly Outcome[] = [
  { state: 'succeeded', code: 'ok', kind: null, detail: 'exit code 0', exitCode: 0, signal: null },
  { state: 'failed', code: 'tool_failed', kind: null, detail: 'exit code 7', exitCode: 7, signal: null },
  { state: 'timed_out', code: 'timeout', kind: null, detail: 'after 1s', exitCode: null, signal: 'SIGTERM' },
  { state: 'interrupted', code: 'worker_lost', kind: null, detail: 'lost', exitCode: null, signal: null },
];

it('S4-61 an interrupted run is done again by whoever asks, and only then', async () => {
  const id = await submit({
    kind: 'command',
    name: 'nightly backup',
    priority: 7,
    timeout: '15m',
    notBefore: '2020-01-01T00:00:00Z',
    labels: { env: 'prod' },
    spec: { argv: ['pg_dump', '-Fc'], env: { TZ: 'UTC' }, successCodes: [0, 3] },
  });
  const holder = await Holder.register(surface);
  await holder.finish(await holder.start(), ENDS[3]);
  const before = await show(id);
  expect((await list()).length).toBe(1);

  const answer = await rerun(id);
  expect(answer.status, answer.text).toBe(201);
  const { json } = answer;
  expect(json.id).not.toBe(id);
  expect(json).toMatchObject({
    kind: 'command',
    name: 'nightly backup',
    queue: surface.queue,
    priority: 7,
    timeout: '15m',
    labels: { env: 'prod' },
    spec: before.spec,
    notBefore: null,
    state: 'pending',
    origin: 'api',
    principal: before.principal,
    parentId: null,
    rootId: json.id,
    rerunOf: id,
    fence: 0,
    end: null,
  });
  expect(answer.headers.location).toBe(`/v1/runs/${json.id}`);
  expect(answer.headers['audit-receipt']).toBe(json.receipts.submitted);
  expect(answer.headers['idempotency-replayed']).toBeUndefined();
  expect(answer.headers['preference-applied']).toBeUndefined();
  expect(await show(json.id)).toEqual(json);
  expect(await show(id)).toEqual(before);
});

it.each(ENDS)('a run that ended $state is run again', async (end) => {
  const id = await submit();
  const holder = await Holder.register(surface);
  await holder.finish(await holder.start(), end);
  const answer = await rerun(id);
  expect(answer.status, answer.text).toBe(201);
  expect(answer.json).toMatchObject({ state: 'pending', rerunOf: id, end: null });
});

it('a canceled run is run again, and so is that one: each names the one it does again', async () => {
  const first = await submit();
  await cancel(first);
  const second = (await rerun(first)).json.id;
  await cancel(second);
  const third = await rerun(second);
  expect(third.json).toMatchObject({ rerunOf: second, rootId: third.json.id });
});

it.each(['pending', 'claimed', 'running'] as const)(
  'a %s run is 409 with its state and the call that would move it, and nothing is made',
  async (state) => {
    const id = await submit();
    const holder = await Holder.register(surface);
    if (state === 'claimed') await holder.claim();
    if (state === 'running') await holder.start();
    const answer = await rerun(id);
    expect(answer.status, answer.text).toBe(409);
    expect(answer.json).toMatchObject({ code: 'run_not_ended', status: 409, state });
    expect(answer.json.detail).toContain(state);
    expect(answer.json.detail).toContain(`POST /v1/runs/${id}/cancel`);
    expect((await list()).length).toBe(1);
    await cancel(id);
    const after = await rerun(id);
    if (state === 'pending') {
      expect(after.status, after.text).toBe(201);
      return;
    }
    expect(after.status, after.text).toBe(409);
    expect(after.json.detail).not.toContain('/cancel');
  },
);

it('a refused rerun leaves no key: the same request makes the run once it may', async () => {
  const id = await submit();
  const headers = { 'idempotency-key': newId() };
  expect((await rerun(id, { headers })).status).toBe(409);
  await cancel(id);
  expect((await rerun(id, { headers })).status).toBe(201);
});

it('S4-113 ten equal requests at once make one run, with the receipt of the first', async () => {
  const id = await submit();
  await cancel(id);
  const headers = { 'idempotency-key': newId() };
  const answers = await Promise.all(Array.from({ length: 10 }, () => rerun(id, { headers })));
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array(9).fill(200), 201]);
  expect(new Set(answers.map(({ json }) => json.id)).size).toBe(1);
  expect(new Set(answers.map((answer) => answer.headers['audit-receipt'])).size).toBe(1);
  for (const { status, headers: got } of answers) {
    expect(got['idempotency-replayed']).toBe(status === 200 ? 'true' : undefined);
    expect(got.location === undefined).toBe(status === 200);
  }
  const again = await rerun(id, { headers, json: {} });
  expect(again.status, 'an empty body and {} are the same request').toBe(200);
  expect((await list()).length).toBe(2);
});

it('a key that came with the rerun of another run, or with a submit, is refused', async () => {
  const [one, other] = [await submit(), await submit()];
  await Promise.all([cancel(one), cancel(other)]);
  const headers = { 'idempotency-key': newId() };
  expect((await rerun(one, { headers })).status).toBe(201);
  const answer = await rerun(other, { headers });
  expect(answer.status).toBe(422);
  expect(answer.json.code).toBe('idempotency_key_reused');
  const json = { kind: 'noop', queue: surface.queue };
  expect((await surface.send({ method: 'POST', path: '/v1/runs', json, headers })).status).toBe(422);
  expect((await rerun(one, { headers: { 'idempotency-key': 'st:mine' } })).status).toBe(400);
});

it('without a key each request makes a run', async () => {
  const id = await submit();
  await cancel(id);
  const [one, other] = [await rerun(id), await rerun(id)];
  expect(one.json.id).not.toBe(other.json.id);
});

it('an unknown run and one of another organization are 404 alike', async () => {
  const id = await submit();
  await cancel(id);
  const { token } = await surface.stranger();
  const unknown = await rerun(`run_${'0'.repeat(26)}`);
  const foreign = await rerun(id, { token });
  expect([unknown.status, foreign.status]).toEqual([404, 404]);
  expect(foreign.json.detail).toBe(unknown.json.detail);
  expect((await surface.send({ path: '/v1/runs', token })).json.items).toEqual([]);
});

it('who asks is the principal, and audit entry and event name the run that is done again', async () => {
  const id = await submit();
  await cancel(id);
  const { json } = await rerun(id);
  const session = await surface.session();
  const made = [decodeId('run', json.id)];
  const entries = await session.query('select claim::jsonb as claim from audit_entries where run_id = $1', made);
  expect(entries.rows).toHaveLength(1);
  expect(entries.rows[0].claim.payload).toMatchObject({
    action: 'run.submitted',
    object: json.id,
    principal: json.principal.id,
    origin: 'api',
    rerunOf: id,
  });
  const events = await session.query('select data from run_events where run_id = $1', made);
  expect(events.rows).toEqual([{ data: { origin: 'api', principal: json.principal, rerunOf: id } }]);
});

it('a spec that would be refused today is run again as it was accepted', async () => {
  const id = await submit({ kind: 'command', spec: { argv: ['true'] } });
  const session = await surface.session();
  const old = { argv: [], fromBefore: true };
  await session.query('update runs set spec = $2 where id = $1', [decodeId('run', id), old]);
  await cancel(id);
  const answer = await rerun(id);
  expect(answer.status, answer.text).toBe(201);
  expect((await show(answer.json.id)).spec).toEqual(old);
});

const TAKEN: [string, Partial<Request>][] = [
  ['nothing at all', {}],
  ['an empty body that says something else', { body: '', headers: { 'content-type': 'text/plain' } }],
  ['{}', { body: '{}', headers: { 'content-type': 'application/json' } }],
  ['{} without Content-Type', { body: Buffer.from('{}') }],
];
it.each(TAKEN)('takes %s', async (_, rest) => {
  const id = await submit();
  await cancel(id);
  for (const overTheWire of [false, true]) expect((await rerun(id, { ...rest, overTheWire })).status).toBe(201);
});

it('refuses input, and makes nothing', async () => {
  const id = await submit();
  await cancel(id);
  expect((await rerun(id, { json: { priority: 3 } })).status).toBe(422);
  expect((await surface.send({ method: 'POST', path: `/v1/runs/${id}/rerun?force=1` })).status).toBe(422);
  expect((await list()).length).toBe(1);
});
