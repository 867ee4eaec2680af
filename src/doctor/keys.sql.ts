/** Looks at idempotency keys: each names a run of its own organization, or one that was removed since. */
import type postgres from 'postgres';
import { encodeId } from '../kernel/ids.js';
import type { Pool, Sql } from '../platform/db/db.js';
import type { Look } from './laws.js';

export interface KeyPlace {
  readonly organizationId: string;
  readonly key: string;
}

interface KeyRow extends KeyPlace {
  readonly runId: string;
  /** Null for a run that was removed. */
  readonly isForeign: boolean | null;
}

/** The next key behind a place, for who has to go on behind it. Index: idempotency_keys_pkey. */
export async function nextKey(pool: Pick<Pool, 'run'>, after: KeyPlace | undefined): Promise<KeyPlace | undefined> {
  const rows = await pool.run<KeyPlace[]>(
    (sql) => sql`
    select organization_id, key from idempotency_keys
    where ${isBehind(sql, after)}
    order by organization_id, key
    limit 1`,
  );
  return rows[0];
}

function isBehind(sql: Sql, after: KeyPlace | undefined): postgres.PendingQuery<postgres.Row[]> {
  return after === undefined ? sql`true` : sql`(organization_id, key) > (${after.organizationId}, ${after.key})`;
}

/** The next keys behind a place, in their order. Index: idempotency_keys_pkey, runs_pkey. */
export async function lookAtKeys(
  pool: Pick<Pool, 'run'>,
  after: KeyPlace | undefined,
  limit: number,
): Promise<Look<KeyPlace>> {
  const rows = await pool.run<KeyRow[]>(
    (sql) => sql`
    select k.organization_id, k.key, k.run_id, r.organization_id <> k.organization_id as is_foreign
    from (
      -- A request that made several may have named an id of its own choice and been refused it.
      select organization_id, key, case when run_ids is null then run_id end as run_id from idempotency_keys
      where ${isBehind(sql, after)}
      order by organization_id, key
      limit ${limit}
    ) k
    left join runs r on r.id = k.run_id
    order by k.organization_id, k.key`,
  );
  const foreign = rows.filter(({ isForeign }) => isForeign);
  const last = rows.length === limit ? rows.at(-1) : undefined;
  return {
    violations: foreign.map(({ runId, organizationId, key }) => ({
      law: 'key_owner' as const,
      object: encodeId('run', runId),
      detail: `the key ${JSON.stringify(key)} of ${encodeId('org', organizationId)} names it, a run of another organization`,
    })),
    looked: rows.length,
    next: last && { organizationId: last.organizationId, key: last.key },
  };
}
