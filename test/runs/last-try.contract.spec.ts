/** An end that is known when its process has no more time to try: it is written as it is, or not at all. */
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { installationChain } from '../../src/audit/audit.sql.js';
import { encodeId, newId } from '../../src/kernel/ids.js';
import { Pool } from '../../src/platform/db/db.js';
import { HolderService } from '../../src/runs/holder.service.js';
import { RunMetrics } from '../../src/runs/run.metrics.js';
import { registerIfNew } from '../../src/runs/worker.sql.js';
import { type LocalSurface, openLocalSurface } from '../send.js';
import { until } from '../server.js';
import { TcpProxy } from '../tcp-proxy.js';

let surface: LocalSurface;
let proxy: TcpProxy;
let work: Pool;
beforeAll(async () => {
  surface = await openLocalSurface();
  proxy = await TcpProxy.start(surface.platform.config.databaseUrl ?? '');
  const log = pino({ level: 'silent' });
  work = new Pool({ url: proxy.through, direct: true, name: 'test', size: 1, statementTimeoutMs: 500, log });
});
afterAll(async () => {
  await work.close();
  await proxy.close();
  await surface.close();
});

it('loses neither detail nor output to a database that was away for a moment', async () => {
  const { platform, queue } = surface;
  const id = newId();
  const worker = { id, name: 'last', kind: 'worker' as const, slots: 1, queues: [queue], version: '0' };
  const chain = (await installationChain(surface.pool)) ?? '';
  await registerIfNew(surface.pool, worker, 600_000, { chain, object: encodeId('wrk', id) });
  const holder = new HolderService(
    { ...platform, pools: { ...platform.pools, work } },
    worker,
    new RunMetrics(new Registry()),
    () => undefined,
  );
  const { json } = await surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', spec: {}, queue } });
  const [run] = (await holder.claim(1)).runs;
  if (!run) throw new Error('there is nothing to claim');
  expect(await holder.start(run)).toBe(true);

  proxy.goSilent();
  const outcome = {
    state: 'succeeded',
    code: 'ok',
    kind: null,
    detail: 'exit code 0',
    exitCode: 0,
    signal: null,
  } as const;
  const written = holder.finish(run, { outcome, output: { rows: 1234 }, outputDigest: null });
  await until('it is under way', () => work.inFlight === 1);
  holder.stopRetrying();
  proxy.speak();
  expect(await written).toBe(true);
  expect((await surface.send({ path: `/v1/runs/${json.id}` })).json).toMatchObject({
    state: 'succeeded',
    output: { rows: 1234 },
    end: { detail: 'exit code 0' },
  });
});
