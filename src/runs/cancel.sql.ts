/** Rows 13 and 14: a run is canceled in place, or its holder is told to stop it. */
import { type Pool, records } from '../platform/db/db.js';
import { type EndedRun, endedRunOf, endingCtes, liveColumns } from './ending.sql.js';
import type { CancelKind, RunState } from './run.js';

export interface Cancel {
  readonly runId: string;
  readonly organizationId: string;
  readonly chain: string;
  readonly object: string;
  readonly kind: CancelKind;
  readonly detail: string;
  /** TypeID and name of who cancels. */
  readonly by: string;
  readonly byName: string;
  /** Only while the run is in one of these. */
  readonly states?: readonly RunState[];
}

export interface Canceled {
  readonly runId: string;
  /** The chain of its organization. */
  readonly chain: string;
  /** `ended`: canceled in place. `requested`: flagged now. `already`: an earlier request stands. */
  readonly result: 'ended' | 'requested' | 'already';
  readonly receipt: string | null;
  /** Null when it goes on. */
  readonly ended: EndedRun | null;
}

/**
 * Cancels runs. The live row is locked first, then its state decides.
 *
 * guard     the run is the organization's, has not ended and is in a state that was meant; of several requests only the
 *           first writes
 * outcomes  one row per run that has a live row; what is missing has ended or never was
 * locks     live rows by id → runs → events → chains
 */
export function cancelIfLive(pool: Pool, cancels: readonly Cancel[]): Promise<Canceled[]> {
  return pool.run<Canceled[]>(
    (sql) => sql`
    with locked as materialized (
      select ${liveColumns(sql)}, l.state as live_state, l.not_before, i.chain, i.object, i.kind, i.detail, i.by,
             i."byName" as by_name
      from jsonb_to_recordset(${records(sql, cancels)}::jsonb) as i (
        "runId" uuid, "organizationId" uuid, chain text, object text, kind text, detail text, by text, "byName" text,
        states text[])
      join live_runs l on l.run_id = i."runId" and l.organization_id = i."organizationId"
      where i.states is null or l.state = any (i.states)     -- looked at again once it is locked
      order by l.run_id
      for update of l
    ),
    flagged as (
      update live_runs l
      set cancel_requested_at = date_trunc('milliseconds', db_clock()), cancel_kind = k.kind, cancel_detail = k.detail,
          event_seq = l.event_seq + 1,
          -- A claim may have committed since this statement began, of a run that was not due then. The row is first
          -- built, and checked, from what was there before it: a pending run with a cancel request, which no check lets
          -- through.
          state = k.live_state, not_before = k.not_before, holder = k.holder, claimed_at = k.claimed_at,
          started_at = k.started_at
      from locked k
      where l.run_id = k.run_id
        and k.live_state in ('claimed', 'running')
        and k.cancel_requested_at is null                    -- the first request only
      returning k.run_id, k.chain, k.object, k.kind, k.detail, k.by, k.by_name, l.run_day, l.event_seq,
                l.cancel_requested_at, l.fence
    ),
    request_event as (
      insert into run_events (run_day, run_id, seq, type, at, data)
      select run_day, run_id, event_seq, 'run.cancel_requested', cancel_requested_at,
             jsonb_build_object('kind', kind, 'by', by, 'detail', detail)
      from flagged
      returning run_id
    ),
    requested as (
      select run_id, chain, 'run.cancel_requested' as action,
             canonical_flat(jsonb_strip_nulls(jsonb_build_object(
               'action', 'run.cancel_requested', 'object', object, 'principal', by, 'principalName', by_name,
               'cancelKind', kind, 'fence', fence))) as payload
      from flagged
      where (select count(*) from request_event) >= 0        -- everything is written before the chain's lock is taken
    ),
    ending as materialized (
      select k.*, 'canceled' as state, 'canceled' as code, null::integer as exit_code, null::text as signal,
             null::jsonb as output, null::text as output_digest, null::text as worker
      from locked k
      where k.live_state in ('held', 'pending', 'parked')
    ),
    ${endingCtes(sql)},
    change as (
      select run_id, chain, action, payload, 'ended' as result, ${endedRunOf(sql)} as facts from ended
      union all
      select run_id, chain, action, payload, 'requested', null from requested
    ),
    entry as (
      select array_agg(chain order by run_id) as chains, array_agg(action order by run_id) as actions,
             array_agg(payload order by run_id) as payloads, array_agg(run_id order by run_id) as run_ids,
             array_agg(result order by run_id) as results, array_agg(facts order by run_id) as facts
      from change
    )
    select e.run_ids[a.entry] as run_id, e.chains[a.entry] as chain, e.results[a.entry] as result, a.receipt,
           e.facts[a.entry] as ended
    from entry e
    cross join lateral audit_append(e.chains, e.actions, e.payloads, e.run_ids) a
    union all
    select run_id, chain, 'already', null, null from locked
    where live_state in ('claimed', 'running') and cancel_requested_at is not null`,
  );
}

/** Runs that have been executing for longer than `maxMs`, without a cancel request yet. */
export function findOverdue(
  pool: Pool,
  maxMs: number,
  limit: number,
): Promise<{ runId: string; organizationId: string }[]> {
  return pool.run<{ runId: string; organizationId: string }[]>(
    (sql) => sql`
    select run_id, organization_id from live_runs
    where holder is not null
      and state = 'running'
      and cancel_requested_at is null
      and started_at < db_now() - ${maxMs} * interval '1 millisecond'
    order by run_id
    limit ${limit}`,
  );
}
