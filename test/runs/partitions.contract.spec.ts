/** Partitions are made ahead of their days, and a day that came before its partition holds up no other. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Pool } from '../../src/platform/db/db.js';
import { ensurePartitions } from '../../src/runs/partitions.sql.js';
import { createDatabase, type TestDatabase } from '../database.js';

let db: TestDatabase;
let pool: Pool;
beforeEach(async () => {
  db = await createDatabase();
  pool = db.pool(2);
});
afterEach(() => db.drop());

async function query(text: string): Promise<Record<string, unknown>[]> {
  const session = await db.session();
  return (await session.query(text)).rows;
}

/** The days from today whose events have a partition of their own. */
async function days(): Promise<number[]> {
  const rows = await query(
    `select n from generate_series(0, 9) as n
     where to_regclass('run_events_' || to_char((now() at time zone 'UTC')::date + n, 'YYYYMMDD')) is not null order by n`,
  );
  return rows.map((row) => Number(row.n));
}

it('those of today and the next days are made once', async () => {
  expect(await ensurePartitions(pool, 3)).toBe(8);
  expect(await ensurePartitions(pool, 3)).toBe(0);
  expect(await days()).toEqual([0, 1, 2, 3]);
});

it('a day that has rows in the default partition keeps them there, and the other days get theirs', async () => {
  await query(
    `insert into run_events (run_day, run_id, seq, type, at, data)
     values ((now() at time zone 'UTC')::date + 1, gen_random_uuid(), 1, 'run.submitted', now(), '{}')`,
  );
  expect(await ensurePartitions(pool, 3)).toBe(7);
  expect(await days()).toEqual([0, 2, 3]);
  expect(await ensurePartitions(pool, 3), 'and again').toBe(0);
  expect(await query('select count(*)::integer as n from run_events')).toEqual([{ n: 1 }]);
});
