/** The order of a queue, and that each run of it is taken exactly once, by whoever serves it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claimIfLive, releaseIfHeld } from '../../src/runs/claim.sql.js';
import { promoteDue, pulse } from '../../src/runs/pulse.sql.js';
import { Ground } from './ground.fixture.js';

let ground: Ground;
beforeAll(async () => {
  ground = await Ground.open();
});
afterAll(() => ground.close());

const MAX_RUN_MS = 3_600_000;

async function claimAll(worker: string, queues: readonly string[], limit: number): Promise<string[]> {
  const taken: string[] = [];
  for (;;) {
    const claimed = await claimIfLive(ground.pool, worker, queues, limit);
    if (claimed.length === 0) return taken;
    taken.push(...claimed.map((run) => run.runId));
  }
}

async function fill(queue: string, n: number): Promise<string[]> {
  const ids: string[] = [];
  for (let at = 0; at < n; at += 200) {
    const runs = await ground.submit(...Array.from({ length: Math.min(200, n - at) }, () => ({ queue })));
    ids.push(...runs.map((run) => run.id));
  }
  return ids;
}

describe('a queue', () => {
  it('S4-05 F008 eight claimers drain 2,000 runs: each is claimed exactly once, with its first fence', async () => {
    const ids = await fill('eight', 2_000);
    const workers: string[] = [];
    for (let i = 0; i < 8; i += 1) workers.push(await ground.worker());
    const claimed = await Promise.all(
      workers.map(async (worker) => {
        const taken: { runId: string; fence: number }[] = [];
        for (;;) {
          const batch = await claimIfLive(ground.pool, worker, ['eight'], 1 + (taken.length % 37));
          if (batch.length === 0) return taken;
          taken.push(...batch);
        }
      }),
    );
    const all = claimed.flat();
    expect(all).toHaveLength(2_000);
    expect(new Set(all.map((run) => run.runId))).toEqual(new Set(ids));
    expect(all.every((run) => run.fence === 1)).toBe(true);
    const { rows } = await ground.sql.query(
      `select count(*)::integer as n from live_runs where queue = 'eight' and state = 'claimed'`,
    );
    expect(rows[0].n).toBe(2_000);
  });

  it('S4-05 one claimer takes runs in the order in which they were submitted', async () => {
    const ids = await fill('order', 300);
    expect(await claimAll(await ground.worker(), ['order'], 7)).toEqual(ids);
  });

  it('a higher priority goes first, whatever its id or its age', async () => {
    const runs = await ground.submit(
      ...[0, -5, 100, 0, 7, -100].map((priority, i) => ({
        queue: 'priority',
        priority,
        id: `00000000-0000-7000-8000-00000000000${9 - i}`,
      })),
    );
    const order = [2, 4, 0, 3, 1, 5].map((i) => runs[i]?.id);
    expect(await claimAll(await ground.worker(), ['priority'], 1)).toEqual(order);
  });

  it('S4-13 a run that was given back keeps its place', async () => {
    const ids = await fill('place', 5);
    const worker = await ground.worker();
    const [first] = await claimIfLive(ground.pool, worker, ['place'], 2);
    expect(first?.runId).toBe(ids[0]);
    await releaseIfHeld(ground.pool, worker, [ground.release(ids[0] ?? '', worker, 1)]);
    expect(await claimAll(worker, ['place'], 1)).toEqual([ids[0], ids[2], ids[3], ids[4]]);
  });

  it('S4-04 a worker takes from the queues that it serves and from no other', async () => {
    const [gpu] = await ground.submit({ queue: 'gpu' });
    const [plain] = await ground.submit({ queue: 'plain' });
    const worker = await ground.worker();
    expect(await claimAll(worker, ['plain', 'unknown'], 10)).toEqual([plain?.id]);
    expect(await claimAll(worker, ['gpu'], 10)).toEqual([gpu?.id]);
  });

  it('S4-04 `*` serves every queue, the highest priority of all of them first, and no more than asked for', async () => {
    const worker = await ground.worker();
    await claimAll(worker, ['*'], 100);
    const [b, c, a] = await ground.submit({ queue: 'b' }, { queue: 'c', priority: 9 }, { queue: 'a' });
    const first = await claimIfLive(ground.pool, worker, ['*'], 2);
    expect(first.map((run) => run.runId)).toEqual([c?.id, b?.id]);
    expect(await claimAll(worker, ['*'], 2)).toEqual([a?.id]);
  });

  it('F014 a run whose row somebody holds is passed over without waiting', async () => {
    const ids = await fill('held-up', 3);
    const session = await ground.db.session();
    await session.query('begin');
    await session.query('select 1 from live_runs where run_id = $1 for update', [ids[0]]);
    const worker = await ground.worker();
    expect((await claimIfLive(ground.pool, worker, ['held-up'], 3)).map((run) => run.runId)).toEqual(ids.slice(1));
    await session.query('rollback');
    expect(await claimAll(worker, ['held-up'], 3)).toEqual([ids[0]]);
  });
});

describe('a run with an instant before which it may not start', () => {
  it('F157 is not claimed and not promoted before, and is both after, by the clock of the database', async () => {
    const [run] = await ground.submit({ queue: 'later', notBefore: new Date(Date.now() + 3_600_000).toISOString() });
    const worker = await ground.worker();
    const after = (ms: number) => expect.toSatisfy((inMs: number) => inMs > ms && inMs <= 3_600_000, `after ${ms}`);
    const before = (ms: number) => expect.toSatisfy((inMs: number) => inMs <= ms, `before ${ms}`);
    expect(await promoteDue(ground.pool, 10)).toBe(0);
    expect(await claimIfLive(ground.pool, worker, ['later'], 1)).toEqual([]);
    expect(await pulse(ground.pool, worker, ['later'], MAX_RUN_MS)).toMatchObject({
      claimable: false,
      dueInMs: after(3_590_000),
    });
    await ground.sql.query(`update live_runs set not_before = now() - interval '1 ms' where run_id = $1`, [run?.id]);
    expect(await claimIfLive(ground.pool, worker, ['later'], 1)).toEqual([]);
    expect(await pulse(ground.pool, worker, ['later'], MAX_RUN_MS)).toMatchObject({
      claimable: false,
      dueInMs: before(0),
    });
    expect(await promoteDue(ground.pool, 10)).toBe(1);
    expect(await promoteDue(ground.pool, 10)).toBe(0);
    expect(await pulse(ground.pool, worker, ['later'], MAX_RUN_MS)).toMatchObject({ claimable: true, dueInMs: null });
    expect(await claimAll(worker, ['later'], 1)).toEqual([run?.id]);
  });

  it('is claimable at once when that instant has passed already', async () => {
    const [run] = await ground.submit({ queue: 'past', notBefore: new Date(Date.now() - 1_000).toISOString() });
    expect(await claimAll(await ground.worker(), ['past'], 1)).toEqual([run?.id]);
  });

  it('is not promoted while it is held, for its hold may end before its instant', async () => {
    const id = await ground.runIn('held', { queue: 'held', notBefore: new Date(Date.now() - 1_000) });
    const before = await ground.look(id);
    await promoteDue(ground.pool, 100);
    expect(await ground.look(id)).toEqual(before);
  });

  it('several promoters share the work: each run is promoted once, at most a batch in a step', async () => {
    const worker = await ground.worker();
    await ground.runsIn(90, 'pending', { queue: 'due', notBefore: new Date(Date.now() - 1_000) });
    const counts = await Promise.all(Array.from({ length: 4 }, () => promoteDue(ground.pool, 20)));
    expect(Math.max(...counts)).toBeLessThanOrEqual(20);
    let promoted = counts.reduce((sum, n) => sum + n, 0);
    for (let n = 1; n > 0; promoted += n) n = await promoteDue(ground.pool, 20);
    expect(promoted).toBe(90);
    expect(await claimAll(worker, ['due'], 50)).toHaveLength(90);
  });
});

describe('the pulse', () => {
  it('tells what is mine to stop, and whether a lease is over, a run orphaned or overdue', async () => {
    await ground.sql.query(`update workers set lease_until = now() + interval '1 hour' where state = 'live'`);
    const [worker, other] = [await ground.worker(), await ground.worker()];
    const flagged = await ground.runIn('running', { holder: worker, flagged: true });
    const running = await ground.runIn('running', { holder: worker });
    await ground.runIn('running', { holder: other, flagged: true });
    const look = () => pulse(ground.pool, worker, ['default'], MAX_RUN_MS);
    const calm = { canceled: [flagged], leaseOver: false, orphaned: false, overdue: false };
    expect(await look()).toMatchObject(calm);
    await ground.sql.query(`update live_runs set started_at = now() - interval '61 minutes' where run_id = $1`, [
      running,
    ]);
    expect(await look()).toMatchObject({ ...calm, overdue: true });
    await ground.sql.query(`update workers set lease_until = now() - interval '1 s' where id = $1`, [other]);
    expect(await look()).toMatchObject({ ...calm, overdue: true, leaseOver: true });
    await ground.sql.query(`update workers set state = 'lost', ended_at = now() where id = $1`, [other]);
    expect(await look()).toMatchObject({ ...calm, overdue: true, orphaned: true });
  });
});
