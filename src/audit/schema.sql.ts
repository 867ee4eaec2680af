/** What was done to the schema, told in the installation's chain. */
import type { Pool } from '../platform/db/db.js';

/**
 * Records the migrations that are in effect and not on record, in their order. The first of them made the chain, so
 * none could record itself.
 *
 * guard     there is no entry about the migration yet. Index audit_entries_migration
 * outcomes  how many were recorded; of several at once one does it, and the others fail with 23505 (the same index)
 * locks     the installation's chain
 */
export async function recordMigrationsIfNew(pool: Pool, chain: string): Promise<number> {
  const rows = await pool.run<{ receipt: string }[]>(
    (sql) => sql`
    with unrecorded as (
      select m.id, m.name
      from schema_migrations m
      where not exists (
        select from audit_entries e
        where e.action = 'schema.migrated' and substring(e.claim from '"object":"([^"]*)"') = m.name
      )
    ),
    entry as (
      select array_agg(${chain}::text) as chains, array_agg(null::uuid) as run_ids,
             array_agg(jsonb_build_object('action', 'schema.migrated', 'object', name, 'principal', 'system')
                       order by id) as payloads
      from unrecorded
    )
    select a.receipt
    from entry e
    cross join lateral audit_append(e.chains, e.payloads, e.run_ids) a`,
  );
  return rows.length;
}
