/** Cancels and reruns of many: bounded, in steps between which others go on, and never of what was not meant. */
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { encodeId, newId } from '../../src/kernel/ids.js';
import { Problem } from '../../src/kernel/problems.js';
import type { RequestCaller } from '../../src/platform/http/caller.js';
import type { PagePlace } from '../../src/platform/http/page.js';
import { Platform } from '../../src/platform/platform.js';
import type { Timing } from '../../src/platform/time.js';
import { BatchService } from '../../src/runs/batch.service.js';
import { BulkService } from '../../src/runs/bulk.service.js';
import { findEndedInputs } from '../../src/runs/bulk.sql.js';
import { cancelIfLive } from '../../src/runs/cancel.sql.js';
import type { Part } from '../../src/runs/list.sql.js';
import { RunMetrics } from '../../src/runs/run.metrics.js';
import { Turns } from '../../src/runs/turns.js';
import { type LocalSurface, openLocalSurface } from '../send.js';
import { Ground, until } from './ground.fixture.js';
import { Holder } from './holder.fixture.js';

let surface: LocalSurface;
beforeAll(async () => {
  surface = await openLocalSurface();
});
afterAll(() => surface.close());

async function submit(n: number, queue: string): Promise<void> {
  const runs = Array.from({ length: n }, () => ({ kind: 'noop', queue }));
  expect((await surface.send({ method: 'POST', path: '/v1/runs/batch', json: { runs } })).status).toBe(200);
}

async function countOf(queue: string): Promise<Record<string, number>> {
  const rows = await surface.pool.run<{ state: string; n: number }[]>(
    (sql) => sql`
    select coalesce(r.state, l.state) as state, count(*)::integer as n
    from runs r left join live_runs l on l.run_id = r.id
    where r.queue = ${queue}
    group by 1`,
  );
  return Object.fromEntries(rows.map(({ state, n }) => [state, n]));
}

function serviceWith(turns: Turns, timing: Timing = surface.platform.timing) {
  const { config, log, metrics: registry, pools, bells } = surface.platform;
  const platform = new Platform(config, log, registry, timing, pools, bells);
  const metrics = new RunMetrics(new Registry());
  const service = new BulkService(platform, metrics, turns, new BatchService(platform, metrics, turns));
  const principal = { type: 'token' as const, id: encodeId('tok', newId()), name: 'test' };
  const { organizationId } = surface;
  const chain = encodeId('org', organizationId);
  const caller: RequestCaller = { organizationId, chain, principal, isInstallationAdmin: true };
  return { service, caller };
}

type Places = Part<PagePlace>;

/** Where the search goes on behind its first part is said by the test. */
class FirstPart extends Turns {
  private isFirst = true;

  constructor(private readonly next: (part: Places) => PagePlace | undefined) {
    super(surface.platform.timing);
  }

  override async persist<T>(work: () => Promise<T>): Promise<T> {
    const found = await super.persist(work);
    if (!this.isFirst || typeof found !== 'object' || found === null || !('items' in found)) return found;
    this.isFirst = false;
    return { ...found, next: this.next(found as unknown as Places) ?? null };
  }
}

/** Takes so many, and no more. */
class Crowded extends Turns {
  constructor(private left: number) {
    super(surface.platform.timing);
  }

  override take<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    this.left -= 1;
    return this.left < 0 ? Promise.reject(new Problem('unavailable', 'busy')) : super.take(bytes, work);
  }
}

const untilCanceled = (queue: string) =>
  until('the first are canceled', async () => ((await countOf(queue)).canceled ?? 0) > 0);

