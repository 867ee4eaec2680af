/** What asking why costs: with 300,000 runs in front no more than with as many as there are slots. */
import type postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Pool, Sql } from '../../src/platform/db/db.js';
import { lookWhy } from '../../src/runs/why.sql.js';
import { Ground } from './ground.fixture.js';

const AHEAD = 300_000;
const OTHER_QUEUES = 150;
/** The most free slots of a worker. */
const SLOTS = 1_000;

let ground: Ground;
/** One connection, so that its counts can be asked of it. */
let pool: Pool;
let last: string;
beforeAll(async () => {
  ground = await Ground.open();
  pool = ground.db.pool(1);
  // Only the seeding goes without the checks of references.
  await ground.sql.query('set session_replication_role = replica');
  await ground.sql.query(
    `insert into live_runs (run_id, organization_id, created_at, run_day, state, queue, priority)
     select gen_random_uuid(), $1, now(), current_date, 'pending',
            case when i % 2 = 0 then 'long' else 'q' || i % ${2 * OTHER_QUEUES} end, 0
     from generate_series(1, ${AHEAD}) i`,
    [ground.organizationId],
  );
  await ground.sql.query(
    `insert into runs (id, organization_id, kind, queue, priority, labels, spec, spec_digest, origin, principal, root_id,
                       created_at, state, end_code, end_by, ended_at, fence)
     select id, $1, 'noop', 'long', 0, '{}', '{}', 'sha256:x', 'api', '{"id":"tok_test","name":"test"}', id, now(),
            'succeeded', 'ok', 'wrk_test', now(), 1
     from (select gen_random_uuid() as id from generate_series(1, 20000)) made`,
    [ground.organizationId],
  );
  await ground.sql.query('set session_replication_role = default');
  last = await ground.runIn('pending', { queue: 'long' });
}, 240_000);
afterAll(() => ground.close());

interface Cost {
  readonly scans: number;
  readonly entries: number;
}

async function costSoFar(): Promise<Cost> {
  await pool.run((sql) => sql`select pg_stat_force_next_flush()`);
  const { rows } = await ground.sql.query<Cost>(
    `select (select sum(seq_scan) from pg_stat_user_tables where relname in ('live_runs', 'runs'))::integer as scans,
            (select sum(idx_tup_read) from pg_stat_user_indexes where relname in ('live_runs', 'runs'))::integer as entries`,
  );
  const [row] = rows;
  if (!row) throw new Error('the server counts nothing');
  return row;
}

async function costOf(id: string): Promise<Cost & { readonly blocks: number }> {
  const before = await costSoFar();
  await lookWhy(pool, ground.organizationId, id);
  const after = await costSoFar();
  return { scans: after.scans - before.scans, entries: after.entries - before.entries, blocks: await blocksOf(id) };
}

/** Blocks that the statement itself reads: what is counted of a table is also what a vacuum reads meanwhile. */
async function blocksOf(id: string): Promise<number> {
  const explaining = {
    run: (statement: (sql: Sql) => postgres.PendingQuery<postgres.Row[]>) =>
      pool.run<object[]>((sql) => sql`explain (analyze, buffers, timing off, format json) ${statement(sql)}`),
  };
  const explained = await lookWhy(explaining as unknown as Pool, ground.organizationId, id);
  const [[{ Plan: plan }]] = Object.values(explained ?? {}) as unknown as [[{ Plan: Record<string, number> }]];
  return (plan['Shared Hit Blocks'] ?? Number.NaN) + (plan['Shared Read Blocks'] ?? Number.NaN);
}

async function work(queues: readonly string[], slots: number): Promise<void> {
  await ground.sql.query('update workers set slots = $2 where id = $1', [await ground.worker({ queues }), slots]);
}

describe('F014 F129 asking for the last of 300,000 in line', () => {
  it.each(['before the planner knows of them', 'behind an analyze', 'behind a vacuum'])(
    'walks over no table, and over as many entries as there are slots, %s',
    async (when) => {
      if (when === 'behind an analyze') await ground.sql.query('analyze live_runs, runs');
      if (when === 'behind a vacuum') await ground.sql.query('vacuum live_runs');
      await ground.sql.query('delete from workers');
      await work(['*'], 4);
      const few = await costOf(last);
      expect(few.scans).toBe(0);
      expect(few.entries).toBeGreaterThanOrEqual(100);
      expect(few.entries).toBeLessThan(1_000);
      expect(few.blocks).toBeLessThan(200);
      await work(['long'], SLOTS);
      await work(['long'], SLOTS);
      await work(['long', 'q1'], SLOTS);
      expect(await lookWhy(pool, ground.organizationId, last)).toMatchObject({
        ahead: SLOTS,
        bound: SLOTS,
        isNext: false,
      });
      const many = await costOf(last);
      expect(many.scans).toBe(0);
      // So many for each of the three sets of queues; the rest are hops and single rows.
      expect(many.entries).toBeLessThan(3 * SLOTS + 1_000);
      expect(many.blocks).toBeLessThan(SLOTS);
    },
    60_000,
  );

  it('walks over every queue where nothing in them goes first, and over no run there', async () => {
    await ground.sql.query('delete from workers');
    await work(['*'], 4);
    const first = await ground.runIn('pending', { queue: 'alone', priority: 1 });
    expect(await lookWhy(pool, ground.organizationId, first)).toMatchObject({ ahead: 0, isNext: true });
    const cost = await costOf(first);
    expect(cost.scans).toBe(0);
    expect(cost.entries).toBeLessThan(3 * OTHER_QUEUES);
  });
});
