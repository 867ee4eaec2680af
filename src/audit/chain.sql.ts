/**
 * A chain's verification, where the entries are: nothing but the verdict leaves the database. Invariants: none of this
 * calls a function of the schema, which is what appended, so each side checks the other; and none of it trusts a
 * constraint, which whoever tampers takes away first: a number may be there twice, and anything may be null.
 */
import type { Pool } from '../platform/db/db.js';
import { type ChainCheck, type ChainHead, type ChainStand, LAST_SEQ } from './chain.js';
import { columnsHold } from './columns.sql.js';
import { linkOf } from './link.sql.js';

/** Far longer than any that we write: a chain of such ones would keep the database from the others. */
const LONGEST_CLAIM_BYTES = 16 * 1024 * 1024;

/** The ids of the chains behind one, in their order; from the first on also the organizations that have none. */
export async function chainsAfter(
  pool: Pool,
  chain: string,
  limit: number,
): Promise<{ chains: string[]; withoutChain: string[] }> {
  const rows = await pool.run<{ chains: string[]; withoutChain: string[] }[]>(
    (sql) => sql`
    select array(select chain_id from audit_heads where chain_id > ${chain} order by chain_id limit ${limit}) as chains,
           array(
             select o.id from organizations o                -- each was made together with its own
             where ${chain} = '' and not exists (select from audit_heads h where h.organization_id = o.id)
             limit 100
           ) as without_chain`,
  );
  return rows[0] ?? { chains: [], withoutChain: [] };
}

/** How each of these chains stands, beside the head that was `seen` of it before; chains that there are not are left out. */
export function standsOf(
  pool: Pool,
  chains: readonly { readonly chain: string; readonly seen: ChainHead | undefined }[],
): Promise<ChainStand[]> {
  return pool.run<ChainStand[]>(
    (sql) => sql`
    select h.chain_id as chain, least(h.seq, ${LAST_SEQ}) as seq, encode(h.link, 'hex') as link,
           least(coalesce((select max(e.seq) from audit_entries e where e.chain_id = h.chain_id), 0), ${LAST_SEQ})
             as last_seq,
           (select min(encode(e.link, 'hex')) from audit_entries e
            where e.chain_id = h.chain_id and e.seq = h.seq) as link_at_head,
           (select min(encode(e.link, 'hex')) from audit_entries e
            where e.chain_id = h.chain_id and e.seq = asked.seen) as link_at_seen,
           anchor.held as anchors, anchor.stray as stray_anchor
    from unnest(${chains.map(({ chain }) => chain)}::text[], ${chains.map(({ seen }) => String(seen?.seq ?? 0))}::bigint[])
      as asked (chain_id, seen)
    join audit_heads h using (chain_id)
    cross join lateral (
      select count(*) filter (where e.link = a.link) as held,
             min(least(a.seq, ${LAST_SEQ})) filter (where (e.link = a.link) is not true) as stray     -- another, or none
      from audit_anchors a
      left join audit_entries e using (chain_id, seq)
      where a.chain_id = h.chain_id
    ) anchor
    order by h.chain_id`,
  );
}

/** The entries behind `after`, up to number `until`. */
export interface Window {
  readonly chain: string;
  /** The entry before, as it was verified or is to be taken for given. */
  readonly after: ChainHead;
  readonly until: number;
}

/** What became of a window: it holds up to the entry before `brokenAt`, which is `until` + 1 when all of it does. */
export interface WindowFinding {
  readonly chain: string;
  readonly until: number;
  readonly brokenAt: number;
  /** The link of the last entry that holds; null when none does. */
  readonly link: string | null;
  /** Null also where the entries only end. */
  readonly check: Extract<ChainCheck, 'gap' | 'prev' | 'link' | 'column'> | null;
}

/**
 * Recomputes windows of entries, each of another chain, from their stored text. A link is the SHA-256 that the open
 * format `loomseal-chain-v1` says. Index: the primary key. 20,000 entries take about 90 ms; the largest that we write
 * (2 KB: all their texts are bounded) a quarter of what a statement may take.
 */
export function checkWindows(pool: Pool, windows: readonly Window[]): Promise<WindowFinding[]> {
  return pool.run<WindowFinding[]>(
    (sql) => sql`
    select asked.chain_id as chain, asked.until, found.broken_at, found.check,
           (select min(encode(e.link, 'hex')) from audit_entries e
            where e.chain_id = asked.chain_id and e.seq = found.broken_at - 1) as link
    from unnest(
      ${windows.map(({ chain }) => chain)}::text[],
      ${windows.map(({ after }) => String(after.seq))}::bigint[],
      ${windows.map(({ after }) => after.link)}::text[],
      ${windows.map(({ until }) => String(until))}::bigint[]
    ) as asked (chain_id, seq, link, until)
    cross join lateral (
      select coalesce(min(entry.expected) filter (where entry.fault is not null),
                      max(entry.seq) + 1, asked.seq + 1) as broken_at,
             (array_agg(entry.fault order by entry.seq) filter (where entry.fault is not null))[1] as check
      from (
        select e.seq,
               least(e.seq, lag(e.seq, 1, asked.seq) over chain + 1) as expected,     -- it may be there twice
               case                                              -- what is null holds nothing
                 when (e.seq = lag(e.seq, 1, asked.seq) over chain + 1) is not true then 'gap'
                 when (e.prev = lag(e.link, 1, pg_catalog.decode(asked.link, 'hex')) over chain) is not true then 'prev'
                 when pg_catalog.octet_length(e.claim) > ${LONGEST_CLAIM_BYTES} then 'link'   -- told without reading it
                 when (e.link = ${linkOf(sql)}) is not true then 'link'
                 when (${columnsHold(sql)}) is not true then 'column'
               end as fault
        from audit_entries e
        where e.chain_id = asked.chain_id
          and e.seq > asked.seq
          and e.seq <= asked.until
        window chain as (order by e.seq)
      ) entry
    ) found
    order by asked.chain_id`,
  );
}

/** The link before an entry: that of the entry before it, or what the entry itself says when that isn't there. */
export async function linkBefore(pool: Pool, chain: string, seq: number): Promise<string | null> {
  const rows = await pool.run<{ link: string | null }[]>(
    (sql) => sql`
    select coalesce(
      (select min(encode(link, 'hex')) from audit_entries where chain_id = ${chain} and seq = ${seq - 1}),
      (select min(encode(prev, 'hex')) from audit_entries where chain_id = ${chain} and seq = ${seq})) as link`,
  );
  return rows[0]?.link ?? null;
}
