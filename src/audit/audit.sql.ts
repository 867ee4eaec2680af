/** The chain as it is stored: heads and windows of entries, for whoever recomputes it. */
import type { Pool } from '../platform/db/db.js';
import type { ChainHead, StoredEntry } from './chain.js';

/** A head, and the newest entry that is there at the same moment: they are one, or somebody moved one of them. */
export interface HeadAndLast extends ChainHead {
  readonly lastSeq: number;
}

/** The newest coordinates of a chain; `undefined` when there is no such chain. */
export async function readHead(pool: Pool, chain: string): Promise<HeadAndLast | undefined> {
  const rows = await pool.run<HeadAndLast[]>(
    (sql) => sql`
    select seq, encode(link, 'hex') as link,
           coalesce((select max(e.seq) from audit_entries e where e.chain_id = h.chain_id), 0) as last_seq
    from audit_heads h where chain_id = ${chain}`,
  );
  return rows[0];
}

/** Entries `from` to `to` (both included), at most `limit`, in order. */
export function readWindow(pool: Pool, chain: string, from: number, to: number, limit: number): Promise<StoredEntry[]> {
  return pool.run<StoredEntry[]>(
    (sql) => sql`
    select seq, claim, encode(prev, 'hex') as prev, encode(link, 'hex') as link
    from audit_entries
    where chain_id = ${chain} and seq between ${from} and ${to}
    order by seq
    limit ${limit}`,
  );
}

/** The id of the installation's own chain. */
export async function installationChain(pool: Pool): Promise<string | undefined> {
  const rows = await pool.run<{ chainId: string }[]>(
    (sql) => sql`select chain_id from audit_heads where organization_id is null`,
  );
  return rows[0]?.chainId;
}