it('F161 while 4,000 are canceled others submit to the same queue, and those runs stay', {
  timeout: 60_000,
}, async () => {
  const queue = `q-${newId()}`;
  for (let i = 0; i < 4; i += 1) await submit(1_000, queue);
  let isDone = false;
  const json = { filter: { queue } };
  const canceling = surface.send({ method: 'POST', path: '/v1/runs/cancel', json, overTheWire: true }).finally(() => {
    isDone = true;
  });
  await untilCanceled(queue);
  let meanwhile = 0;
  while (!isDone) {
    const answer = await surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue } });
    expect(answer.status).toBe(201);
    meanwhile += 1;
  }
  expect((await canceling).json).toEqual({ dryRun: false, matched: 4_000, canceled: 4_000, stopping: 0, next: null });
  expect(meanwhile, 'submits were answered between the steps').toBeGreaterThan(2);
  expect(await countOf(queue)).toEqual({ canceled: 4_000, pending: meanwhile });
});

it('tells those who hold runs, and those who wait for ends', async () => {
  const queue = `q-${newId()}`;
  await submit(2, queue);
  const holder = await Holder.register({ ...surface, queue });
  const { runId } = await holder.start();
  const { bells } = surface.platform;
  let rings = 0;
  const ended: string[] = [];
  bells.canceled.onRing(() => {
    rings += 1;
  });
  bells.ended.onRing((ids) => ended.push(...ids));
  const json = { filter: { queue } };
  const { json: told } = await surface.send({ method: 'POST', path: '/v1/runs/cancel', json });
  expect(told).toMatchObject({ canceled: 1, stopping: 1 });
  expect([rings, ended.length, ended.includes(runId)]).toEqual([1, 1, false]);
});

