/** Outside timestamps of a chain: whose turn it is to ask for one, the ones that there are. */
import type postgres from 'postgres';
import type { Pool, Sql } from '../platform/db/db.js';
import type { EntryRange } from './bundle.rules.js';
import { LAST_SEQ } from './chain.js';

/** The head of a chain that is due for a timestamp. */
export interface DueHead {
  readonly chain: string;
  readonly seq: number;
  /** Lower-case hex. */
  readonly link: string;
  /** The entry's own time, in milliseconds of the epoch. */
  readonly entryAtMs: number;
}

/**
 * Takes the turn to ask for a timestamp of one chain; of all that are due the one whose last turn is longest ago, whatever
 * became of that: one that always fails keeps none of the others waiting.
 *
 * guard     the chain is none of the broken ones, it grew beyond its newest anchor, that anchor is older than the interval, its head is an entry that
 *           is there, and nobody else's turn is running
 * outcomes  the chain whose turn this process has for `turnMs`; nothing when none is due, or another was faster
 * locks     the chain's row of turns
 */
export async function takeAnchorTurn(
  pool: Pool,
  intervalMs: number,
  turnMs: number,
  broken: readonly string[] = [],
): Promise<DueHead | undefined> {
  const rows = await pool.run<DueHead[]>(
    (sql) => sql`
    with due as (
      select e.chain_id, e.seq, e.link, e.at
      from audit_heads h
      join audit_entries e on e.chain_id = h.chain_id and e.seq = h.seq and e.link = h.link
      left join lateral (
        select a.seq, a.created_at from audit_anchors a
        where a.chain_id = h.chain_id
        order by a.seq desc
        limit 1
      ) newest on true
      left join audit_anchor_turns t on t.chain_id = h.chain_id
      where h.seq > coalesce(newest.seq, 0)
        and h.seq <= ${LAST_SEQ}
        and h.chain_id <> all (${broken as string[]}::text[])
        and coalesce(newest.created_at, '-infinity') <= db_clock() - ${intervalMs} * interval '1 millisecond'
        and coalesce(t.until, '-infinity') <= db_clock()
      order by t.until nulls first, newest.created_at nulls first, h.chain_id
      limit 1
    ),
    taken as (
      insert into audit_anchor_turns as t (chain_id, until)
      select chain_id, db_clock() + ${turnMs} * interval '1 millisecond' from due
      on conflict (chain_id) do update set until = excluded.until
      where t.until <= db_clock()                            -- another was faster: the turn is his
      returning t.chain_id
    )
    select d.chain_id as chain, d.seq, encode(d.link, 'hex') as link,
           (extract(epoch from d.at) * 1000)::float8 as entry_at_ms
    from due d
    join taken using (chain_id)`,
  );
  return rows[0];
}

export interface Anchor {
  readonly seq: number;
  /** Lower-case hex. */
  readonly link: string;
  /** The authority's own time, RFC 3339. */
  readonly at: string;
  /** Names the authority. */
  readonly ref: string;
  /** The DER TimeStampToken as it came. */
  readonly token: Uint8Array;
}

/**
 * Keeps a timestamp that was checked.
 *
 * guard     the chain's entry of that number still has that link
 * outcomes  whether it was stored: false also when there is one of that entry already
 */
export async function storeAnchorIfHolds(pool: Pool, chain: string, anchor: Anchor): Promise<boolean> {
  const rows = await pool.run<{ seq: number }[]>(
    (sql) => sql`
    insert into audit_anchors (chain_id, seq, link, at, ref, token)
    select chain_id, seq, link, ${anchor.at}, ${anchor.ref}, ${Buffer.from(anchor.token)}
    from audit_entries
    where chain_id = ${chain}
      and seq = ${anchor.seq}
      and link = decode(${anchor.link}, 'hex')               -- what was timestamped is what stands there
    on conflict (chain_id, seq) do nothing
    returning seq`,
  );
  return rows.length > 0;
}

/** The newest `limit` timestamps of a chain's entries `from` to `to` (both included), in order. */
export function listAnchors(pool: Pool, chain: string, { from, to }: EntryRange, limit: number): Promise<Anchor[]> {
  return pool.run<Anchor[]>(
    (sql) => sql`
    select * from (
      select seq, encode(link, 'hex') as link, at, ref, token
      from audit_anchors
      where chain_id = ${chain} and seq between ${from} and ${to}
      order by seq desc
      limit ${limit}
    ) newest
    order by seq`,
  );
}

/** Longer than any that we stored. */
const LONGEST_TOKEN_BYTES = 65_536;
const LONGEST_TIME_BYTES = 64;

export interface AnchorDigest {
  readonly seq: number;
  /** Of all that an authority's token says or is compared with; null where that can't be what we stored. */
  readonly digest: string | null;
}

/** The first `limit` timestamps of a chain's entries `from` to `to` (both included), in order, without their tokens. */
export function anchorDigests(
  pool: Pool,
  chain: string,
  { from, to }: EntryRange,
  limit: number,
): Promise<AnchorDigest[]> {
  return pool.run<AnchorDigest[]>(
    (sql) => sql`
    select a.seq, ${digestOf(sql)} as digest
    from audit_anchors a
    where a.chain_id = ${chain} and a.seq between ${from} and ${to}
    order by a.seq
    limit ${limit}`,
  );
}

export interface OpenedAnchor extends Pick<Anchor, 'seq' | 'link' | 'at' | 'token'> {
  readonly digest: string;
}

/** These timestamps of a chain; those that can't be what we stored are left out. */
export function readAnchors(pool: Pool, chain: string, seqs: readonly number[]): Promise<OpenedAnchor[]> {
  return pool.run<OpenedAnchor[]>(
    (sql) => sql`
    select * from (
      select a.seq, encode(a.link, 'hex') as link, a.at, a.token, ${digestOf(sql)} as digest
      from audit_anchors a
      where a.chain_id = ${chain} and a.seq = any (${seqs.map(String)}::bigint[])
      order by a.seq
      limit ${seqs.length}
    ) found
    where digest is not null`,
  );
}

/** An expression over the row `a` of `audit_anchors`. The last part is the only one of any length. */
function digestOf(sql: Sql): postgres.PendingQuery<postgres.Row[]> {
  return sql`
    case when octet_length(a.link) = 32 and octet_length(a.token) <= ${LONGEST_TOKEN_BYTES} and octet_length(a.at) <= ${LONGEST_TIME_BYTES}
         then encode(sha256(convert_to(
                encode(a.link, 'hex') || encode(sha256(a.token), 'hex') || a.at, 'UTF8')), 'base64') end`;
}
