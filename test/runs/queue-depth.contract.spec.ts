/** What waits, by queue: right for who alerts on it, and no dearer with a million runs than with none. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { COUNTED, COUNTED_IN_ALL, type QueueDepth, queueDepths, TOLD_AT_MOST } from '../../src/runs/queue-depth.sql.js';
import { Ground } from './ground.fixture.js';

let ground: Ground;
beforeAll(async () => {
  ground = await Ground.open(1);
});
afterAll(() => ground.close());

async function depths(...names: string[]): Promise<Record<string, Omit<QueueDepth, 'queue'>>> {
  const rows = await queueDepths(ground.pool, names);
  return Object.fromEntries(rows.map(({ queue, ...rest }) => [queue, rest]));
}

/** Makes so many pending runs, which became due so long ago; `queue` may be an expression over the number `i`. */
async function fill(n: number, queue: string, priority = 0, dueSecondsAgo = 60): Promise<void> {
  await ground.sql.query(
    `with run as (
       insert into runs (id, organization_id, kind, queue, priority, labels, spec, spec_digest, origin, principal, root_id,
                         created_at)
       select id, $1, 'noop', ${queue}, $2, '{}', '{}', 'sha256:x', 'api', '{"id":"tok_test","name":"test"}', id,
              now() - $3 * interval '1 second'
       from (select gen_random_uuid() as id, i from generate_series(1, $4) as i) made
       returning *
     )
     insert into live_runs (run_id, organization_id, created_at, run_day, state, queue, priority, event_seq)
     select id, organization_id, created_at, (created_at at time zone 'UTC')::date, 'pending', queue, priority, 1 from run`,
    [ground.organizationId, priority, dueSecondsAgo, n],
  );
}

describe('what is told of a queue', () => {
  beforeEach(async () => {
    await ground.sql.query('delete from live_runs');
    await ground.sql.query('delete from paused_queues');
  });

  it('F013 is what is pending and due in it, to the last run, and for how long the first has been due', async () => {
    const holder = await ground.worker();
    await fill(7, `'a'`, 0, 90);
    await fill(COUNTED - 1, `'b'`, 0, 5);
    await ground.runsIn(3, 'claimed', { holder, queue: 'a' });
    await ground.runsIn(3, 'held', { queue: 'a' });
    await ground.runsIn(3, 'pending', { queue: 'a', notBefore: new Date(Date.now() + 3_600_000) });
    const told = await depths();
    expect(Object.keys(told).sort()).toEqual(['a', 'b']);
    expect(told.a).toMatchObject({ depth: 7, paused: false, untold: 0 });
    expect(told.a?.oldestSeconds).toBeGreaterThanOrEqual(90);
    expect(told.a?.oldestSeconds).toBeLessThan(120);
    expect(told.b?.depth).toBe(COUNTED - 1);
  });

  it('is nothing when nothing waits in it, for who asks for it by name', async () => {
    expect(await depths('empty')).toEqual({
      empty: { depth: 0, isEstimate: false, oldestAt: null, oldestSeconds: 0, paused: false, untold: 0 },
    });
    expect(await depths()).toEqual({});
  });

  it('is there of a paused queue as well, and says that it is paused', async () => {
    await fill(4, `'still'`);
    await fill(2, `'goes-on'`);
    await ground.sql.query(`insert into paused_queues values ('still', now(), 'tok_test', 'test', 'a reason')`);
    const told = await depths();
    expect(told.still).toMatchObject({ depth: 4, paused: true });
    expect(told['goes-on']).toMatchObject({ depth: 2, paused: false });
  });

  it('shows runs that starve behind higher priorities', async () => {
    await fill(1, `'mixed'`, -5, 7_200);
    await fill(50, `'mixed'`, 10, 1);
    await fill(50, `'mixed'`, 0, 1);
    expect((await depths()).mixed?.oldestSeconds).toBeGreaterThanOrEqual(7_200);
  });

  it('counts a run from the instant for which it was asked, not from its submit', async () => {
    await fill(1, `'asked'`, 0, 7_200);
    await ground.sql.query(`update runs set not_before = now() - interval '30 seconds' where queue = 'asked'`);
    const { asked } = await depths();
    expect(asked?.oldestSeconds).toBeGreaterThanOrEqual(30);
    expect(asked?.oldestSeconds).toBeLessThan(60);
  });

  it('of very many queues a hundred are told, those asked for among them, and how many are left out', async () => {
    await fill(150, `'q' || i`);
    await fill(1, `'zz'`);
    const told = await depths('zz', 'elsewhere');
    expect(Object.keys(told)).toHaveLength(TOLD_AT_MOST);
    expect(told.zz).toMatchObject({ depth: 1, untold: 52 });
    expect(told.elsewhere).toMatchObject({ depth: 0 });
  });

  it('of more names than that as many are told', async () => {
    const names = Array.from({ length: 300 }, (_, i) => `n${i}`);
    expect(Object.keys(await depths(...names))).toHaveLength(TOLD_AT_MOST);
  });
});

