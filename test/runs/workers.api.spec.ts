import { afterAll, beforeAll, expect, it } from 'vitest';
import { encodeId } from '../../src/kernel/ids.js';
import { openSurface, type Surface } from '../send.js';
import { Holder } from './holder.fixture.js';

let surface: Surface;
beforeAll(async () => {
  surface = await openSurface();
});
afterAll(() => surface.close());

async function shown(holder: Holder) {
  const answer = await surface.send({ path: '/v1/workers' });
  expect(answer.status).toBe(200);
  expect(answer.json.next).toBeNull();
  return answer.json.items.find((worker: { id: string }) => worker.id === encodeId('wrk', holder.id));
}

it('a worker is shown with its lease, its slots and what it runs', async () => {
  const holder = await Holder.register(surface);
  for (let i = 0; i < 3; i += 1) {
    await surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue: surface.queue } });
  }
  await holder.start();
  await holder.start();
  await holder.claim();
  const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(await shown(holder)).toEqual({
    id: encodeId('wrk', holder.id),
    name: holder.name,
    kind: 'worker',
    state: 'live',
    slots: 9,
    queues: [surface.queue],
    version: '0.0.0',
    leaseUntil: instant,
    connected: true,
    running: 2,
    startedAt: instant,
    endedAt: null,
  });
});

it('one that was not seen for 30 s is not connected, though its lease may hold', async () => {
  const holder = await Holder.register(surface);
  const session = await surface.session();
  const seenBefore = (seconds: number) =>
    session.query(
      `update workers set lease_until = clock_timestamp() + (ttl_ms - $2::integer * 1000) * interval '1 ms' where id = $1`,
      [holder.id, seconds],
    );
  await seenBefore(25);
  expect(await shown(holder)).toMatchObject({ connected: true, state: 'live' });
  await seenBefore(31);
  expect(await shown(holder)).toMatchObject({ connected: false, state: 'live' });
});

it('one that stopped is shown for a day', async () => {
  const holder = await Holder.register(surface);
  const session = await surface.session();
  const { id } = holder;
  await session.query(`update workers set state = 'stopped', ended_at = now() where id = $1`, [id]);
  expect(await shown(holder)).toMatchObject({ state: 'stopped', connected: false, endedAt: expect.any(String) });
});

it('a run names its worker, and the lease only while it holds the run', async () => {
  const queue = `${surface.queue}-own`;
  const holder = await Holder.register({ ...surface, queue });
  const { id } = (await surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue } })).json;
  const hold = await holder.start();
  const running = (await surface.send({ path: `/v1/runs/${id}` })).json;
  expect(running).toMatchObject({
    state: 'running',
    fence: 1,
    claimedAt: expect.any(String),
    startedAt: expect.any(String),
    worker: { id: encodeId('wrk', holder.id), name: holder.name, leaseUntil: expect.any(String) },
  });
  await holder.finish(hold, undefined, { answer: [42, null] });
  const ended = (await surface.send({ path: `/v1/runs/${id}` })).json;
  expect(ended).toMatchObject({
    state: 'succeeded',
    output: { answer: [42, null] },
    worker: { id: encodeId('wrk', holder.id), leaseUntil: null },
    end: { code: 'ok', exitCode: 0, signal: null, by: encodeId('wrk', holder.id), fence: 1, at: ended.endedAt },
    receipts: { ended: expect.stringMatching(/^org_/) },
  });
});

it('workers come in pages, each once', async () => {
  for (let i = 0; i < 3; i += 1) await Holder.register(surface);
  const seen: string[] = [];
  let path: string | null = '/v1/workers?limit=2';
  while (path !== null) {
    const { status, json }: { status: number; json: { items: { id: string }[]; next: string | null } } =
      await surface.send({ path });
    expect(status).toBe(200);
    expect(json.items.length).toBeLessThanOrEqual(2);
    seen.push(...json.items.map(({ id }) => id));
    path = json.next === null ? null : `/v1/workers?limit=2&cursor=${json.next}`;
  }
  expect(seen.length).toBeGreaterThanOrEqual(3);
  expect(new Set(seen).size).toBe(seen.length);
  for (const bad of ['limit=0', 'limit=201', 'cursor=x', 'color=red']) {
    expect((await surface.send({ path: `/v1/workers?${bad}` })).status).toBe(422);
  }
});
