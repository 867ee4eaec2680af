/** Queues: which there are, how they stand, and a person's word that nothing is taken out of one, or is again. */
import { Bug } from '../kernel/problems.js';
import type { Pool, Sql } from '../platform/db/db.js';

/**
 * Names of queues behind `after`, in order, at most `limit`: those that are paused and those that a connected worker
 * serves by name; with `all` also those out of which something runs, or could be claimed. What isn't due yet makes no
 * queue.
 *
 * index     live_runs_order, a hop per queue, at most `limit`; live_runs_holder; workers_not_over
 */
export async function queueNames(
  pool: Pool,
  connectedMs: number,
  { after, limit, all }: { readonly after: string; readonly limit: number; readonly all: boolean },
): Promise<string[]> {
  const rows = await pool.run<{ name: string }[]>(
    (sql) => sql`
    with recursive waiting (name, n) as (
      (select queue, 1 from live_runs
       where ${all} and claimable and queue > ${after}
       order by queue limit 1)
      union all
      select next.queue, w.n + 1
      from waiting w
      cross join lateral (
        select l.queue from live_runs l
        where l.claimable and l.queue > w.name
        order by l.queue limit 1
      ) next
      where w.n < ${limit}
    ),
    named as (
      select name from waiting
      union
      select queue from live_runs where ${all} and holder is not null
      union
      select name from paused_queues
      union
      select q.name from workers w cross join unnest(w.queues) as q (name)
      where ${takesRuns(sql, connectedMs)} and q.name <> '*'
    )
    select name from named
    where name > ${after}
    order by name
    limit ${limit}`,
  );
  return rows.map(({ name }) => name);
}

export interface QueueRow {
  readonly name: string;
  /** These four are null together. */
  readonly at: Date | null;
  readonly by: string | null;
  readonly byName: string | null;
  readonly reason: string | null;
  readonly etag: string;
  readonly running: number;
  readonly workers: number;
}

/** How the queues of these names stand, in their order. Index: live_runs_holder, workers_not_over. */
export function lookAtQueues(pool: Pool, connectedMs: number, names: readonly string[]): Promise<QueueRow[]> {
  return pool.run<QueueRow[]>(
    (sql) => sql`
    with running as materialized (
      select queue, count(*)::integer as n from live_runs where holder is not null and state = 'running' group by queue
    ),
    taking as materialized (
      select w.queues from workers w where ${takesRuns(sql, connectedMs)}
    )
    select q.name, p.at, p.by, p.by_name, p.reason, ${etag(sql)} as etag,
           coalesce(r.n, 0) as running,
           (select count(*)::integer from taking t where t.queues && array[q.name, '*']) as workers
    from unnest(${names as string[]}::text[]) with ordinality as q (name, i)
    left join paused_queues p on p.name = q.name
    left join running r on r.queue = q.name
    order by q.i`,
  );
}

/** A worker that would claim, had it something to claim. */
function takesRuns(sql: Sql, connectedMs: number) {
  return sql`
    w.ended_at is null
      and w.state = 'live'
      and w.slots > 0
      and w.lease_until - w.ttl_ms * interval '1 millisecond' > db_clock() - ${connectedMs} * interval '1 millisecond'`;
}

export interface QueueStanding {
  /** Why it is paused; null while it is not. */
  readonly reason: string | null;
  readonly etag: string;
  /** Of the newest entry that says so; 0 and null when nobody ever said anything about it. */
  readonly seq: number;
  readonly receipt: string | null;
}

/** Whether and why a queue is paused, and what made it so. Index: audit_entries_object. */
export async function queueStanding(pool: Pool, chain: string, name: string): Promise<QueueStanding> {
  const rows = await pool.run<QueueStanding[]>(
    (sql) => sql`
    select p.reason, ${etag(sql)} as etag,
           coalesce(e.seq, 0)::float8 as seq,
           ${chain}::text || ':' || e.seq || ':' || encode(e.link, 'hex') as receipt
    from (select) as one
    left join paused_queues p on p.name = ${name}
    left join lateral (
      select seq, link from audit_entries where ${isAbout(sql, chain, name)} order by seq desc limit 1
    ) e on true`,
  );
  const [standing] = rows;
  if (!standing) throw new Bug('the standing of a queue has no row');
  return standing;
}

