/** Reads of single entries and of pages of them. None takes a lock. */
import type postgres from 'postgres';
import { encodeId } from '../kernel/ids.js';
import { canonicalJson } from '../kernel/json.js';
import type { Pool, Sql } from '../platform/db/db.js';
import type { EntryRange } from './bundle.rules.js';
import type { EntryRow } from './entry.js';
import { linkOf } from './link.sql.js';

/** All of these. */
export interface EntryFilter {
  readonly action?: string | undefined;
  readonly principal?: string | undefined;
  /** Without quotation marks and backslashes. `objectRunId` is the run that it names, if it does. */
  readonly object?: string | undefined;
  readonly objectRunId?: string | undefined;
  readonly runId?: string | undefined;
}

type Fragment = postgres.PendingQuery<postgres.Row[]>;

/** Whether all that is looked at is met, or found by an index; for other filters entry after entry is looked at. */
export function isDirect({ action, principal, object, runId }: EntryFilter): boolean {
  return object !== undefined || runId !== undefined || (action === undefined && principal === undefined);
}

/** The number of the `count`th entry from `to` down to `from`; `undefined` when there are not so many. */
export async function seqDown(
  pool: Pool,
  chain: string,
  { from, to }: EntryRange,
  count: number,
): Promise<number | undefined> {
  const rows = await pool.run<{ seq: number }[]>(
    (sql) => sql`
    select seq from audit_entries
    where chain_id = ${chain} and seq between ${from} and ${to}
    order by seq desc
    offset ${count - 1} limit 1`,
  );
  return rows[0]?.seq;
}

/**
 * The newest entries that the filter meets between two numbers, newest first.
 *
 * index     `run`, or an object that is a run: audit_entries_run; other objects: audit_entries_object, whose entries
 *           belong to no run; else the primary key, backwards: 50,000 entries take up to 50 ms
 */
export function listEntries(
  pool: Pool,
  chain: string,
  filter: EntryFilter,
  { from, to }: EntryRange,
  limit: number,
): Promise<EntryRow[]> {
  return pool.run<EntryRow[]>((sql) => {
    const { place, or } = placesOf(sql, filter);
    const there = (at: Fragment) => sql`
      (select e.chain_id as chain, e.seq, e.claim, encode(e.link, 'hex') as link
       from audit_entries e
       where e.chain_id = ${chain}
         and e.seq between ${from} and ${to}
         and ${at}
         and ${filter.action === undefined ? sql`true` : sql`e.action = ${filter.action}`}
         and ${filter.principal === undefined ? sql`true` : says(sql, 'principal', filter.principal)}
       order by e.seq desc
       limit ${limit})`;
    return sql`
    select * from (
      ${there(place)}
      ${or === undefined ? sql`` : sql`union all ${there(or)}`}
    ) as found
    order by seq desc
    limit ${limit}`;
  });
}

/** Where to look. What is about a run says so by its id; what else names it as its object, by its text alone. */
function placesOf(sql: Sql, filter: EntryFilter): { readonly place: Fragment; readonly or?: Fragment } {
  const { object, objectRunId, runId } = filter;
  if (runId !== undefined) {
    const about = object === undefined ? sql`true` : says(sql, 'object', object);
    return { place: sql`e.run_id = ${runId} and ${saysRun(sql, runId)} and ${about}` };
  }
  if (object === undefined) return { place: sql`true` };
  // As the index says it, word for word.
  const place = sql`e.run_id is null and substring(e.claim from '"object":"([^"]*)"') = ${object}`;
  return objectRunId === undefined
    ? { place }
    : { place, or: sql`e.run_id = ${objectRunId} and ${says(sql, 'object', object)}` };
}

/** The text is canonical, so this meets a member and nothing that a value quotes. */
function says(sql: Sql, name: string, value: string): Fragment {
  return sql`position(${`"${name}":${canonicalJson(value)}`} in e.claim) > 0`;
}

/** The column only finds it: that verification says what text it stands beside would take too long (`columns.sql.ts`). */
export function saysRun(sql: Sql, runId: string): Fragment {
  return says(sql, 'object', encodeId('run', runId));
}

/** What became of the entry that a receipt names. */
export interface Receipted extends EntryRow {
  /** Not beyond the head. */
  readonly isLed: boolean;
  /** Whether the stored text still yields the stored link. */
  readonly isWhole: boolean;
}

/** The entry of this number as it is stored now. */
export async function entryAt(pool: Pool, chain: string, seq: number): Promise<Receipted | undefined> {
  const rows = await pool.run<Receipted[]>(
    (sql) => sql`
    select e.chain_id as chain, e.seq, e.claim, encode(e.link, 'hex') as link,
           e.seq <= h.seq as is_led,
           e.link = ${linkOf(sql)} as is_whole
    from audit_entries e
    join audit_heads h using (chain_id)
    where e.chain_id = ${chain} and e.seq = ${seq}`,
  );
  return rows[0];
}
