/** The questions about the database as a whole: can it be written to, and how much waits. */
import type { Pool } from '../platform/db/db.js';

export interface DatabaseFacts {
  readonly writable: boolean;
  /** The newest migration that this program knows has been applied. */
  readonly applied: boolean;
}

/** A write-capable round trip: taking a transaction id fails on a standby. */
export async function probe(pool: Pool, newestMigration: string): Promise<DatabaseFacts> {
  const rows = await pool.run<DatabaseFacts[]>(
    (sql) => sql`
    select pg_current_xact_id() is not null and current_setting('transaction_read_only') = 'off' as writable,
           exists (select from schema_migrations where name = ${newestMigration}) as applied`,
  );
  return rows[0] ?? { writable: false, applied: false };
}

export interface QueueDepth {
  readonly queue: string;
  readonly depth: number;
  /** Seconds since the oldest of them was submitted. */
  readonly oldestSeconds: number;
}

/** What waits, by queue: of very long queues only the first 100,000 runs are counted, and at most 100 queues. */
export function queueDepths(pool: Pool): Promise<QueueDepth[]> {
  return pool.run<QueueDepth[]>(
    (sql) => sql`
    select queue, count(*)::integer as depth,
           greatest(0, extract(epoch from db_now() - min(created_at)))::float8 as oldest_seconds
    from (select queue, created_at from live_runs where state = 'pending' limit 100000) waiting
    group by queue
    order by count(*) desc
    limit 100`,
  );
}
