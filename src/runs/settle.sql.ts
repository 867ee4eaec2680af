/** Rows 8 and 11: what a lost or stopped worker held goes back to the queue, or ends interrupted. Never run again. */
import { type Pool, records } from '../platform/db/db.js';
import { type EndedRun, endedRunOf, endingCtes, liveColumns } from './ending.sql.js';

export interface Orphan {
  readonly runId: string;
  readonly organizationId: string;
  readonly holder: string;
}

/** Live runs whose holder's life is over, at most `limit`. Such a life never changes again, so no lock is needed. */
export function findOrphans(pool: Pool, limit: number): Promise<Orphan[]> {
  return pool.run<Orphan[]>(
    (sql) => sql`
    select l.run_id, l.organization_id, l.holder
    from live_runs l join workers w on w.id = l.holder
    where l.holder is not null
      and w.state in ('lost', 'stopped')
    order by l.run_id
    limit ${limit}`,
  );
}

export interface Settle {
  readonly runId: string;
  readonly holder: string;
  readonly chain: string;
  readonly object: string;
  /** TypeID of the lost worker, and TypeID and name of the worker whose janitor settles. */
  readonly worker: string;
  readonly by: string;
  readonly byName: string;
}

export interface Settled {
  readonly runId: string;
  readonly result: 'requeued' | 'interrupted' | 'canceled';
  /** Null when it goes on. */
  readonly ended: EndedRun | null;
}

/**
 * Settles runs of lives that are over.
 *
 * guard     the run's holder is still this one, and its worker row is lost or stopped
 * outcomes  one row per run that was settled now; what is missing was settled by another janitor or ended by its
 *           holder in time
 * locks     live rows by id → runs → events → chains
 */
export function settleIfOrphaned(pool: Pool, settles: readonly Settle[]): Promise<Settled[]> {
  return pool.run<Settled[]>(
    (sql) => sql`
    with locked as materialized (
      select ${liveColumns(sql)}, l.state as live_state, l.cancel_kind, l.cancel_detail, i.chain, i.object, i.worker, i.by,
             i."byName" as by_name
      from jsonb_to_recordset(${records(sql, settles)}::jsonb) as i (
        "runId" uuid, holder uuid, chain text, object text, worker text, by text, "byName" text)
      join live_runs l on l.run_id = i."runId"
      join workers w on w.id = l.holder
      where l.holder = i.holder                              -- not claimed again meanwhile
        and w.state in ('lost', 'stopped')                   -- and that life is over
      order by l.run_id
      for update of l
    ),
    back as (
      update live_runs l
      set state = 'pending', holder = null, claimed_at = null, event_seq = l.event_seq + 1
      from locked k
      where l.run_id = k.run_id
        and k.live_state = 'claimed'                          -- its tool never started
        and k.cancel_requested_at is null
      returning k.run_id, k.chain, k.object, k.by, k.by_name, k.worker, k.fence, k.run_day, l.event_seq
    ),
    requeue_event as (
      insert into run_events (run_day, run_id, seq, type, at, data)
      select run_day, run_id, event_seq, 'run.requeued', db_now(), jsonb_build_object('worker', worker, 'fence', fence)
      from back
      returning run_id
    ),
    requeued as (
      select run_id, chain, 'run.requeued' as action,
             canonical_flat(jsonb_build_object(
               'action', 'run.requeued', 'object', object, 'principal', by, 'principalName', by_name,
               'worker', worker, 'fence', fence, 'reason', 'worker_lost')) as payload
      from back
      where (select count(*) from requeue_event) >= 0        -- everything is written before the chain's lock is taken
    ),
    ending as materialized (
      select k.*,
             case k.live_state when 'running' then 'interrupted' else 'canceled' end as state,
             case k.live_state when 'running' then 'worker_lost' else 'canceled' end as code,
             case k.live_state when 'running' then null else k.cancel_kind end as kind,
             case k.live_state
               when 'running' then 'the worker was lost while the tool was running; it is not run again by itself'
               else coalesce(k.cancel_detail, 'canceled before it started')
             end as detail,
             null::integer as exit_code, null::text as signal, null::jsonb as output, null::text as output_digest
      from locked k
      where k.live_state = 'running' or k.cancel_requested_at is not null
    ),
    ${endingCtes(sql)},
    change as (
      select run_id, chain, action, payload, state as result, ${endedRunOf(sql)} as facts from ended
      union all
      select run_id, chain, action, payload, 'requeued', null from requeued
    ),
    entry as (
      select array_agg(chain order by run_id) as chains, array_agg(action order by run_id) as actions,
             array_agg(payload order by run_id) as payloads, array_agg(run_id order by run_id) as run_ids,
             array_agg(result order by run_id) as results, array_agg(facts order by run_id) as facts
      from change
    )
    select e.run_ids[a.entry] as run_id, e.results[a.entry] as result, e.facts[a.entry] as ended
    from entry e
    cross join lateral audit_append(e.chains, e.actions, e.payloads, e.run_ids) a`,
  );
}
