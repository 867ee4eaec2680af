/**
 * Ended runs whose time is over, and all that belongs to them: they are looked for in the order in which they were made,
 * removed by the hundred, and what a whole day has left behind is dropped. The audit chain is never touched but by the
 * entry that tells it.
 */
import type postgres from 'postgres';
import type { Pool, Sql } from '../platform/db/db.js';
import type { Removed } from './retention.js';

/** Behind this run a walk goes on. The instant is the database's text, which loses nothing. */
export interface SweepPlace {
  readonly createdAt: string;
  readonly id: string;
}

/** Before all runs. */
export const FIRST_PLACE: SweepPlace = { createdAt: '-infinity', id: '00000000-0000-0000-0000-000000000000' };

/** A day as the database writes it: `2030-01-31`. */
export type Day = string;

export interface DueRun {
  readonly id: string;
  readonly day: Day;
  /** What its tool wrote. */
  readonly bytes: number;
}

export interface SweepLook {
  readonly due: readonly DueRun[];
  /** How many it met that stay. */
  readonly spared: number;
  /** Where the next look goes on; null behind the last run that is old enough. */
  readonly next: SweepPlace | null;
}

interface LookRow extends Pick<SweepLook, 'due' | 'spared'> {
  readonly walked: number;
  readonly lastAt: string | null;
  readonly lastId: string | null;
}

/** Organizations that have a run old enough to go; with a day, a run of that day. Index: runs_newest, a probe for each. */
export async function organizationsToSweep(pool: Pool, defaultMs: number, day: Day | null): Promise<string[]> {
  const rows = await pool.run<{ id: string }[]>(
    (sql) => sql`
    select o.id
    from organizations o
    cross join lateral (
      select from runs r
      where r.organization_id = o.id
        and r.created_at < db_now() - coalesce(o.retention_ms, ${defaultMs}) * interval '1 millisecond'
        and ${isOfDay(sql, day)}
      limit 1
    ) run
    order by o.id`,
  );
  return rows.map(({ id }) => id);
}

/**
 * Looks at the organization's next runs that are old enough, `limit` at most, and which of them may go. A run can't end
 * before it was made, so what was made later needs no look. Index: runs_newest, backwards. Takes no lock.
 */
export async function lookForDue(
  pool: Pool,
  defaultMs: number,
  walk: {
    readonly organizationId: string;
    readonly after: SweepPlace;
    readonly day: Day | null;
    readonly limit: number;
  },
): Promise<SweepLook> {
  const { organizationId, after, day, limit } = walk;
  const [row] = await pool.run<LookRow[]>(
    (sql) => sql`
    with o as materialized (${retentionOf(sql, organizationId, defaultMs)}),
    walked as materialized (
      select r.id, r.created_at, r.ended_at, r.parent_id, r.root_id, (r.created_at at time zone 'UTC')::date as run_day
      from runs r
      where r.organization_id = ${organizationId}
        and (r.created_at, r.id) > (${after.createdAt}::text::timestamptz, ${after.id}::uuid)
        and r.created_at < (select before from o)
        and ${isOfDay(sql, day)}
      order by r.created_at, r.id
      limit ${limit}
    ),
    judged as materialized (
      select r.*, coalesce(${isDue(sql)}, false) as is_due from walked r cross join o
    ),
    weighed as (
      select j.*, coalesce(w.bytes, 0) as bytes
      from judged j
      left join lateral (
        select c.pos + length(c.data) as bytes
        from run_output c
        where j.is_due and c.run_day = j.run_day and c.run_id = j.id
        order by c.fence desc, c.batch desc
        limit 1
      ) w on true
    )
    select coalesce(jsonb_agg(jsonb_build_object('id', id, 'day', run_day, 'bytes', bytes) order by created_at, id)
                      filter (where is_due), '[]') as due,
           count(*) filter (where not is_due) as spared,
           count(*) as walked,
           (select created_at::text from walked order by created_at desc, id desc limit 1) as last_at,
           (select id from walked order by created_at desc, id desc limit 1) as last_id
    from weighed`,
  );
  if (!row) throw new Error('a look at old runs returned no row');
  const { due, spared, walked, lastAt, lastId } = row;
  const isFull = walked === limit && lastAt !== null && lastId !== null;
  return { due, spared, next: isFull ? { createdAt: lastAt, id: lastId } : null };
}

