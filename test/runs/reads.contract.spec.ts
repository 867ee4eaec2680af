/** What the statements that are asked all the time read: only what they need, however much has piled up. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { encodeId, newId } from '../../src/kernel/ids.js';
import type { Pool } from '../../src/platform/db/db.js';
import { findCause, putIfUnchanged } from '../../src/runs/drain.sql.js';
import { listRuns } from '../../src/runs/list.sql.js';
import { pulse } from '../../src/runs/pulse.sql.js';

import { findExpired } from '../../src/runs/worker.sql.js';
import { Ground } from './ground.fixture.js';

let ground: Ground;
let pool: Pool;
let worker: string;
beforeAll(async () => {
  ground = await Ground.open();
  // One session, so that it can tell what it has read itself.
  pool = ground.db.pool(1);
  worker = await ground.worker();
  await ground.sql.query(
    `insert into workers (id, name, kind, slots, queues, version, ttl_ms, state, lease_until, ended_at)
     select gen_random_uuid(), 'w', 'worker', 1, '{default}', '0', 30000, 'lost', now(), now() from generate_series(1, 3000)`,
  );
});
afterAll(() => ground.close());

/** How many rows of a table a statement fetched, by whatever way. */
async function rowsRead(table: string, act: () => Promise<unknown>): Promise<number> {
  const read = async () => {
    await pool.run((sql) => sql`select pg_stat_force_next_flush()`);
    const [row] = await pool.run<{ n: number }[]>(
      (sql) =>
        sql`select seq_tup_read + coalesce(idx_tup_fetch, 0) as n from pg_stat_user_tables where relname = ${table}`,
    );
    return row?.n ?? 0;
  };
  await ground.sql.query(`vacuum analyze ${table}`);
  const before = await read();
  await act();
  return (await read()) - before;
}

it('lives that are over cost the look for expired leases and the pulse nothing', async () => {
  expect(await rowsRead('workers', () => findExpired(pool, 200))).toBeLessThan(50);
  expect(await rowsRead('workers', () => pulse(pool, worker, ['default'], 3_600_000))).toBeLessThan(50);
});

it('a renewal of a lease stays on its page: no index stands on what it writes', async () => {
  const { rows } = await ground.sql.query(
    `select indexdef from pg_indexes where tablename = 'workers' and indexdef ~ '(lease_until|state)'`,
  );
  expect(rows).toEqual([]);
});

it('a page of what has not ended reads no run that has, in the same order and pages as any other', async () => {
  const ids = await ground.runsIn(5, 'pending');
  await ground.sql.query(
    `insert into runs (id, organization_id, kind, queue, priority, labels, spec, spec_digest, origin, principal, root_id,
                       created_at, state, end_code, end_by, ended_at, fence)
     select id, $1, 'noop', 'default', 0, '{}', '{}', '', 'api', '{}', id, now() + interval '1 second', 'succeeded', 'ok',
            'wrk_test', now(), 1
     from (select gen_random_uuid() as id from generate_series(1, 3000)) made`,
    [ground.organizationId],
  );
  await ground.sql.query('analyze live_runs');
  const list = (after?: { at: Date; id: string }) =>
    listRuns(pool, {
      organizationId: ground.organizationId,
      filter: { states: ['pending', 'running'] },
      after,
      limit: 3,
    });
  expect(await rowsRead('runs', () => list())).toBeLessThan(100);
  const first = await list();
  const second = await list(first.next ?? undefined);
  expect(second.next).toBeNull();
  expect([...first.items, ...second.items].map((run) => run.id)).toEqual([...ids].reverse());
});

it('why a worker is drained is found by what the entry is about, however many came after it', async () => {
  const life = await ground.worker();
  const change = { chain: ground.installation, object: encodeId('wrk', life), by: 'tok_test', byName: 'test' };
  const [put] = await putIfUnchanged(ground.pool, 'draining', { ...change, worker: life, seen: 0 });
  await ground.sql.query(
    `select from audit_append(
       array_fill($1::text, array[3000]),
       array(select jsonb_build_object('action', 'worker.draining', 'object', $2 || n, 'name', 'x')
             from generate_series(1, 3000) n),
       array_fill(null::uuid, array[3000]))`,
    [ground.installation, encodeId('wrk', newId())],
  );
  expect(await rowsRead('audit_entries', () => findCause(pool, 'draining', change))).toBeLessThan(20);
  expect(await findCause(pool, 'draining', change)).toBe(put?.receipt);
});
