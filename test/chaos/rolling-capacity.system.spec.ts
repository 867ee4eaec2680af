/**
 * Capacity grows by starting processes: each executes as much as its slots, none is preferred, none is needed. What a
 * setting says about a process can be seen from outside.
 */
import { request } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../server.js';
import { Stage, TOKEN } from './stage.fixture.js';

const NAMES = ['r1', 'r2', 'r3'];
const SLOTS = 4;

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open(NAMES);
});
afterAll(() => stage?.close());

const replicas = () => NAMES.map((name) => stage.get(name));

const submitAll = (count: number, seconds: number, queue = 'default') =>
  Promise.all(Array.from({ length: count }, () => stage.submit(['sleep', String(seconds)], { queue }, replicas())));

/** How many runs each life runs now. */
async function runningByName(): Promise<Record<string, number>> {
  const rows = await stage.db.query<{ name: string; n: number }>(
    `select w.name, count(*)::integer as n from live_runs l join workers w on w.id = l.holder
     where l.state = 'running' group by w.name`,
  );
  return Object.fromEntries(rows.map(({ name, n }) => [name, n]));
}

/** The number behind a line of `/metrics`. */
async function metric(name: string, line: string): Promise<number | undefined> {
  const answer = await fetch(`${stage.get(name).url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } });
  const found = (await answer.text()).split('\n').find((each) => each.startsWith(`${line} `));
  return found === undefined ? undefined : Number(found.split(' ').at(-1));
}

it('S4-02 S4-03 three replicas of 4 slots run 12 runs at the same instant, and never more', async () => {
  await submitAll(20, 4);
  const seen: Record<string, number>[] = [];
  await until(
    'all have run',
    async () => {
      seen.push(await runningByName());
      return Object.keys(await stage.live()).length === 0;
    },
    60_000,
  );
  const sums = seen.map((each) => Object.values(each).reduce((sum, n) => sum + n, 0));
  expect(Math.max(...sums)).toBe(NAMES.length * SLOTS);
  expect(Math.max(...seen.flatMap((each) => Object.values(each)))).toBe(SLOTS);
});

it('F159 S4-01 30 runs spread over three workers of 10 slots, which are listed with the replicas', async () => {
  const wide = ['w1', 'w2', 'w3'];
  const env = { CAPSTAN_QUEUES: 'wide', CAPSTAN_SLOTS: '10' };
  await Promise.all(wide.map((name) => stage.add(name, { kind: 'worker', env })));
  await submitAll(30, 5, 'wide');
  await stage.untilEnded(60_000);
  const shares = await stage.db.query<{ name: string; n: number }>(
    `select w.name, count(*)::integer as n from runs r join workers w on w.id = r.worker_id
     where r.queue = 'wide' group by w.name order by w.name`,
  );
  expect(shares.map(({ name }) => name)).toEqual(wide);
  expect(Math.min(...shares.map(({ n }) => n))).toBeGreaterThanOrEqual(5);
  const { body } = await stage.call(stage.get('r2'), 'GET', '/v1/workers');
  const { items } = body as { items: { name: string; kind: string; slots: number; leaseUntil: string }[] };
  const listed = items.map(({ name, kind, slots }) => `${name} ${kind} ${slots}`).sort();
  expect(listed).toEqual([...NAMES.map((name) => `${name} replica 4`), ...wide.map((name) => `${name} worker 10`)]);
  for (const name of wide) expect(await stage.stop(name)).toBe(0);
});

it('F013 runs that nobody serves are pending and not started, and how many and how old they are shows', async () => {
  const ids = await submitAll(3, 0, 'later');
  const depth = 'capstan_queue_depth{queue="later"}';
  const age = 'capstan_queue_oldest_pending_seconds{queue="later"}';
  await until('the depth is told', async () => (await metric('r3', depth)) === 3);
  const first = (await metric('r3', age)) ?? 0;
  await until('the age grows', async () => ((await metric('r3', age)) ?? 0) > first + 1);
  for (const id of ids) {
    const { body } = await stage.call(stage.get('r1'), 'GET', `/v1/runs/${id}`);
    expect(body).toMatchObject({ state: 'pending', claimedAt: null, startedAt: null, worker: null });
  }
  await stage.add('late', { kind: 'worker', env: { CAPSTAN_QUEUES: 'later' } });
  await stage.untilEnded(20_000);
  const { body } = await stage.call(stage.get('r1'), 'GET', `/v1/runs/${ids[0]}`);
  const run = body as { createdAt: string; claimedAt: string; startedAt: string; state: string };
  expect(run).toMatchObject({ state: 'succeeded', worker: { name: 'late' } });
  expect(Date.parse(run.claimedAt)).toBeGreaterThan(Date.parse(run.createdAt) + 1_000);
  expect(Date.parse(run.startedAt)).toBeGreaterThanOrEqual(Date.parse(run.claimedAt));
  await until('nothing waits any more', async () => ((await metric('r3', depth)) ?? 0) === 0);
  expect(await stage.stop('late')).toBe(0);
});

it('S3-10 what is set for the looks for work, the renewals and the janitor is what is measured', async () => {
  const often = { CAPSTAN_POLL_INTERVAL: '200ms', CAPSTAN_LEASE_RENEW: '1s', CAPSTAN_JANITOR_INTERVAL: '1s' };
  const seldom = { CAPSTAN_POLL_INTERVAL: '3s', CAPSTAN_LEASE_RENEW: '4s', CAPSTAN_JANITOR_INTERVAL: '4s' };
  await Promise.all([
    stage.add('often', { kind: 'worker', env: { ...often, CAPSTAN_QUEUES: 'none' } }),
    stage.add('seldom', { kind: 'worker', env: { ...seldom, CAPSTAN_QUEUES: 'none', CAPSTAN_LEASE_TTL: '1m' } }),
  ]);
  const leases: Record<string, Set<number>> = { often: new Set(), seldom: new Set() };
  const steps = async (name: string) => {
    const [work, janitor] = await Promise.all([
      metric(name, 'capstan_loop_steps_total{loop="work",result="idle"}'),
      metric(name, 'capstan_loop_steps_total{loop="janitor",result="idle"}'),
    ]);
    return { work: work ?? 0, janitor: janitor ?? 0 };
  };
  const before = { often: await steps('often'), seldom: await steps('seldom') };
  await until('the lease of who renews seldom has moved twice', async () => {
    const rows = await stage.db.query<{ name: string; until: Date; ttl: number }>(
      `select name, lease_until as until, extract(epoch from lease_until - clock_timestamp())::float8 as ttl
       from workers where name in ('often', 'seldom') and ended_at is null`,
    );
    for (const { name, until: at } of rows) leases[name]?.add(at.getTime());
    return (leases.seldom?.size ?? 0) >= 3;
  });
  const after = { often: await steps('often'), seldom: await steps('seldom') };
  const made = (name: 'often' | 'seldom', loop: 'work' | 'janitor') => after[name][loop] - before[name][loop];
  expect(leases.often?.size).toBeGreaterThan(1.5 * (leases.seldom?.size ?? 0));
  for (const loop of ['work', 'janitor'] as const) {
    expect(made('often', loop), loop).toBeGreaterThan(2 * made('seldom', loop));
  }
  const [{ ms = 0 } = {}] = await stage.db.query<{ ms: number }>(
    `select (extract(epoch from max(lease_until) - clock_timestamp()) * 1000)::float8 as ms from workers where name = 'seldom'`,
  );
  expect(ms).toBeGreaterThan(40_000);
  expect(ms).toBeLessThanOrEqual(60_000);
  await Promise.all(['often', 'seldom'].map((name) => stage.stop(name)));
});

/** A download that nobody takes: its connection stays, full. */
async function held(path: string): Promise<() => void> {
  const { hostname, port } = new URL(stage.get('r1').url);
  const sent = request({ hostname, port, path, headers: { authorization: `Bearer ${TOKEN}` }, agent: false });
  sent.on('error', () => undefined);
  await new Promise((resolve) => {
    sent.on('response', (answer) => resolve(answer.on('error', () => undefined).pause()));
    sent.end();
  });
  return () => sent.destroy();
}

it('S4-06 downloads and lists that are not taken hold up no claim', async () => {
  const words = `head -c 30000000 /dev/zero | tr '\\0' 'x' | fold -w 100`;
  const loud = await stage.submit(['sh', '-c', words], {}, replicas());
  await stage.untilEnded(60_000);
  /** Median time in ms from a submit to its claim and to its end. */
  const waits = async () => {
    const label = { wait: String(Math.random()) };
    for (let i = 0; i < 15; i += 1) {
      await stage.submit([], { kind: 'noop', spec: {}, labels: label }, [stage.get('r1')]);
      await stage.untilEnded(20_000);
    }
    const [row] = await stage.db.query<{ claim: number; end: number }>(
      `select percentile_cont(0.5) within group (order by extract(epoch from claimed_at - created_at) * 1000) as claim,
              percentile_cont(0.5) within group (order by extract(epoch from ended_at - claimed_at) * 1000) as "end"
       from runs where labels @> $1`,
      [label],
    );
    return { claim: Number(row?.claim), end: Number(row?.end) };
  };
  const quiet = await waits();
  const release = await Promise.all([
    ...Array.from({ length: 20 }, () => held(`/v1/runs/${loud}/output`)),
    ...Array.from({ length: 20 }, () => held('/v1/runs?limit=200')),
  ]);
  const busy = await waits();
  for (const letGo of release) letGo();
  expect(busy.claim).toBeLessThan(5 * quiet.claim + 100);
  expect(busy.end).toBeLessThan(5 * quiet.end + 100);
});

it('S4-51 S3-22 whichever replica is killed, the rest goes on', async () => {
  for (const name of NAMES) {
    const [run] = await submitAll(1, 600);
    await stage.untilRunning(1);
    await stage.kill(name);
    const rest = NAMES.filter((each) => each !== name).map((each) => stage.get(each));
    const others = await Promise.all(Array.from({ length: 8 }, () => stage.submit(['true'], {}, rest)));
    await until(
      `the rest goes on without ${name}`,
      async () => {
        const ended = new Map((await stage.ended()).map(({ id, state }) => [id, state]));
        return others.every((id) => ended.get(id) === 'succeeded');
      },
      30_000,
    );
    await stage.call(rest[0] ?? '', 'POST', `/v1/runs/${run}/cancel`);
    await stage.add(name);
  }
  const ended = await stage.untilEnded(60_000);
  const odd = ended.filter(({ state }) => !['succeeded', 'canceled', 'interrupted'].includes(state));
  expect(odd).toEqual([]);
  expect(await stage.faults()).toEqual([]);
});
