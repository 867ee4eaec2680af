/**
 * What one lost worker held, taken over by ten janitors at once: each on pools of its own, as each replica's is. Everybody
 * else goes on meanwhile.
 */
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeId, newId } from '../../src/kernel/ids.js';
import { Bell } from '../../src/platform/bell.js';
import { systemTiming } from '../../src/platform/time.js';
import { cancelIfLive } from '../../src/runs/cancel.sql.js';
import { claimIfLive, startIfHeld } from '../../src/runs/claim.sql.js';
import { JanitorService } from '../../src/runs/janitor.service.js';
import { RunMetrics } from '../../src/runs/run.metrics.js';
import type { Settled } from '../../src/runs/settle.sql.js';
import { Ground } from './ground.fixture.js';

const AT_A_TIME = 200;
const SURVIVORS = 10;

let ground: Ground;
beforeAll(async () => {
  ground = await Ground.open();
});
afterAll(() => ground.close());

/** A worker that claimed `n` runs and started every other one; a tenth of each kind it was asked to stop. */
async function holderOf(n: number) {
  const queue = `lost-${n}`;
  const worker = await ground.worker({ queues: [queue] });
  const holds: { runId: string; fence: number }[] = [];
  while (holds.length < n) {
    const count = Math.min(AT_A_TIME, n - holds.length);
    await ground.submit(...Array.from({ length: count }, () => ({ queue })));
    const claimed = await claimIfLive(ground.pool, worker, [queue], count);
    const running = claimed.filter((_, i) => i % 2 === 1);
    await startIfHeld(ground.pool, worker, running);
    const canceled = claimed.filter((_, i) => i % 20 < 2);
    await cancelIfLive(
      ground.pool,
      canceled.map(({ runId }) => ground.cancel(runId)),
    );
    holds.push(...claimed);
  }
  const { rows } = await ground.sql.query<{ position: string }>(
    'select position from live_runs where holder = $1 order by position',
    [worker],
  );
  await ground.sql.query(`update workers set lease_until = now() - interval '1 second' where id = $1`, [worker]);
  return { worker, ids: holds.map(({ runId }) => runId), positions: rows.map(({ position }) => position) };
}

/** A replica's janitor, at work until nothing is orphaned any more. */
function janitor() {
  const id = newId();
  const platform = {
    log: pino({ level: 'silent' }),
    timing: systemTiming,
    config: { maxRunDurationMs: 3_600_000 },
    pools: { work: ground.db.pool(2), submit: ground.db.pool(2) },
    bells: { claimable: new Bell(), canceled: new Bell() },
  };
  const worker = { id, name: 'survivor', kind: 'replica' as const, slots: 0, queues: [], version: '0' };
  const service = new JanitorService(platform, worker, ground.installation, new RunMetrics(new Registry()));
  const batches: Settled[][] = [];
  return {
    object: encodeId('wrk', id),
    batches,
    async work(): Promise<string[]> {
      const reaped = await service.reap(() => true);
      while (await areOrphansLeft()) batches.push(await service.settle());
      return reaped;
    },
  };
}

/** Whether some worker's lease is over or a lost one still holds something. */
async function areOrphansLeft(): Promise<boolean> {
  const [row] = await ground.pool.run<{ left: boolean }[]>(
    (sql) => sql`
    select exists (
      select from live_runs l join workers w on w.id = l.holder where w.lease_until < db_clock() or w.state = 'lost'
    ) as left`,
  );
  return row?.left ?? false;
}

describe.each([60, 5_000])('%i runs that a lost worker held, and ten survivors', (n) => {
  it('S3-30 S3-13 S3-21 S4-09 S4-13 each run is settled once, the worker is reaped by one, in bounded batches', {
    timeout: 120_000,
  }, async () => {
    const { worker, ids, positions } = await holderOf(n);
    const another = await ground.worker();
    const elsewhere = await ground.runIn('running', { holder: another });
    const survivors = Array.from({ length: SURVIVORS }, janitor);
    const reaped = await Promise.all(survivors.map((one) => one.work()));

    expect(reaped.flat()).toEqual([worker]);
    const batches = survivors.flatMap((one) => one.batches);
    expect(Math.max(...batches.map((batch) => batch.length))).toBeLessThanOrEqual(AT_A_TIME);
    const settled = batches.flat().map(({ runId }) => runId);
    expect(settled).toHaveLength(n);
    expect(new Set(settled)).toEqual(new Set(ids));

    // One entry and one event each. Of 20 runs 10 were claimed and 10 running, one of each with a cancel request.
    expect(await told(ids)).toEqual([
      { state: 'canceled', code: 'canceled', n: n / 20, ends: 2, requeues: 0 },
      { state: 'interrupted', code: 'worker_lost', n: n / 2, ends: 2, requeues: 0 },
      { state: 'pending', code: null, n: (n * 9) / 20, ends: 0, requeues: 2 },
    ]);
    const names = survivors.map(({ object }) => object);
    expect(names).toEqual(expect.arrayContaining(await actorsOf(ids)));
    const { rows: lost } = await ground.sql.query<{ by: string }>(
      `select claim::jsonb -> 'payload' ->> 'principal' as by from audit_entries
       where action = 'worker.lost' and claim::jsonb -> 'payload' ->> 'object' = $1`,
      [encodeId('wrk', worker)],
    );
    expect(lost.map(({ by }) => names.includes(by))).toEqual([true]);
    // Back in their old places, under the fence that their next claim raises.
    const { rows: back } = await ground.sql.query(
      `select position, fence, holder, claimed_at from live_runs where run_id = any ($1::uuid[]) order by position`,
      [ids],
    );
    expect(back.every((row) => row.fence === 1 && row.holder === null && row.claimed_at === null)).toBe(true);
    expect(positions).toEqual(expect.arrayContaining(back.map(({ position }) => position)));
    expect((await ground.look(elsewhere)).live).toMatchObject({ state: 'running', holder: another });
  });
});

/** How these runs stand, by state, and how many entries and events together each has of its end and its requeue. */
async function told(ids: readonly string[]) {
  const { rows } = await ground.sql.query(
    `select state, code, count(*)::integer as n, ends::integer, requeues::integer
     from (
       select coalesce(r.state, l.state) as state, r.end_code as code,
              count(*) filter (where w.what = 'run.ended') as ends,
              count(*) filter (where w.what = 'run.requeued') as requeues
       from runs r
       left join live_runs l on l.run_id = r.id
       left join (
         select run_id, action as what from audit_entries
         union all
         select run_id, type from run_events
       ) w on w.run_id = r.id
       where r.id = any ($1::uuid[])
       group by r.id, l.state
     ) run
     group by state, code, ends, requeues order by state`,
    [ids],
  );
  return rows;
}

/** Who ended or requeued these runs, as the audit chain has it. */
async function actorsOf(ids: readonly string[]): Promise<string[]> {
  const { rows } = await ground.sql.query<{ by: string }>(
    `select distinct claim::jsonb -> 'payload' ->> 'principal' as by from audit_entries
     where run_id = any ($1::uuid[]) and action in ('run.ended', 'run.requeued')`,
    [ids],
  );
  return rows.map(({ by }) => by);
}