export interface Removal {
  readonly organizationId: string;
  readonly chain: string;
  /** The day on which all of them were made. */
  readonly day: Day;
  /** Ids and TypeIDs. */
  readonly runs: readonly { readonly id: string; readonly object: string }[];
  /** Events and output stay where they are: the partition of their day is dropped next. */
  readonly leavesRows: boolean;
  /** TypeID and name of who removes them. */
  readonly by: string;
  readonly byName: string;
}

/**
 * Removes runs of an organization with all that belongs to them, and puts on record how many went, the span of their ends
 * and a digest: SHA-256 of the lines `<run> <state> <endedAt>`, each with its newline, in bytewise order, as the `run.ended`
 * entries of the chain have them.
 *
 * guard     nobody else removes at this moment; run ended longer ago than its organization keeps runs (its word, locked
 *           and read, or the default), and has no live row, no child, and no live root
 * outcomes  undefined: somebody else is at it; otherwise what went, nothing of it for what no longer may
 * locks     organization (share) → runs by id; none is waited for → chain
 * size      rows of events and output are found by the day and an array of ids: no plan of it looks at another day
 */
export async function removeIfDue(pool: Pool, defaultMs: number, removal: Removal): Promise<Removed | undefined> {
  const { organizationId, chain, day, runs, leavesRows, by, byName } = removal;
  const ids = runs.map(({ id }) => id);
  const objects = runs.map(({ object }) => object);
  const [row] = await pool.run<(Removed & { readonly isMine: boolean })[]>(
    (sql) => sql`
    with turn as materialized (
      select pg_try_advisory_xact_lock(1129337942, 0) as is_mine
    ),
    o as materialized (
      ${retentionOf(sql, organizationId, defaultMs)}
      for share                                              -- who asks for longer is heard before anything more goes
    ),
    due as materialized (
      select r.id, i.object, r.state, r.created_at, r.ended_at
      from unnest(${ids}::uuid[], ${objects}::text[]) as i (id, object)
      join runs r on r.id = i.id
      cross join o
      where (select is_mine from turn)
        and r.organization_id = ${organizationId}
        and ${isOfDay(sql, day)}
        and ${isDue(sql)}
      order by r.id
      for update of r skip locked
    ),
    listing as (
      delete from ended_runs n using due d
      where n.organization_id = ${organizationId} and n.state = d.state and n.created_at = d.created_at and n.run_id = d.id
      returning 1
    ),
    event as (${rowsOf(sql, 'run_events', day, leavesRows)}),
    chunk as (${rowsOf(sql, 'run_output', day, leavesRows)}),
    cut as (${rowsOf(sql, 'run_output_cuts', day, false)}),
    record as (
      delete from runs where id = any (array(select id from due)) returning 1
    ),
    removed as (
      select (select count(*) from record) as runs, (select count(*) from event) as events,
             (select count(*) from chunk) as chunks, (select coalesce(sum(bytes), 0)::bigint from chunk) as bytes,
             (select count(*) from listing) + (select count(*) from cut) as others,
             min(ended_at) as oldest, max(ended_at) as newest,
             encode(sha256(convert_to(string_agg(
               object || ' ' || state || ' ' || instant_text(ended_at) || E'\\n', '' order by object collate "C"), 'UTF8')),
               'hex') as digest
      from due
    )
    select t.is_mine, coalesce(e.runs, 0) as runs, coalesce(e.events, 0) as events,
           coalesce(e.chunks, 0) as output_chunks, coalesce(e.bytes, 0) as output_bytes
    from turn t
    left join lateral (
      select r.*, a.receipt
      from removed r
      cross join o
      cross join lateral audit_append(
        array[${chain}::text],
        array[jsonb_build_object(
          'action', 'runs.removed', 'object', 'runs', 'principal', ${by}::text, 'principalName', ${byName}::text,
          'runs', r.runs, 'events', r.events, 'outputChunks', r.chunks, 'outputBytes', r.bytes,
          'before', instant_text(o.before), 'oldestEndedAt', instant_text(r.oldest), 'newestEndedAt', instant_text(r.newest),
          'digest', 'sha256:' || r.digest)],
        array[null::uuid]) a
      where r.runs > 0 and r.others >= 0                     -- all is gone before the chain's lock
    ) e on true`,
  );
  return row?.isMine ? row : undefined;
}

