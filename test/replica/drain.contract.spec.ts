/** The work of a life whose row a person drains: real statements and a real executor; what runs are noops. */

import type { Client } from 'pg';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { installationChain } from '../../src/audit/audit.sql.js';
import { Executor } from '../../src/execution/executor.js';
import { encodeId, newId } from '../../src/kernel/ids.js';
import { WorkLoop } from '../../src/replica/work.loop.js';
import { HolderService } from '../../src/runs/holder.service.js';
import { JanitorService } from '../../src/runs/janitor.service.js';
import type { ClaimedRun } from '../../src/runs/run.js';
import { RunMetrics } from '../../src/runs/run.metrics.js';
import { registerIfNew } from '../../src/runs/worker.sql.js';
import { type LocalSurface, openLocalSurface } from '../send.js';

let surface: LocalSurface;
let sql: Client;
let life: Awaited<ReturnType<typeof begin>>;
beforeAll(async () => {
  surface = await openLocalSurface();
  sql = await surface.session();
});
beforeEach(async () => {
  life = await begin();
});
afterAll(() => surface.close());

/** A life that is everything but its process: steps are made by the test. */
async function begin() {
  const { platform } = surface;
  const queue = `q-${newId()}`;
  const worker = { id: newId(), name: 'drained', kind: 'worker' as const, slots: 4, queues: [queue], version: '0' };
  const chain = (await installationChain(surface.pool)) ?? '';
  await registerIfNew(surface.pool, worker, 600_000, { chain, object: encodeId('wrk', worker.id) });
  const metrics = new RunMetrics(new Registry());
  const holder = new HolderService(platform, worker, metrics, () => undefined);
  const claims = vi.spyOn(holder, 'claim');
  const nothing = () => {
    throw new Error('a noop needs no tool');
  };
  const executor = new Executor({
    platform,
    holder,
    supervisor: { launch: nothing, grantCredit: nothing, stop: nothing, kill: nothing },
    incarnation: worker.id,
    metrics,
    onStarted: () => work.noteStarted(),
    onStartFailed: (error) => work.noteStartFailed(error),
    onFree: () => work.noteClaimable(),
  });
  const work = new WorkLoop({
    holder,
    executor,
    janitor: new JanitorService(platform, worker, chain, metrics),
    timing: platform.timing,
    log: platform.log,
    pollIntervalMs: 0,
    mayClaim: () => true,
    onPulse: () => undefined,
  });
  return { id: encodeId('wrk', worker.id), queue, holder, claims, executor, work };
}

const ask = async (verb: 'drain' | 'undrain') =>
  expect((await surface.send({ method: 'POST', path: `/v1/workers/${life.id}/${verb}` })).status).toBe(200);
/** As the version before made it: claimed first and started then, although it has no tool. */
async function submit(): Promise<string> {
  const { id } = (await surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue: life.queue } }))
    .json;
  await sql.query('update live_runs set kind = null where queue = $1', [life.queue]);
  return id;
}
const show = async (id: string) => (await surface.send({ path: `/v1/runs/${id}` })).json;

/** Steps until nothing is to be done at once. */
async function stepUntilIdle(): Promise<number> {
  for (let steps = 1; steps <= 20; steps += 1) {
    const result = await life.work.step();
    await life.executor.idle(5_000);
    if (result === 'idle') return steps;
  }
  throw new Error('it never came to rest');
}

it('F006 a run that was claimed and not started when the drain commits is given back, and runs once after it', async () => {
  const id = await submit();
  const [claimed] = (await life.holder.claim(1)).runs;
  await ask('drain');
  life.executor.accept(claimed as ClaimedRun);
  expect(await life.executor.idle(5_000)).toBe(true);
  expect(await show(id)).toMatchObject({ state: 'pending', fence: 1, worker: null, startedAt: null, end: null });
  const { json } = await surface.send({ path: `/v1/runs/${id}/events` });
  expect(json.items.map(({ type }: { type: string }) => type)).toEqual(['run.submitted', 'run.released']);

  await ask('undrain');
  await stepUntilIdle();
  expect(await show(id)).toMatchObject({ state: 'succeeded', fence: 2, worker: { id: life.id } });
});

it('a life that drains claims nothing, whatever is made known, and claims after the first look at its return', async () => {
  await ask('drain');
  await life.work.step();
  const id = await submit();
  life.claims.mockClear();
  for (let look = 0; look < 5; look += 1) {
    life.work.noteClaimable();
    expect(await life.work.step()).toBe('idle');
  }
  expect(life.claims).not.toHaveBeenCalled();
  expect(await show(id)).toMatchObject({ state: 'pending', fence: 0 });

  await ask('undrain');
  expect(await life.work.step(), 'the look that finds it').toBe('more');
  await stepUntilIdle();
  expect(await show(id)).toMatchObject({ state: 'succeeded', fence: 1 });
});

it('a run that is canceled between claim and start ends canceled, drained or not', async () => {
  const id = await submit();
  const [claimed] = (await life.holder.claim(1)).runs;
  await ask('drain');
  await surface.send({ method: 'POST', path: `/v1/runs/${id}/cancel` });
  life.executor.accept(claimed as ClaimedRun);
  await life.executor.idle(5_000);
  expect(await show(id)).toMatchObject({ state: 'canceled', fence: 1 });
});
