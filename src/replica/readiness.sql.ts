/** The question about the database as a whole: can it be written to? */
import type { BytePool } from '../platform/db/byte-pool.js';

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
