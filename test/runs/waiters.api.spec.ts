/** What waiting for ends costs one replica, and what becomes of who waits when it stops: seen from within. */
import { request as httpRequest } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { installationChain } from '../../src/audit/audit.sql.js';
import { decodeId, encodeId, newId } from '../../src/kernel/ids.js';
import { EndWatch } from '../../src/runs/ends.service.js';
import { HolderService } from '../../src/runs/holder.service.js';
import { findRun } from '../../src/runs/read.sql.js';
import { RunMetrics } from '../../src/runs/run.metrics.js';
import { registerIfNew } from '../../src/runs/worker.sql.js';
import { type Answer, type LocalSurface, openLocalSurface } from '../send.js';
import { until } from '../server.js';
import { Holder } from './holder.fixture.js';

let surface: LocalSurface;
beforeEach(async () => {
  surface = await openLocalSurface();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await surface.close();
});

function submit(prefer: string | undefined, headers: Record<string, string> = {}, body: object = {}): Promise<Answer> {
  const json = { kind: 'noop', queue: surface.queue, ...body };
  const wish: Record<string, string> = prefer === undefined ? {} : { prefer };
  return surface.send({ method: 'POST', path: '/v1/runs', json, headers: { ...headers, ...wish } });
}

/** For which runs each poll asked whether they have ended; it may fail each time. */
function watchPolls(mayWork = true): string[][] {
  const polls: string[][] = [];
  const { read } = surface.platform.pools;
  const run = read.run.bind(read);
  vi.spyOn(read, 'run').mockImplementation((statement) =>
    run((sql) => {
      const query = statement(sql);
      const { strings, args } = query as unknown as { strings: string[]; args: unknown[] };
      if (!strings?.[0]?.includes('select id from runs where id = any')) return query;
      polls.push(args[0] as string[]);
      if (mayWork) return query;
      throw Object.assign(new Error('the connection is gone'), { code: 'ECONNRESET' });
    }),
  );
  return polls;
}

/** The run of this surface's queue that waits to be claimed, once it is there. */
const waiting = () =>
  until('the run is made', async () => {
    const path = `/v1/runs?queue=${surface.queue}&state=pending`;
    const { items } = (await surface.send({ path })).json;
    return items[0]?.id as string | undefined;
  });

describe('a caller who prefers to wait', () => {
  it('is told without any poll of a cancel that this replica writes', async () => {
    watchPolls(false);
    const answer = submit('wait=30');
    const id = await waiting();
    await surface.send({ method: 'POST', path: `/v1/runs/${id}/cancel` });
    expect((await answer).json.state).toBe('canceled');
  });

  it('is told without any poll of the end of a run that this replica holds', async () => {
    watchPolls(false);
    const { pools } = surface.platform;
    const worker = {
      id: newId(),
      name: 'r1',
      kind: 'replica',
      slots: 1,
      queues: [surface.queue],
      version: '0',
    } as const;
    const chain = await installationChain(pools.work);
    await registerIfNew(pools.work, worker, 60_000, { chain: chain ?? '', object: encodeId('wrk', worker.id) });
    const metrics = surface.app.get(RunMetrics, { strict: false });
    const holder = new HolderService(surface.platform, worker, metrics, () => undefined);
    const answer = submit('wait=30');
    await waiting();
    const [run] = (await holder.claim(1)).runs;
    if (!run || !(await holder.start(run))) throw new Error('the run could not be started');
    const outcome = { state: 'succeeded', code: 'ok', kind: null, detail: '', exitCode: null, signal: null } as const;
    expect(await holder.finish(run, { outcome, output: { n: 1 }, outputDigest: null })).toBe(true);
    expect((await answer).json).toMatchObject({ state: 'succeeded', output: { n: 1 } });
  });
});

describe('many who wait', () => {
  it('cost one statement a poll, and none once nobody waits', async () => {
    const polls = watchPolls();
    const answers = Array.from({ length: 40 }, () => submit('wait=30'));
    await until('one poll asks for all of them', () => polls.some((ids) => ids.length === 40));
    expect(polls.filter((ids) => new Set(ids).size !== ids.length)).toEqual([]);
    const session = await surface.session();
    const ids = (await session.query('select id from runs where queue = $1', [surface.queue])).rows;
    const holder = await Holder.register(surface);
    for (const _ of ids) await holder.finish(await holder.start());
    const states = (await Promise.all(answers)).map(({ json }) => json.state);
    expect(states).toEqual(Array(40).fill('succeeded'));
    polls.splice(0);
    // Time enough for three more of them.
    await surface.platform.timing.delay(700);
    expect(polls).toEqual([]);
  });

  it('are a thousand at most: the next is answered at once, and says that it didn’t wait', async () => {
    const id = decodeId('run', (await submit(undefined)).json.id) ?? '';
    const run = await findRun(surface.pool, surface.organizationId, id);
    if (!run) throw new Error('the run is missing');
    const ends = surface.app.get(EndWatch, { strict: false });
    const wait = () => ({ forMs: 60_000, signal: new AbortController().signal });
    const all = Array.from({ length: 1_000 }, () => ends.awaitEnd(run, wait()));
    const refused = await submit('wait=60');
    expect(refused).toMatchObject({ status: 201, json: { state: 'pending' } });
    expect(refused.headers['preference-applied']).toBeUndefined();
    await surface.send({ method: 'POST', path: `/v1/runs/${id}/cancel` });
    const states = new Set((await Promise.all(all)).map((row) => row?.state));
    expect([...states]).toEqual(['canceled']);
    expect((await submit('wait=1')).headers['preference-applied'], 'there is room again').toBe('wait=1');
  });
});

describe('who waits no more', () => {
  it('a caller that goes away is forgotten: nobody asks for its run any more', async () => {
    const polls = watchPolls();
    const { hostname, port } = new URL(await surface.base());
    const headers = { authorization: `Bearer ${surface.token}`, 'content-type': 'application/json', prefer: 'wait=60' };
    const sent = httpRequest({ hostname, port, method: 'POST', path: '/v1/runs', headers });
    sent.on('error', () => undefined);
    sent.end(JSON.stringify({ kind: 'noop', queue: surface.queue }));
    const id = await waiting();
    await until('it is asked for', () => polls.length > 0);
    sent.destroy();
    const other = submit('wait=2', {}, { queue: `${surface.queue}-other` });
    const uuid = decodeId('run', id) ?? '';
    await until('only the other is asked for', () => polls.at(-1)?.length === 1 && !polls.at(-1)?.includes(uuid));
    expect((await other).json.state).toBe('pending');
    const session = await surface.session();
    const { rows } = await session.query('select state from live_runs where run_id = $1', [uuid]);
    expect(rows, 'its run goes on').toEqual([{ state: 'pending' }]);
  });

  it('a replica that stops answers with the run as it is', async () => {
    const answer = submit('wait=60');
    await waiting();
    await surface.app.close();
    const { status, json } = await answer;
    expect(status).toBe(201);
    expect(json.state).toBe('pending');
  });

  it('with the database gone, gets what was known once the time is over', async () => {
    const answer = submit('wait=1');
    await waiting();
    await surface.platform.pools.read.close();
    const { status, headers, json } = await answer;
    expect(status).toBe(201);
    expect(json).toMatchObject({ state: 'pending' });
    expect(headers.location).toBe(`/v1/runs/${json.id}`);
  });
});
