/** Which of some runs have ended. */
import type { Pool } from '../platform/db/db.js';

/** Index: runs_pkey. Takes no lock. */
export function findEnded(pool: Pool, ids: readonly string[]): Promise<{ id: string }[]> {
  return pool.run<{ id: string }[]>(
    (sql) => sql`select id from runs where id = any (${ids as string[]}::uuid[]) and state is not null`,
  );
}
