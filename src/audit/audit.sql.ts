/** Where a chain's entries are to be found: the installation's chain, and the numbers of an instant. */
import { encodeId } from '../kernel/ids.js';
import type { Pool } from '../platform/db/db.js';
import { LAST_SEQ } from './chain.js';

/** The id of the installation's own chain. */
export async function installationChain(pool: Pool): Promise<string | undefined> {
  const rows = await pool.run<{ chainId: string }[]>(
    (sql) => sql`select chain_id from audit_heads where organization_id is null`,
  );
  return rows[0]?.chainId;
}

/** The id that the installation's chain must have, where it isn't there: somebody removed it, or put another in its place. */
export async function missingInstallationChain(pool: Pool): Promise<string | undefined> {
  const rows = await pool.run<{ id: string }[]>((sql) => sql`select id from installation`);
  const [chain] = rows.map(({ id }) => encodeId('ins', id));
  return chain === (await installationChain(pool)) ? undefined : chain;
}

/**
 * The number of the first entry at or after an instant, and the one behind the last entry when there is none. As `at`
 * never goes back within a chain, halving finds it: some 20 look-ups in a million, also where entries are missing.
 * `laterMs` is added by the database: the last instant that may be written has none behind it that could be sent.
 */
export async function seqAt(pool: Pool, chain: string, instant: Date, laterMs = 0): Promise<number> {
  const rows = await pool.run<{ seq: number }[]>(
    (sql) => sql`
    with recursive between as (
      select 0::bigint as before,                                  -- all up to here are earlier
             coalesce(max(seq), 0) + 1 as found                    -- all from here on are not
      from audit_entries where chain_id = ${chain} and seq <= ${LAST_SEQ}
      union all
      select case when e.at >= i.at then b.before else b.middle end,
             case when e.at >= i.at then e.seq else b.found end
      from (select before, found, (before + found) / 2 as middle from between where found - before > 1) b
      cross join (select ${instant}::timestamptz + ${laterMs}::int * interval '1 millisecond' as at) i
      left join lateral (
        select seq, at from audit_entries
        where chain_id = ${chain} and seq > b.before and seq <= b.middle
        order by seq desc
        limit 1
      ) e on true
    )
    select min(found) as seq from between`,
  );
  return rows[0]?.seq ?? 1;
}