it('who went away while it works has nothing more canceled', { timeout: 60_000 }, async () => {
  const queue = `q-${newId()}`;
  for (let i = 0; i < 3; i += 1) await submit(1_000, queue);
  const gone = new AbortController();
  const request = fetch(`${await surface.base()}/v1/runs/cancel`, {
    method: 'POST',
    headers: { authorization: `Bearer ${surface.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ filter: { queue } }),
    signal: gone.signal,
  });
  const whole = vi.spyOn(surface.app.get(BulkService), 'cancel');
  await Promise.all([expect(request).rejects.toThrow(), untilCanceled(queue).then(() => gone.abort())]);
  const answer = await whole.mock.results[0]?.value;
  expect(answer.next, 'it did not come to the end').not.toBeNull();
  expect(await countOf(queue)).toEqual({ canceled: answer.canceled, pending: 3_000 - answer.canceled });
});

it('a cancel that takes too long says where it goes on, and then comes to the end', async () => {
  const queue = `q-${newId()}`;
  await submit(500, queue);
  const { timing } = surface.platform;
  let now = 0;
  const slow = { ...timing, monotonicMs: () => (now += 30_000) };
  const { service, caller } = serviceWith(new Turns(timing), slow);
  const filter = { queue };
  const parts: number[] = [];
  let after: Awaited<ReturnType<typeof service.cancel>>['next'] | undefined;
  do {
    const answer = await service.cancel(
      caller,
      { filter, dryRun: false, after: after ?? undefined },
      new AbortController().signal,
    );
    parts.push(answer.canceled);
    after = answer.next;
  } while (after !== null);
  expect(parts).toEqual([200, 200, 100]);
});

describe('in parts', () => {
  const { signal } = new AbortController();
  const bearing = (key: string) => ({ traceparent: null, key, requestDigest: 'sha256:of-the-request' });

  async function ended(n: number): Promise<string> {
    const queue = `q-${newId()}`;
    await submit(n, queue);
    await surface.send({ method: 'POST', path: '/v1/runs/cancel', json: { filter: { queue } } });
    return queue;
  }

  it('of one that ends behind a place that was passed, a rerun makes one', async () => {
    const queue = await ended(3);
    const { service, caller } = serviceWith(new FirstPart(({ items }) => items[0]));
    const request = { filter: { queue }, dryRun: false, after: undefined, limit: 10 };
    const answer = await service.rerun(caller, request, bearing(newId()), signal);
    expect(answer).toMatchObject({ matched: 3, next: null });
    expect(await countOf(queue)).toEqual({ canceled: 3, pending: 3 });
  });

  it('S4-110 a rerun goes on at the same place for whoever asks for it again, however far its search came', async () => {
    const queue = await ended(3);
    const farther = { at: new Date(0), id: newId() };
    const { service, caller } = serviceWith(new FirstPart(() => farther));
    const [request, key] = [{ filter: { queue }, dryRun: false, after: undefined, limit: 2 }, newId()];
    const first = await service.rerun(caller, request, bearing(key), signal);
    const again = await service.rerun(caller, request, bearing(key), signal);
    expect(again.items).toEqual(first.items);
    expect(first.next).toEqual({ at: expect.any(Date), id: first.items[1]?.rerunOf });
    expect(again).toMatchObject({ replayed: true, next: first.next });
  });

  it('a cancel that is turned away on its way tells what it did, and where it goes on', async () => {
    const queue = `q-${newId()}`;
    await submit(450, queue);
    const request = { filter: { queue }, dryRun: false, after: undefined };
    const busy = serviceWith(new Crowded(1));
    const answer = await busy.service.cancel(busy.caller, request, signal);
    expect(answer).toMatchObject({ matched: 200, canceled: 200, receipt: expect.any(String) });
    expect(await countOf(queue)).toEqual({ canceled: 200, pending: 250 });
    const after = answer.next ?? undefined;
    const full = serviceWith(new Crowded(0));
    await expect(full.service.cancel(full.caller, { ...request, after }, signal)).rejects.toThrow('busy');
    const free = serviceWith(new Crowded(9));
    const rest = await free.service.cancel(free.caller, { ...request, after }, signal);
    expect(rest).toMatchObject({ matched: 250, canceled: 250, next: null });
  });
});

describe('on the ground', () => {
  let ground: Ground;
  beforeAll(async () => {
    ground = await Ground.open();
  });
  afterAll(() => ground.close());

  it('a cancel by states leaves alone what a worker took since it was found', async () => {
    const [id, worker] = [await ground.runIn('pending', { fence: 0 }), await ground.worker()];
    const take = `update live_runs set state = 'claimed', holder = $2, claimed_at = now(), fence = 1 where run_id = $1`;
    const answer = await ground.behind(
      [[take, [id, worker]]],
      1,
      () => cancelIfLive(ground.pool, [ground.cancel(id, { states: ['pending', 'held'] })]),
      'commit',
    );
    expect(answer).toEqual([]);
    const { standing, live, entries } = await ground.look(id);
    expect([standing, live?.cancel_requested_at, entries]).toEqual(['claimed', null, []]);
    expect(await cancelIfLive(ground.pool, [ground.cancel(id, { states: ['claimed'] })])).toHaveLength(1);
  });

  it('what ended runs were made of is read as far as one statement takes it, in the order asked for', async () => {
    const holder = await ground.worker();
    const ids = await ground.runsIn(4, 'failed', { holder });
    const live = await ground.runIn('pending');
    await ground.sql.query('alter table runs disable trigger runs_ended_never_change');
    await ground.sql.query('update runs set spec = $2 where id = any ($1)', [ids, { x: 'y'.repeat(1_000) }]);
    await ground.sql.query('alter table runs enable trigger runs_ended_never_change');
    const read = async (asked: string[], maxBytes: number, organizationId = ground.organizationId) =>
      (await findEndedInputs(ground.pool, organizationId, asked, maxBytes)).map(({ id }) => id);
    const mixed = [...ids].reverse();
    expect(await read([mixed[0] ?? '', live, ...mixed.slice(1)], 1_000_000)).toEqual(mixed);
    expect(await read(mixed, 2_500)).toEqual(mixed.slice(0, 2));
    expect(await read(mixed, 10), 'the first goes however large it is').toEqual(mixed.slice(0, 1));
    expect(await read(mixed, 1_000_000, newId())).toEqual([]);
  });
});
