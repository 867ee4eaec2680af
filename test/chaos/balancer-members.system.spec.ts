/**
 * Replicas come and go under a steady load, behind nginx, which learns of it from answers that don't come, and behind
 * HAProxy, which asks `/readyz`. No request fails that could be led to somebody.
 */
import { rm, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { decodeId } from '../../src/kernel/ids.js';
import { until } from '../server.js';
import { type Balancer, startBalancer } from './balancer.fixture.js';
import { Clients } from './balancer-clients.fixture.js';
import { scaled } from './scale.js';
import { Stage } from './stage.fixture.js';

const PER_SECOND = scaled(10, 40);
/** A line each 50 ms, as long as there is the file. */
const TALK = 'i=0; while [ -e "$0" ]; do echo $i; i=$((i+1)); sleep 0.05; done';

let stage: Stage;
/** One that asks another when it gets no answer, and one that only looks whether a replica is ready. */
let balancers: Balancer[];
beforeAll(async () => {
  stage = await Stage.open([]);
  await stage.add('r1', { env: { CAPSTAN_QUEUES: 'default,talk' } });
  const ports = [stage.get('r1').port];
  balancers = [await startBalancer('nginx', ports), await startBalancer('haproxy', ports, { repeats: false })];
});
afterAll(async () => {
  await Promise.all((balancers ?? []).map((balancer) => balancer.close()));
  await stage?.close();
});

/** Clients of each balancer, among them viewers of a run that talks until `stop`. */
async function startClients() {
  const file = `${stage.db.scratch}/talk-${Math.random().toString(36).slice(2)}`;
  await writeFile(file, '');
  const run = await stage.submit(['sh', '-c', TALK, file], { queue: 'talk' }, [stage.get('r1')]);
  const all = balancers.map(({ url }) => Clients.start(url, PER_SECOND, [run]));
  return {
    all,
    /** Checks that viewers saw everything once, and that every acknowledged run exists. */
    stop: async () => {
      await rm(file);
      const seen = (await Promise.all(all.map((clients) => clients.stop()))).flat();
      const told = await stage.call(stage.get('r1'), 'GET', `/v1/runs/${run}`);
      expect(told.body).toMatchObject({ state: 'succeeded' });
      for (const output of seen) {
        const lines = output.toString().trimEnd().split('\n').map(Number);
        expect(lines, 'each line once, in order').toEqual(lines.map((_, i) => i));
        expect(lines.length).toBeGreaterThan(20);
        expect(output.equals(seen[0] ?? output)).toBe(true);
      }
      const ids = all.flatMap(({ acknowledged }) => acknowledged.map((id) => decodeId('run', id)));
      const [row] = await stage.db.query<{ n: number }>(
        'select count(*)::integer as n from runs where id = any($1::uuid[])',
        [ids],
      );
      expect(row?.n, 'what was acknowledged is there').toBe(new Set(ids).size);
    },
  };
}

it('S3-02 S3-14 replicas are added and removed under load, one to five and back, and no request fails', async () => {
  const { all, stop } = await startClients();
  const more = ['r2', 'r3', 'r4', 'r5'];
  for (const pair of [more.slice(0, 2), more.slice(2)]) {
    await Promise.all(pair.map((name) => stage.add(name)));
    await Promise.all(balancers.map((balancer) => balancer.lead(stage.all().map(({ port }) => port))));
  }
  await until(
    'everybody answers through both',
    () => all.every(({ byReplica }) => stage.names.every((name) => (byReplica[name] ?? 0) > 3)),
    60_000,
  );
  for (const name of more) expect(await stage.stop(name)).toBe(0);
  const before = all.map(({ count }) => count);
  await until('they go on with one', () => all.every(({ count }, i) => count > (before[i] ?? 0) + PER_SECOND), 60_000);
  await stop();
  for (const { failures } of all) expect(failures).toEqual([]);
});

it('a replica that is killed takes with it only what it was answering, and nothing where requests are repeated', async () => {
  const victims = ['r2', 'r3'];
  await Promise.all(victims.map((name) => stage.add(name)));
  const ports = ['r1', ...victims].map((name) => stage.get(name).port);
  await Promise.all(balancers.map((balancer) => balancer.close()));
  balancers = [
    await startBalancer('nginx', ports, { repeatsPosts: true }),
    await startBalancer('haproxy', ports, { repeats: true }),
  ];
  const { all, stop } = await startClients();
  const kills: number[] = [];
  for (const name of victims) {
    await until('it answers through both', () => all.every(({ byReplica }) => (byReplica[name] ?? 0) > 5));
    kills.push(Date.now());
    await stage.kill(name);
    const before = all.map(({ count }) => count);
    await until('they go on', () => all.every(({ count }, i) => count > (before[i] ?? 0) + 2 * PER_SECOND));
  }
  await stop();
  // A stream has begun to be answered, so nobody can repeat it: its viewer goes on elsewhere.
  const [nginx = [], haproxy = []] = all.map(({ failures }) => failures.filter(({ kind }) => kind !== 'follow'));
  expect(nginx).toEqual([]);
  const wasUnderWay = ({ sentAtMs, failedAtMs }: { sentAtMs: number; failedAtMs: number }) =>
    kills.some((at) => sentAtMs <= at + 50 && failedAtMs >= at);
  expect(haproxy.filter((failure) => !wasUnderWay(failure))).toEqual([]);
});
