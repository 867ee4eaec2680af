/** Rows 6, 7 and 9: a worker takes pending runs, moves them to running, or gives them back unstarted. */
import { listed, type Pool, records, type Sql } from '../platform/db/db.js';
import {
  claimOrder,
  dueQueuesCte,
  type Fragment,
  holdsLease,
  isClaimable,
  isInQueue,
  isLive,
  isOpen,
} from './claimable.sql.js';
import { type EndedRun, endedRunOf, endingCtes, liveColumns } from './ending.sql.js';
import type { ClaimedRun, Hold } from './run.js';
import type { Mark } from './watermark.rules.js';

/** The queues a worker serves; `*` alone means all of them. */
export type ServedQueues = readonly string[];

/**
 * Takes up to `limit` pending runs, oldest first within their priority; one of kind `noop`, which has no tool, starts in
 * the same breath. With `marks` it looks only behind these places, and in no other queue.
 *
 * guard     own worker row live, lease unexpired by the database's clock, read under a lock that reap needs;
 *           run pending, due, in a served queue that is not paused (each predicate: claimable.sql.ts, shared with
 *           why.sql.ts)
 * outcomes  the runs that are now ours; fewer than asked for does not mean that there are no more
 * locks     worker row (key share) → live rows, skipping those that others hold
 * index     live_runs_order, one range per queue
 */
export function claimIfLive(
  pool: Pool,
  worker: string,
  queues: ServedQueues,
  limit: number,
  marks: readonly Mark[] = [],
): Promise<ClaimedRun[]> {
  return pool.run<ClaimedRun[]>(
    (sql) => sql`
    with recursive me as materialized (
      select w.id, w.lease_until from workers w
      where w.id = ${worker}
        and ${isLive(sql)}                                   -- not draining, not reaped
        and ${holdsLease(sql)}                               -- at this very moment
      for key share
    ),
    ${marks.length > 0 ? markedCte(sql, marks) : servedCte(sql, queues)},
    candidate as materialized (
      select next.run_id, next.priority, next.position
      from me as w
      cross join served s
      cross join lateral (
        select l.run_id, l.priority, l.position
        from live_runs l
        where ${isClaimable(sql)}                            -- pending and due
          and ${isInQueue(sql)}
          and (${claimOrder(sql)}) > (s.rank, s.position)
        order by ${claimOrder(sql)}
        limit ${limit}
        for update skip locked
      ) next
      where ${holdsLease(sql)}                               -- read again, after the row was waited for
        and ${isOpen(sql)}
      order by next.priority desc, next.position
      limit ${limit}
    ),
    claimed as (
      update live_runs l
      set state = case l.kind when 'noop' then 'running' else 'claimed' end, holder = ${worker}, fence = l.fence + 1,
          claimed_at = date_trunc('milliseconds', db_now()),
          started_at = case l.kind when 'noop' then date_trunc('milliseconds', db_now()) end,
          report_batch = 0, progress = null                  -- the reports of this fence begin anew
      where l.run_id = any (array(select run_id from candidate))
      returning l.run_id, l.organization_id, l.fence, l.state, l.priority, l.position
    )
    -- One look-up each: a join would rather read all of the table.
    select c.run_id, c.fence, c.organization_id, c.state = 'running' as started, r.kind, r.name, r.spec, r.timeout_ms, r.traceparent, r.queue, c.priority,
           c.position, extract(epoch from db_now() - greatest(r.created_at, r.not_before))::float8 * 1000 as waited_ms
    from claimed c
    cross join lateral (select * from runs where id = c.run_id offset 0) r
    order by c.priority desc, c.position`,
  );
}

/** The queues to look at, each with the place behind which to look: here, from its beginning on. */
export function servedCte(sql: Sql, queues: ServedQueues): Fragment {
  const beginning = sql`-101::smallint as rank, 0::bigint as position`;
  if (!queues.includes('*')) {
    return sql`served as (select queue, ${beginning} from unnest(${queues as string[]}::text[]) as q (queue))`;
  }
  return sql`
    ${dueQueuesCte(sql)},
    served as (select queue, ${beginning} from name where queue is not null)`;
}

function markedCte(sql: Sql, marks: readonly Mark[]): Fragment {
  return sql`
    served as (
      select m.queue, (-m.priority)::smallint as rank, m.position
      from jsonb_to_recordset(${records(sql, marks)}::jsonb) as m (queue text, priority smallint, position bigint)
    )`;
}

