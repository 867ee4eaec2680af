/** What replicas say of themselves, and what they have made ahead. */
import type { Pool } from '../platform/db/db.js';
import { isConnected, seenAt } from './connected.sql.js';
import type { ConnectedLife } from './replicas.js';

export function connectedLives(pool: Pick<Pool, 'run'>): Promise<ConnectedLife[]> {
  return pool.run<ConnectedLife[]>(
    (sql) => sql`
    select w.id, w.name, w.kind, w.version, w.signs, w.clock_ahead_ms, w.ttl_ms,
           floor(extract(epoch from db_clock() - w.started_at) / 60)::integer as age_minutes,
           (extract(epoch from w.started_at) * 1000)::float8 as started_at_ms,
           (extract(epoch from ${seenAt(sql)}) * 1000)::float8 as seen_at_ms
    from workers w
    where ${isConnected(sql)}
    order by w.name, w.id`,
  );
}

/** Which tables lack the partition of tomorrow (UTC). */
export async function missingPartitions(pool: Pick<Pool, 'run'>): Promise<string[]> {
  const rows = await pool.run<{ partition: string }[]>(
    (sql) => sql`
    select p.name as partition
    from unnest(array['run_events', 'run_output']) as t (parent)
    cross join lateral (
      select t.parent || '_' || to_char((db_now() at time zone 'UTC')::date + 1, 'YYYYMMDD') as name
    ) p
    where not exists (
      select from pg_inherits i
      where i.inhparent = to_regclass(t.parent) and i.inhrelid = to_regclass(p.name)
    )`,
  );
  return rows.map(({ partition }) => partition);
}

/** About how many runs there are; a table that was never analyzed says nothing. */
export async function estimatedRuns(pool: Pick<Pool, 'run'>): Promise<number> {
  const rows = await pool.run<{ runs: number }[]>(
    (sql) => sql`select greatest(reltuples, 0)::bigint as runs from pg_class where oid = to_regclass('runs')`,
  );
  return rows[0]?.runs ?? 0;
}
