import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { installationChain } from '../../src/audit/audit.sql.js';
import { encodeId, newId } from '../../src/kernel/ids.js';
import { leaveIfAlive } from '../../src/runs/worker.sql.js';
import { openSurface, type Surface } from '../send.js';
import { Holder } from './holder.fixture.js';

let surface: Surface;
beforeAll(async () => {
  surface = await openSurface();
});
afterAll(() => surface.close());

async function shown(holder: Holder) {
  // An installation has workers of others, on more than one page.
  for (let cursor = ''; ; ) {
    const answer = await surface.send({ path: `/v1/workers?limit=200${cursor}` });
    expect(answer.status).toBe(200);
    const { items, next } = answer.json;
    const found = items.find((worker: { id: string }) => worker.id === encodeId('wrk', holder.id));
    if (found || next === null) return found;
    cursor = `&cursor=${next}`;
  }
}

it('F159 a worker is shown with its version, its slots, what it runs, and when it was seen', async () => {
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
    seenAt: instant,
    connected: true,
    running: 2,
    startedAt: instant,
    endedAt: null,
  });
});

it('S4-40 one that was not seen for 30 s is not connected, though its lease may hold', async () => {
  const holder = await Holder.register(surface);
  const session = await surface.session();
  const seenBefore = (seconds: number) =>
    session.query(
      `update workers set lease_until = clock_timestamp() + (ttl_ms - $2::integer * 1000) * interval '1 ms' where id = $1`,
      [holder.id, seconds],
    );
  await seenBefore(25);
  expect(await shown(holder)).toMatchObject({ connected: true, state: 'live' });
  const { seenAt, leaseUntil } = await shown(holder);
  expect(Date.parse(leaseUntil) - Date.parse(seenAt)).toBe(10 * 60_000);
  await seenBefore(31);
  expect(await shown(holder)).toMatchObject({ connected: false, state: 'live' });
});

it('F159 one that ended is listed for a day, and can be looked at for longer', async () => {
  const holder = await Holder.register(surface);
  const session = await surface.session();
  const endedBefore = (hours: number) =>
    session.query(
      `insert into workers (id, name, kind, slots, queues, version, ttl_ms, state, lease_until, started_at, ended_at)
       select $1, name, kind, slots, queues, version, ttl_ms, 'stopped', lease_until, now() - interval '3 days',
              now() - $2::integer * interval '1 hour' from workers where id = $3`,
      [newId(), hours, holder.id],
    );
  await endedBefore(23);
  await endedBefore(25);
  const { rows } = await session.query<{ id: string }>(
    `select id from workers where started_at < now() - interval '2 days' order by ended_at`,
  );
  const [gone = '', fresh = ''] = rows.map(({ id }) => encodeId('wrk', id));
  const listed: string[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page = await surface.send({ path: `/v1/workers?limit=200${cursor === '' ? '' : `&cursor=${cursor}`}` });
    listed.push(...page.json.items.map(({ id }: { id: string }) => id));
    cursor = page.json.next;
  }
  expect(listed).toContain(fresh);
  expect(listed).not.toContain(gone);
  const { status, json } = await surface.send({ path: `/v1/workers/${gone}` });
  expect(status).toBe(200);
  expect(json).toMatchObject({ id: gone, state: 'stopped', connected: false, endedAt: expect.any(String) });
});

