/** What an organization says of how long its ended runs are kept. */
import { Bug } from '../kernel/problems.js';
import type { Pool, Sql } from '../platform/db/db.js';

export interface RetentionStanding {
  /** Null: as long as the setting says. */
  readonly ownMs: number | null;
  readonly etag: string;
  /** Of the newest entry that says so; 0 and null when nobody ever said anything about it. */
  readonly seq: number;
  readonly receipt: string | null;
}

/** What the organization says, and what made it so. Index: audit_entries_object. */
export async function retentionStanding(pool: Pool, organizationId: string, chain: string): Promise<RetentionStanding> {
  const rows = await pool.run<RetentionStanding[]>(
    (sql) => sql`
    select o.retention_ms as own_ms, coalesce('"' || o.retention_ms || '"', '"default"') as etag,
           coalesce(e.seq, 0)::float8 as seq,
           ${chain}::text || ':' || e.seq || ':' || encode(e.link, 'hex') as receipt
    from organizations o
    left join lateral (
      select seq, link from audit_entries where ${isAbout(sql, chain)} order by seq desc limit 1
    ) e on true
    where o.id = ${organizationId}`,
  );
  const [standing] = rows;
  if (!standing) throw new Bug('the organization of a caller has no row');
  return standing;
}

export interface RetentionChange {
  readonly organizationId: string;
  readonly chain: string;
  readonly ownMs: number | null;
  /** The same for people: `14d`, or `default`. */
  readonly text: string;
  /** How it stood when it was looked at. */
  readonly seen: Pick<RetentionStanding, 'ownMs' | 'seq'>;
  /** TypeID and name of who asks for it. */
  readonly by: string;
  readonly byName: string;
}

/**
 * From its commit on no removal goes by what the organization said before; one that is under way is waited for.
 *
 * guard     the organization says what it was seen to say, and nobody changed that and changed it back since
 * outcomes  the receipt; nothing when it was not so
 * locks     the organization → its chain
 */
export function changeRetentionIfUnchanged(pool: Pool, change: RetentionChange): Promise<{ receipt: string }[]> {
  const { organizationId, chain, ownMs, text, seen, by, byName } = change;
  return pool.run<{ receipt: string }[]>(
    (sql) => sql`
    with changed as (
      update organizations
      set retention_ms = ${ownMs}
      where id = ${organizationId}
        and retention_ms is not distinct from ${seen.ownMs}
        and not exists (select from audit_entries where ${isAbout(sql, chain)} and seq > ${seen.seq})
      returning id
    )
    select a.receipt
    from changed
    cross join lateral audit_append(
      array[${chain}::text],
      array[jsonb_build_object(
        'action', 'retention.changed', 'object', ${chain}::text, 'principal', ${by}::text, 'principalName', ${byName}::text,
        'retention', ${text}::text)],
      array[null::uuid]) a`,
  );
}

/** Entries about what the organization says; the expression is the index's. */
function isAbout(sql: Sql, chain: string) {
  return sql`
    chain_id = ${chain}
      and substring(claim from '"object":"([^"]*)"') = ${chain}
      and run_id is null
      and action = 'retention.changed'`;
}