/** Days that are over for the runs of every organization, oldest first, and of which there is still something to drop. */
export async function daysToDrop(pool: Pool, defaultMs: number): Promise<Day[]> {
  const rows = await pool.run<{ day: Day }[]>(
    (sql) => sql`
    select distinct d.day::text as day
    from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    cross join lateral (select to_date(right(c.relname, 8), 'YYYYMMDD') as day) d
    where i.inhparent in ('run_events'::regclass, 'run_output'::regclass)
      and c.relname ~ '^run_(events|output)_[0-9]{8}$'
      and (d.day + 1)::timestamp at time zone 'UTC' <= (
        select min(db_now() - coalesce(o.retention_ms, ${defaultMs}) * interval '1 millisecond') from organizations o)
    order by day`,
  );
  return rows.map(({ day }) => day);
}

/**
 * Drops what was kept of a day none of whose runs is left. Returns whether there was something to drop.
 *
 * guard     the day is over for long, and no run of it is left (`drop_run_partition`)
 * locks     the partitioned table, exclusively; not waited for: 55P03 when somebody has it
 */
export async function dropIfEmpty(pool: Pool, table: 'run_events' | 'run_output', day: Day): Promise<boolean> {
  const rows = await pool.run<{ dropped: boolean }[]>(
    (sql) => sql`select drop_run_partition(${table}, ${day}::text::date) as dropped`,
  );
  return rows[0]?.dropped ?? false;
}

/** The organization as `o`: runs that ended `before` this are kept no longer. */
function retentionOf(sql: Sql, organizationId: string, defaultMs: number): postgres.PendingQuery<postgres.Row[]> {
  return sql`
    select db_now() - coalesce(retention_ms, ${defaultMs}) * interval '1 millisecond' as before
    from organizations
    where id = ${organizationId}`;
}

/** Of a row `r` of runs, beside the organization as `o`. */
function isDue(sql: Sql): postgres.PendingQuery<postgres.Row[]> {
  return sql`
    r.ended_at < o.before
        and not exists (select from live_runs l where l.run_id = r.id)         -- whatever its record says
        and not exists (select from runs c where c.parent_id = r.id)           -- children go before their parents
        and (r.parent_id is null or not exists (select from live_runs l where l.run_id = r.root_id))`;
}

function isOfDay(sql: Sql, day: Day | null): postgres.PendingQuery<postgres.Row[]> {
  if (day === null) return sql`true`;
  return sql`
    r.created_at >= ${day}::text::date::timestamp at time zone 'UTC'
        and r.created_at < (${day}::text::date + 1)::timestamp at time zone 'UTC'`;
}

/** What there is of the runs of the CTE `due`: taken away, or only counted. */
function rowsOf(
  sql: Sql,
  table: 'run_events' | 'run_output' | 'run_output_cuts',
  day: Day,
  stays: boolean,
): postgres.PendingQuery<postgres.Row[]> {
  const bytes = table === 'run_output' ? sql`length(data)` : sql`0`;
  const which = sql`${sql(table)} where run_day = ${day}::text::date and run_id = any (array(select id from due))`;
  return stays ? sql`select ${bytes} as bytes from ${which}` : sql`delete from ${which} returning ${bytes} as bytes`;
}
