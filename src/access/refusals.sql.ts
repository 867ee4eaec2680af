/** Attempts that were refused, as the chain of the organization keeps them. */
import { type Pool, records } from '../platform/db/db.js';

export interface RefusalEntry {
  /** Of the organization whose token it was. */
  readonly chain: string;
  /** TypeID and name of the token. */
  readonly principal: string;
  readonly principalName: string;
  readonly code: 'unauthorized' | 'forbidden';
  readonly method: string;
  /** The pattern of the route, as the OpenAPI document writes it: never what the request bore. */
  readonly route: string;
  /** How many refusals of this principal are told by this entry besides the one it describes. */
  readonly suppressed: number;
}

/** Appends an entry for each. Locks: the chains, in the order of their lock keys. */
export async function recordRefusals(pool: Pool, refusals: readonly RefusalEntry[]): Promise<void> {
  await pool.run<never[]>(
    (sql) => sql`
    with entry as (
      select array_agg(chain) as chains, array_agg(null::uuid) as run_ids,
             array_agg(jsonb_build_object(
               'action', 'access.refused', 'object', principal, 'principal', principal,
               'principalName', "principalName", 'code', code, 'method', method, 'route', route,
               'suppressed', suppressed)) as payloads
      from jsonb_to_recordset(${records(sql, refusals)}::jsonb) as i (
        chain text, principal text, "principalName" text, code text, method text, route text, suppressed bigint)
    )
    select a.entry from entry e cross join lateral audit_append(e.chains, e.payloads, e.run_ids) a`,
  );
}
