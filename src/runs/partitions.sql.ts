/** Partitions of events and output by day, made ahead of time. */
import type { Pool, Sql } from '../platform/db/db.js';

/** Makes the partitions of today and the next `daysAhead` days that are missing. Returns how many tables it made. */
export async function ensurePartitions(pool: Pool, daysAhead: number): Promise<number> {
  const rows = await pool.run<{ made: number }[]>((sql) => sql`select ensure_run_partitions(${daysAhead}) as made`);
  return rows[0]?.made ?? 0;
}

/** The partition of a run's events and output. */
export function dayOf(sql: Sql, { createdAt }: { readonly createdAt: Date }) {
  return sql`(${createdAt}::timestamptz at time zone 'UTC')::date`;
}
