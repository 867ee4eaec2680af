/** What a bundle is made of: entries, where the chain stands, where a run's entries are, and the export's own entry. */
import { Bug } from '../kernel/problems.js';
import type { Pool } from '../platform/db/db.js';
import type { StoredEntry } from './bundle.js';
import type { EntryRange } from './bundle.rules.js';
import { type ChainHead, LAST_SEQ } from './chain.js';
import { saysRun } from './entries.sql.js';

/** Where a run's entries are. */
export interface RunRange extends EntryRange {
  /** Its submit is among them: there are none before. */
  readonly isBegun: boolean;
}

/**
 * The first and the last entry about a run between two numbers; `undefined` when there is none. What is to be signed is
 * found by the hashed text alone: a column beside it could hide how the run ended. 50,000 entries take up to 50 ms.
 */
export async function rangeOfRun(
  pool: Pool,
  chain: string,
  run: string,
  { from, to }: EntryRange,
): Promise<RunRange | undefined> {
  const rows = await pool.run<RunRange[]>(
    (sql) => sql`
    select min(e.seq) as "from", max(e.seq) as "to",
           bool_or(position('"action":"run.submitted"' in e.claim) > 0) as is_begun
    from audit_entries e
    where e.chain_id = ${chain} and e.seq between ${from} and ${to} and ${saysRun(sql, run)}
    having count(*) > 0`,
  );
  return rows[0];
}

/** Entries `from` to `to` (both included), in order. */
export function readEntries(pool: Pool, chain: string, { from, to }: EntryRange): Promise<StoredEntry[]> {
  return pool.run<StoredEntry[]>(
    (sql) => sql`
    select seq, claim, encode(prev, 'hex') as prev, encode(link, 'hex') as link
    from audit_entries
    where chain_id = ${chain} and seq between ${from} and ${to}
    order by seq`,
  );
}

/** The newest coordinates of a chain, and the time of this look by the database's clock, RFC 3339. */
export async function headNow(
  pool: Pool,
  chain: string,
): Promise<{ readonly head: ChainHead; readonly now: string } | undefined> {
  const rows = await pool.run<{ seq: number; link: string; now: string }[]>(
    (sql) => sql`
    select least(seq, ${LAST_SEQ}) as seq, encode(link, 'hex') as link, instant_text(db_clock()) as now
    from audit_heads
    where chain_id = ${chain}`,
  );
  const [row] = rows;
  return row && { head: { seq: row.seq, link: row.link }, now: row.now };
}

export interface Export {
  readonly chain: string;
  /** Id of the bundle. */
  readonly bundle: string;
  readonly from: number;
  /** Undefined: to the head, this entry included. */
  readonly to: number | undefined;
  /** Of the key that signs it. */
  readonly fingerprint: string;
  /** TypeID and name of who asks for it. */
  readonly by: string;
  readonly byName: string;
}

/** Writes that a bundle is handed out, before it is made. Answers the receipt. Locks the chain. */
export async function appendExport(pool: Pool, made: Export): Promise<string> {
  const { chain, bundle, from, to = null, fingerprint, by, byName } = made;
  const rows = await pool.run<{ receipt: string }[]>(
    (sql) => sql`
    select a.receipt
    from audit_append(
      array[${chain}::text],
      array[jsonb_strip_nulls(jsonb_build_object(
        'action', 'audit.exported', 'object', ${chain}::text, 'bundle', ${bundle}::text,
        'from', ${from}::bigint, 'to', ${to}::bigint, 'fingerprint', ${fingerprint}::text,
        'principal', ${by}::text, 'principalName', ${byName}::text))],
      array[null::uuid]) a`,
  );
  const [row] = rows;
  if (!row) throw new Bug('an export was not recorded');
  return row.receipt;
}