/** To each queue, to each of its priorities, and to the first in line there. */
const HOPS_AT_MOST = 40;

describe('F129 300,000 runs that wait, and 300,000 that have ended', () => {
  beforeAll(async () => {
    await ground.sql.query('delete from live_runs');
    // Only the seeding goes without the checks of references.
    await ground.sql.query('set session_replication_role = replica');
    await fill(200_000, `'long'`, 0, 600);
    await fill(100_000, `'q' || i % 150`, 0, 600);
    await ground.sql.query(
      `insert into runs (id, organization_id, kind, queue, priority, labels, spec, spec_digest, origin, principal, root_id,
                         created_at, state, end_code, end_by, ended_at, fence)
       select id, $1, 'noop', 'long', 0, '{}', '{}', 'sha256:x', 'api', '{"id":"tok_test","name":"test"}', id, now(),
              'succeeded', 'ok', 'wrk_test', now(), 1
       from (select gen_random_uuid() as id from generate_series(1, 300000)) made`,
      [ground.organizationId],
    );
    await ground.sql.query('set session_replication_role = default');
  }, 240_000);

  /** What the statement read so far, as the server counts it. */
  async function reads(): Promise<{ readonly scans: number; readonly entries: number }> {
    await ground.pool.run((sql) => sql`select pg_stat_force_next_flush()`);
    const { rows } = await ground.sql.query(
      `select (select sum(seq_scan) from pg_stat_user_tables where relname <> 'paused_queues')::integer as scans,
              (select sum(idx_tup_read) from pg_stat_user_indexes where relname in ('live_runs', 'runs'))::integer as entries`,
    );
    return rows[0];
  }

  it.each(['before the planner knows of them', 'behind an analyze', 'behind a vacuum'])(
    'cost no scan and a bounded number of index entries, %s',
    async (when) => {
      if (when === 'behind an analyze') await ground.sql.query('analyze live_runs, runs');
      if (when === 'behind a vacuum') await ground.sql.query('vacuum live_runs');
      const before = await reads();
      const told = await depths('long');
      const after = await reads();
      expect(after.scans - before.scans).toBe(0);
      expect(after.entries - before.entries).toBeGreaterThan(0);
      expect(after.entries - before.entries).toBeLessThan(COUNTED_IN_ALL + HOPS_AT_MOST * TOLD_AT_MOST);
      expect(Object.keys(told)).toHaveLength(TOLD_AT_MOST);
      expect(told.long?.untold).toBe(51);
      for (const { depth, isEstimate } of Object.values(told)) {
        expect(isEstimate, 'there are too many for each to be counted up to a thousand').toBe(true);
        expect(depth).toBeGreaterThanOrEqual(COUNTED_IN_ALL / TOLD_AT_MOST);
      }
      // A sample of pages: seldom a tenth beside it.
      expect(told.long?.depth).toBeGreaterThan(100_000);
      expect(told.long?.depth).toBeLessThan(300_000);
    },
    60_000,
  );

  it('are never told as fewer than were counted, however few of a queue a sample meets', async () => {
    const least = COUNTED_IN_ALL / TOLD_AT_MOST;
    await fill(least + 1, `'rare'`, 0, 1);
    for (let i = 0; i < 5; i += 1) expect((await depths('rare')).rare?.depth).toBeGreaterThanOrEqual(least);
  });
});