export interface QueueChange {
  readonly name: string;
  readonly reason: string | null;
  /** How the queue stood when it was looked at. */
  readonly seen: Pick<QueueStanding, 'seq' | 'etag'>;
  /** The installation's chain. */
  readonly chain: string;
  /** TypeID and name of who asks for it. */
  readonly by: string;
  readonly byName: string;
}

/**
 * From its commit on no claim that begins takes a run out of the queue; one that is under way may. What runs goes on.
 *
 * guard     the queue is not paused, and nobody paused and resumed it since it was looked at
 * outcomes  the receipt; nothing when it was not so
 * locks     the queue's row → the installation's chain
 */
export function pauseIfUnchanged(pool: Pool, change: QueueChange): Promise<{ receipt: string }[]> {
  const { name, by, byName, reason } = change;
  return pool.run<{ receipt: string }[]>(
    (sql) => sql`
    with changed as (
      insert into paused_queues (name, at, by, by_name, reason)
      select ${name}, date_trunc('milliseconds', db_clock()), ${by}, ${byName}, ${reason}
      where ${isUnchanged(sql, change)}
      on conflict do nothing                                 -- paused already
      returning name
    )
    ${recorded(sql, 'queue.paused', change)}`,
  );
}

/**
 * A queue that is paused stays so, for another reason.
 *
 * guard     the queue's pause is the one that was looked at
 * outcomes  the receipt; nothing when it was not so
 * locks     the queue's row → the installation's chain
 */
export function pauseAnewIfUnchanged(pool: Pool, change: QueueChange): Promise<{ receipt: string }[]> {
  const { name, by, byName, reason, seen } = change;
  return pool.run<{ receipt: string }[]>(
    (sql) => sql`
    with changed as (
      update paused_queues
      set at = date_trunc('milliseconds', db_clock()), by = ${by}, by_name = ${byName}, reason = ${reason}
      where name = ${name}
        and ${etag(sql)} = ${seen.etag}
      returning name
    )
    ${recorded(sql, 'queue.paused', change)}`,
  );
}

/**
 * Runs of the queue are claimed again.
 *
 * guard     the queue's pause is the one that was looked at
 * outcomes  the receipt; nothing when it was not so
 * locks     the queue's row → the installation's chain
 */
export function resumeIfUnchanged(pool: Pool, change: QueueChange): Promise<{ receipt: string }[]> {
  return pool.run<{ receipt: string }[]>(
    (sql) => sql`
    with changed as (
      delete from paused_queues
      where name = ${change.name}
        and ${etag(sql)} = ${change.seen.etag}
      returning name
    )
    ${recorded(sql, 'queue.resumed', change)}`,
  );
}

/** A statement that comes late undoes no later decision, though a queue that is open looks as it did before. */
function isUnchanged(sql: Sql, { chain, name, seen }: QueueChange) {
  return sql`not exists (select from audit_entries where ${isAbout(sql, chain, name)} and seq > ${seen.seq})`;
}

/** The strong ETag of a pause, over a row of `paused_queues` or over none. */
function etag(sql: Sql) {
  return sql`
    coalesce(
      '"' || left(encode(sha256(convert_to(extract(epoch from at) || ' ' || by || ' ' || reason, 'UTF8')), 'hex'), 32) || '"',
      '"open"')`;
}

/** Entries of the installation's chain about pauses of this queue; the expression is the index's. */
function isAbout(sql: Sql, chain: string, name: string) {
  return sql`
    chain_id = ${chain}
      and substring(claim from '"object":"([^"]*)"') = ${name}
      and run_id is null
      and action in ('queue.paused', 'queue.resumed')`;
}

function recorded(sql: Sql, action: 'queue.paused' | 'queue.resumed', { chain, by, byName, reason }: QueueChange) {
  return sql`
    select a.receipt
    from changed c
    cross join lateral audit_append(
      array[${chain}::text],
      array[jsonb_strip_nulls(jsonb_build_object(
        'action', ${action}::text, 'object', c.name, 'principal', ${by}::text, 'principalName', ${byName}::text,
        'reason', ${reason}::text))],
      array[null::uuid]) a`;
}
