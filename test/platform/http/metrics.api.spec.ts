/** What is counted of requests: by the template of the route, and never by anything that a caller wrote. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { newId } from '../../../src/kernel/ids.js';
import { Holder } from '../../runs/holder.fixture.js';
import { StreamClient } from '../../runs/stream.fixture.js';
import { type LocalSurface, openLocalSurface } from '../../send.js';
import { until } from '../../server.js';

let surface: LocalSurface;
beforeAll(async () => {
  surface = await openLocalSurface();
});
beforeEach(() => surface.platform.metrics.getSingleMetric('capstan_http_request_duration_seconds')?.reset());
afterAll(() => surface.close());

/** How many answers of each method, route and status there were. */
async function answers(): Promise<Record<string, number>> {
  const metric = await surface.platform.metrics.getSingleMetric('capstan_http_request_duration_seconds')?.get();
  const counts = metric?.values.filter((value) => 'metricName' in value && String(value.metricName).endsWith('_count'));
  return Object.fromEntries(
    (counts ?? []).map(({ labels, value }) => [`${labels.method} ${labels.route} ${labels.status}`, value]),
  );
}

async function inFlight(): Promise<number | undefined> {
  return (await surface.platform.metrics.getSingleMetric('capstan_http_requests_in_flight')?.get())?.values[0]?.value;
}

/** Until all that was sent is counted: an answer is there a moment before it is over. */
async function expectAnswers(expected: Record<string, number>): Promise<void> {
  const count = (counts: Record<string, number>) => Object.values(counts).reduce((sum, n) => sum + n, 0);
  await until('all are counted', async () => count(await answers()) >= count(expected));
  expect(await answers()).toEqual(expected);
}

async function exchange(...lines: readonly string[]): Promise<void> {
  const socket = connect(Number(new URL(await surface.base()).port), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.end(`${lines.join('\r\n')}\r\n\r\n`);
  socket.resume();
  await once(socket, 'close');
}

it('is one line per route, method and status, whichever run a path names', async () => {
  const { id } = (
    await surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue: surface.queue } })
  ).json;
  for (const run of [id, `run_${newId()}`, newId(), newId()]) await surface.send({ path: `/v1/runs/${run}` });
  await surface.send({ path: `/v1/runs/${id}` });
  await surface.send({ path: `/v1/runs/${id}`, token: null });
  await expectAnswers({
    'POST /v1/runs 201': 1,
    'GET /v1/runs/:id 200': 2,
    'GET /v1/runs/:id 404': 3,
    'GET /v1/runs/:id 401': 1,
  });
  expect(await inFlight()).toBe(0);
});

it('F127 has no line of its own for any unknown path or method, and none for what is not HTTP', async () => {
  for (let i = 0; i < 200; i += 1) await surface.send({ path: `/api/v1/x${i}` });
  for (const path of ['/v1/runs/a/b', '/%00', '/%', '//', '/v1/runs/:id/x']) await surface.send({ path });
  for (const method of ['BREW', 'PROPFIND', 'GET\u00ff', 'X'.repeat(40), 'PUT']) {
    await exchange(`${method} /v1/nothing-${method} HTTP/1.1`, 'Host: x', 'Connection: close');
  }
  await exchange('GET / HTTP/9.9');
  await until('all are answered', async () => (await inFlight()) === 0);
  const counted = await answers();
  const routes = new Set(Object.keys(counted).map((line) => line.split(' ')[1]));
  expect([...routes]).toEqual(['(none)']);
  expect(Object.keys(counted).length).toBeLessThan(8);
  expect(counted['GET (none) 404']).toBeGreaterThanOrEqual(200);
  expect(counted['(other) (none) 404']).toBeGreaterThanOrEqual(1);
  expect(counted['PUT (none) 404']).toBe(1);
});

it('is not made longer by streams, nor by waits that were asked for', async () => {
  const queue = `q-${newId()}`;
  const json = { kind: 'noop', queue };
  const { id } = (await surface.send({ method: 'POST', path: '/v1/runs', json })).json;
  const holder = await Holder.register({ ...surface, queue });
  const followed = await holder.start();
  const waiting = surface.send({ method: 'POST', path: '/v1/runs', json, headers: { prefer: 'wait=30' } });
  const awaited = await until('the other is there', () => holder.start().catch(() => undefined));
  const path = `/v1/runs/${id}/stream`;
  const viewer = await StreamClient.open({ base: await surface.base(), token: surface.token, path });
  await until('both are open', async () => (await inFlight()) === 2);
  for (const hold of [followed, awaited]) await holder.finish(hold);
  expect((await waiting).json.state).toBe('succeeded');
  await viewer.closed;
  await until('both are over', async () => (await inFlight()) === 0);
  await expectAnswers({ 'POST /v1/runs 201': 1 });
});

it('is an answer like any other when the wish to wait was none', async () => {
  await surface.send({ path: '/v1/runs', headers: { prefer: 'wait=30' } });
  await surface.send({ path: '/healthz', headers: { prefer: 'x' } });
  await expectAnswers({ 'GET /v1/runs 200': 1, 'GET /healthz 200': 1 });
});

it('counts who went away before there was an answer as 499', async () => {
  const holder = await surface.session();
  await holder.query('begin');
  await holder.query('lock table runs in access exclusive mode');
  const port = Number(new URL(await surface.base()).port);
  const socket = connect(port, '127.0.0.1');
  socket.write(`GET /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${surface.token}\r\n\r\n`);
  await until('it is under way', async () => (await inFlight()) === 1);
  socket.destroy();
  await expectAnswers({ 'GET /v1/runs 499': 1 });
  await holder.query('rollback');
});
