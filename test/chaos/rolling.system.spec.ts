/**
 * One replica after another is stopped in order and started again while runs are queued and clients are served: nothing
 * is lost, nothing runs twice, no request fails, and who is told to stop claims nothing more.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { decodeId, encodeId } from '../../src/kernel/ids.js';
import { until } from '../server.js';
import { type Balancer, startBalancer } from './balancer.fixture.js';
import { Clients } from './balancer-clients.fixture.js';
import { CLEAN } from './effects.fixture.js';
import { scaled } from './scale.js';
import { Stage } from './stage.fixture.js';

const NAMES = ['r1', 'r2', 'r3'];
const RUNS = scaled(60, 200);
const CYCLES = scaled(3, 20);
const TOOL_SECONDS = scaled(2, 5);
/** Drain time, grace and 5 s, as `QUICK` has them. */
const STOPS_WITHIN_MS = 10_000 + 1_000 + 5_000;

let stage: Stage;
let balancer: Balancer;
beforeAll(async () => {
  stage = await Stage.open(NAMES);
  balancer = await startBalancer(
    'nginx',
    stage.all().map(({ port }) => port),
    { repeatsPosts: true },
  );
});
afterAll(async () => {
  await balancer?.close();
  await stage?.close();
});

/** Runs that a life has claimed after it said that it is draining. */
async function claimedLate(): Promise<{ name: string; byMs: number }[]> {
  const drains = await stage.db.query<{ worker: string; at: Date }>(
    `select claim::jsonb ->> 'object' as worker, at from audit_entries where action = 'worker.draining'`,
  );
  const late = await Promise.all(
    drains.map(({ worker, at }) =>
      stage.db.query<{ name: string; byMs: number }>(
        `select w.name, (extract(epoch from r.claimed_at - $2::timestamptz) * 1000)::float8 as "byMs"
         from (select worker_id, claimed_at from runs
               union all select holder, claimed_at from live_runs where holder is not null) r
         join workers w on w.id = r.worker_id
         where w.id = $1 and r.claimed_at > $2`,
        [decodeId('wrk', worker), at],
      ),
    ),
  );
  expect(drains.length).toBeGreaterThanOrEqual(CYCLES);
  return late.flat();
}

/** Live runs that are with somebody who is gone. */
function stranded(): Promise<{ state: string }[]> {
  return stage.db.query(
    `select l.state from live_runs l join workers w on w.id = l.holder where w.ended_at is not null`,
  );
}

it('F006 S3-15 a rolling restart under load loses no run, doubles none and fails no request', async () => {
  const submits = Array.from({ length: RUNS }, () => stage.submit(stage.effects.tool(TOOL_SECONDS)));
  const runs = await Promise.all(submits);
  const clients = Clients.start(balancer.url, 10);
  const codes: (number | null)[] = [];
  const tookMs: number[] = [];
  for (let cycle = 0; cycle < CYCLES; cycle += 1) {
    const name = NAMES[cycle % NAMES.length] ?? '';
    await until(`${name} runs something`, async () => (await heldBy(name)) > 0);
    const beganAt = performance.now();
    codes.push(await stage.stop(name));
    tookMs.push(performance.now() - beganAt);
    expect(await stranded()).toEqual([]);
    await stage.add(name);
  }
  await clients.stop();
  const ended = await stage.untilEnded(RUNS * TOOL_SECONDS * 1_000);
  expect(codes).toEqual(codes.map(() => 0));
  expect(Math.max(...tookMs)).toBeLessThan(STOPS_WITHIN_MS);
  const ours = ended.filter(({ id }) => runs.includes(id));
  expect(ours.map(({ state }) => state)).toEqual(runs.map(() => 'succeeded'));
  expect(await stage.effects.judge(ours)).toEqual(CLEAN);
  expect(await claimedLate()).toEqual([]);
  expect(await stage.faults()).toEqual([]);
  expect(clients.failures).toEqual([]);
  expect(clients.count).toBeGreaterThan(20);
});

async function heldBy(name: string): Promise<number> {
  const [row] = await stage.db.query<{ n: number }>(
    `select count(*)::integer as n from live_runs l join workers w on w.id = l.holder
     where w.name = $1 and w.ended_at is null`,
    [name],
  );
  return row?.n ?? 0;
}

it('F120 F121 at the end of the drain time a long run is interrupted before the exit, a short one has succeeded', async () => {
  await stage.add('d1', { env: { CAPSTAN_QUEUES: 'drain', CAPSTAN_DRAIN_TIMEOUT: '4s' } });
  const queue = { queue: 'drain' };
  const long = await stage.submit(stage.effects.tool(600, 'stubborn'), queue, [stage.get('r1')]);
  const short = await stage.submit(stage.effects.tool(1.5), queue, [stage.get('r1')]);
  await until('both run', async () => (await heldBy('d1')) === 2);
  await stage.untilRunning(2);
  const beganAt = performance.now();
  const code = await stage.stop('d1');
  expect(code, stage.get('d1').server.log()).toBe(0);
  const tookMs = performance.now() - beganAt;
  // Past every replica: nobody had to find out by a lease that ran out.
  const ended = (await stage.ended()).filter(({ id }) => id === long || id === short);
  expect(Object.fromEntries(ended.map(({ id, state, code }) => [id, `${state} ${code}`]))).toEqual({
    [long]: 'interrupted replica_stopped',
    [short]: 'succeeded ok',
  });
  expect(tookMs).toBeGreaterThan(3_900);
  expect(tookMs).toBeLessThan(4_000 + 1_000 + 5_000);
  expect(await stage.effects.judge(ended)).toEqual(CLEAN);
  const [life] = await stage.db.query<{ id: string; state: string }>(`select id, state from workers where name = 'd1'`);
  expect(life?.state).toBe('stopped');
  const shown = await stage.call(stage.get('r1'), 'GET', `/v1/runs/${long}`);
  expect(shown.body).toMatchObject({ worker: { id: encodeId('wrk', life?.id ?? ''), name: 'd1' } });
});