describe('draining', () => {
  const ask = (id: string, verb: 'drain' | 'undrain') =>
    surface.send({ method: 'POST', path: `/v1/workers/${id}/${verb}` });
  const entriesOf = async (id: string): Promise<Record<string, unknown>[]> => {
    const session = await surface.session();
    const { rows } = await session.query(
      `select claim::jsonb -> 'payload' as payload from audit_entries
       where claim::jsonb -> 'payload' ->> 'object' = $1 order by seq`,
      [id],
    );
    return rows.map(({ payload }) => payload);
  };

  it('takes a worker out of service and puts it back, each with its receipt and its entry; said again it answers the same and writes nothing', async () => {
    const holder = await Holder.register(surface);
    const id = encodeId('wrk', holder.id);
    const drained = await ask(id, 'drain');
    expect(drained.status).toBe(200);
    expect(drained.json).toMatchObject({ id, state: 'draining', endedAt: null });
    expect(drained.headers['audit-receipt']).toMatch(/^ins_\w+:\d+:[0-9a-f]{64}$/);
    const again = await ask(id, 'drain');
    expect(again.status).toBe(200);
    expect(again.json).toEqual(drained.json);
    expect(again.headers['audit-receipt']).toBe(drained.headers['audit-receipt']);

    const back = await ask(id, 'undrain');
    expect(back.status).toBe(200);
    expect(back.json).toMatchObject({ id, state: 'live' });
    const backAgain = await ask(id, 'undrain');
    expect(backAgain.json).toEqual(back.json);
    expect(backAgain.headers['audit-receipt']).toBe(back.headers['audit-receipt']);
    expect(back.headers['audit-receipt']).toMatch(/^ins_\w+:\d+:[0-9a-f]{64}$/);

    const principal = expect.stringMatching(/^tok_/);
    const entry = { object: id, name: holder.name, principal, principalName: expect.any(String) };
    expect(await entriesOf(id)).toEqual([
      expect.objectContaining({ action: 'worker.joined' }),
      { action: 'worker.draining', ...entry },
      { action: 'worker.undrained', ...entry },
    ]);
  });

  it('of one that was never drained is undone without a word in the chain: the receipt is that of its joining', async () => {
    const holder = await Holder.register(surface);
    const id = encodeId('wrk', holder.id);
    const { status, json, headers } = await ask(id, 'undrain');
    expect({ status, state: json.state }).toEqual({ status: 200, state: 'live' });
    const session = await surface.session();
    const { rows } = await session.query(
      `select chain_id || ':' || seq || ':' || encode(link, 'hex') as receipt, action from audit_entries
       where claim::jsonb -> 'payload' ->> 'object' = $1`,
      [id],
    );
    expect(rows).toEqual([{ receipt: headers['audit-receipt'], action: 'worker.joined' }]);
  });

  it('answers a drain of a drained process that stops with the receipt of its own word, and that of the newest drain', async () => {
    const holder = await Holder.register(surface);
    const id = encodeId('wrk', holder.id);
    await ask(id, 'drain');
    await ask(id, 'undrain');
    const second = (await ask(id, 'drain')).headers['audit-receipt'];
    expect((await ask(id, 'drain')).headers['audit-receipt']).toBe(second);
    const chain = (await installationChain(surface.pool)) ?? '';
    await leaveIfAlive(surface.pool, holder.id, 'draining', { chain, object: id });
    const stopping = (await ask(id, 'drain')).headers['audit-receipt'];
    const seqOf = (receipt: string | undefined) => Number(receipt?.split(':')[1]);
    expect(seqOf(stopping)).toBeGreaterThan(seqOf(second));
  });

  it('is for admins of the installation: another organization is answered 403, and nothing changes', async () => {
    const holder = await Holder.register(surface);
    const { token } = await surface.stranger();
    for (const verb of ['drain', 'undrain']) {
      // What it may not do is all that it learns: not whether there is such a worker.
      for (const id of [holder.id, newId()]) {
        const answer = await surface.send({ method: 'POST', path: `/v1/workers/${id}/${verb}`, token });
        expect({ status: answer.status, code: answer.json.code }).toEqual({ status: 403, code: 'forbidden' });
        expect(answer.headers['audit-receipt']).toBeUndefined();
      }
    }
    expect(await shown(holder)).toMatchObject({ state: 'live' });
    expect(await entriesOf(encodeId('wrk', holder.id))).toHaveLength(1);
  });

  it('leaves what runs alone: it is shown running, and ends as it likes', async () => {
    const own = { ...surface, queue: `${surface.queue}-drained` };
    const holder = await Holder.register(own);
    await surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue: own.queue } });
    const hold = await holder.start();
    expect((await ask(holder.id, 'drain')).json).toMatchObject({ state: 'draining', running: 1 });
    await holder.finish(hold);
    expect(await shown(holder)).toMatchObject({ state: 'draining', running: 0 });
  });

  it.each(['stopped', 'lost'])('of one that is %s is refused, and so is the way back', async (state) => {
    const holder = await Holder.register(surface);
    const session = await surface.session();
    await session.query('update workers set state = $2, ended_at = now() where id = $1', [holder.id, state]);
    for (const verb of ['drain', 'undrain'] as const) {
      const { status, json, headers } = await ask(holder.id, verb);
      expect(status).toBe(409);
      expect(json).toMatchObject({ code: 'worker_ended', state });
      expect(json.detail).toBe(
        `worker test-holder is ${state}, and that never changes: its process, started again, is a new worker`,
      );
      expect(headers['audit-receipt']).toBeUndefined();
    }
    expect(await entriesOf(encodeId('wrk', holder.id))).toHaveLength(1);
  });

  it('by a process that is stopping is not undone by anybody, whoever had drained it before', async () => {
    for (const isDrainedBefore of [false, true]) {
      const holder = await Holder.register(surface);
      if (isDrainedBefore) await ask(holder.id, 'drain');
      const chain = (await installationChain(surface.pool)) ?? '';
      await leaveIfAlive(surface.pool, holder.id, 'draining', { chain, object: encodeId('wrk', holder.id) });
      const { status, json } = await ask(holder.id, 'undrain');
      expect(status).toBe(409);
      expect(json).toMatchObject({ code: 'worker_stopping', state: 'draining' });
      expect(json.detail).toContain('is stopping, which is not undone');
      expect((await ask(holder.id, 'drain')).json).toMatchObject({ state: 'draining' });
    }
  });

  it('needs a worker that there is, a token, and no input', async () => {
    for (const path of [`/v1/workers/${encodeId('wrk', newId())}`, '/v1/workers/nobody']) {
      expect((await surface.send({ path })).status).toBe(404);
      for (const verb of ['drain', 'undrain']) {
        const { status, json } = await surface.send({ method: 'POST', path: `${path}/${verb}` });
        expect({ status, code: json.code }).toEqual({ status: 404, code: 'not_found' });
      }
    }
    const holder = await Holder.register(surface);
    const path = `/v1/workers/${holder.id}/drain`;
    expect((await surface.send({ method: 'POST', path, token: null })).status).toBe(401);
    expect((await surface.send({ method: 'POST', path, json: { reason: 'x' } })).status).toBe(422);
    expect((await surface.send({ method: 'POST', path: `${path}?force=1` })).status).toBe(422);
    expect(await shown(holder)).toMatchObject({ state: 'live' });
  });
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
