/** The questions about the database as a whole: can it be written to, and how much waits. */
import type { BytePool } from '../platform/db/byte-pool.js';
import type { Pool } from '../platform/db/db.js';

export interface DatabaseFacts {
  readonly writable: boolean;
  /** The newest migration that this program knows has been applied. */
  readonly applied: boolean;
}

/** Would a statement that writes be carried out? Takes no transaction id: it is asked all the time. */
export async function probe(pool: BytePool, newestMigration: string): Promise<DatabaseFacts> {
  const [facts] = await pool.run<DatabaseFacts>({
    name: 'probe',
    text: `
    select not pg_is_in_recovery() and current_setting('transaction_read_only') = 'off' as writable,
           exists (select from schema_migrations where name = $1) as applied`,
    values: [newestMigration],
  });
  return facts ?? { writable: false, applied: false };
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