/**
 * Moves claimed runs to running, before their tools start.
 *
 * guard     own worker row live and lease unexpired, locked against reap and drain; run claimed under this holder and
 *           this fence; no cancel request. A run that is running already (an answer was lost) is confirmed, also to a
 *           life that drains by now
 * outcomes  one row per run that may be executed now; what is missing must not be
 * locks     worker row (key share) → live rows by id
 */
export function startIfHeld(pool: Pool, worker: string, holds: readonly Hold[]): Promise<{ runId: string }[]> {
  return pool.run<{ runId: string }[]>(
    (sql) => sql`
    with me as materialized (
      select id, state, lease_until from workers
      where id = ${worker}
        and state in ('live', 'draining')                    -- neither stopped nor reaped
        and lease_until > db_clock()
      for key share
    ),
    locked as materialized (
      select l.run_id
      from me
      cross join (
        select * from unnest(
          string_to_array(${listed(holds.map(({ runId }) => runId))}, ',')::uuid[],
          string_to_array(${listed(holds.map(({ fence }) => fence))}, ',')::integer[]) as i (run_id, fence)
        order by run_id
      ) i
      -- One look-up each, and by the run (what "is true" is no condition for an index): joined as sets, or by the holder,
      -- the planner may loop over 200 × 200 of them.
      cross join lateral (
        select l.run_id from live_runs l
        where l.run_id = i.run_id
          and (l.holder = me.id) is true                     -- still this life's
          and l.fence = i.fence                              -- and this claim's
          and (l.state = 'running'                           -- started before
               or (l.state = 'claimed' and l.cancel_requested_at is null
                   and me.state = 'live'))                   -- a life that drains starts nothing
        for update
      ) l
      where me.lease_until > db_clock()                      -- read again, after the row was waited for
    )
    update live_runs l
    set state = 'running', started_at = coalesce(l.started_at, date_trunc('milliseconds', db_clock()))
    where l.run_id = any (array(select run_id from locked))
    returning l.run_id`,
  );
}

/** A claimed, unstarted run that goes back. */
export interface Release extends Hold {
  readonly chain: string;
  readonly object: string;
  readonly worker: string;
}

export interface Released {
  readonly runId: string;
  /** Null when it is pending again. */
  readonly ended: EndedRun | null;
}

/**
 * Gives claimed runs back, in their old place; one with a cancel request ends canceled instead.
 *
 * guard     run claimed under this holder and this fence (no lease check: giving back is always safe)
 * outcomes  one row per run that was given back or canceled
 * locks     live rows by id → runs → events → chains
 */
export function releaseIfHeld(pool: Pool, worker: string, releases: readonly Release[]): Promise<Released[]> {
  return pool.run<Released[]>(
    (sql) => sql`
    with locked as materialized (
      select ${liveColumns(sql)}, l.cancel_kind, l.cancel_detail, i.chain, i.object, i.worker
      from jsonb_to_recordset(${records(sql, releases)}::jsonb)
             as i ("runId" uuid, fence integer, chain text, object text, worker text)
      join live_runs l on l.run_id = i."runId"
      where l.holder = ${worker}
        and l.fence = i.fence
        and l.state = 'claimed'
      order by l.run_id
      for update of l
    ),
    back as (
      update live_runs l
      set state = 'pending', holder = null, claimed_at = null, event_seq = l.event_seq + 1
      from locked k
      where l.run_id = k.run_id and k.cancel_requested_at is null
      returning l.run_id, l.run_day, l.event_seq, l.fence
    ),
    released as (
      insert into run_events (run_day, run_id, seq, type, at, data)
      select run_day, run_id, event_seq, 'run.released', db_now(), jsonb_build_object('fence', fence) from back
      returning run_id
    ),
    ending as materialized (
      select k.*, 'canceled' as state, 'canceled' as code, k.cancel_kind as kind,
             coalesce(k.cancel_detail, 'canceled before it started') as detail, null::integer as exit_code,
             null::text as signal, null::jsonb as output, null::text as output_digest, k.worker as by,
             null::text as by_name
      from locked k
      where k.cancel_requested_at is not null
    ),
    ${endingCtes(sql)},
    entry as (
      select array_agg(chain) as chains, array_agg(action) as actions, array_agg(payload) as payloads,
             array_agg(run_id) as run_ids
      from ended
    ),
    appended as (
      select count(*) as n from entry e cross join lateral audit_append(e.chains, e.actions, e.payloads, e.run_ids)
    )
    select r.run_id, null::jsonb as ended from released r
    union all
    select run_id, ${endedRunOf(sql)} from ended where (select n from appended) > 0`,
  );
}
