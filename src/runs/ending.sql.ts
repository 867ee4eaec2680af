/**
 * The one way a run ends. A statement that ends runs locks their live rows, says in a CTE named `ending` how each
 * ends, and goes on with these CTEs: live row deleted, outcome written, event appended, audit payload made. All of it
 * is the same statement, so an end is whole or it isn't.
 *
 * `ending` has: the locked live row (`liveColumns`), state, code, kind, detail, exit_code, signal, output jsonb, output_digest,
 * by (a TypeID), by_name, object (the run's TypeID), worker (the holder's TypeID or null), chain.
 * Afterwards `ended` has one row for each: run_id, chain, action, payload (canonical text), and what an `EndedRun` is made of.
 * No part joins one CTE with another: the planner takes them for a few rows, and loops over 200 × 200 × 200 of them.
 */
import type postgres from 'postgres';
import type { Sql } from '../platform/db/db.js';
import type { EndCode, EndState, Kind } from './run.js';

type Fragment = postgres.PendingQuery<postgres.Row[]>;

/** What is counted of an end. */
export interface EndedRun {
  readonly state: EndState;
  readonly code: EndCode;
  readonly kind: Kind;
  readonly queue: string;
  /** From its start to its end; null when it never started. */
  readonly ranSeconds: number | null;
}

/** What an end takes over from the live row `l`. */
export function liveColumns(sql: Sql): Fragment {
  return sql`
    l.run_id, l.run_day, l.event_seq, l.fence, l.holder, l.claimed_at, l.started_at, l.cancel_requested_at, l.progress`;
}

export function endingCtes(sql: Sql): Fragment {
  return sql`
    gone as (
      delete from live_runs where run_id = any (array(select run_id from ending))
      returning run_id
    ),
    instant as materialized (
      select at, instant_text(at) as text from (select date_trunc('milliseconds', db_clock()) as at offset 0) clock
    ),
    outcome as (
      update runs r set
        state = e.state,
        end_code = e.code,
        end_kind = e.kind,
        end_detail = left(e.detail, 2000),
        exit_code = e.exit_code,
        signal = e.signal,
        end_by = e.by,
        ended_at = (select at from instant),                 -- behind the locks
        fence = e.fence,
        worker_id = e.holder,
        claimed_at = e.claimed_at,
        started_at = e.started_at,
        cancel_requested_at = e.cancel_requested_at,
        output = e.output,
        progress = e.progress
      from ending e
      where r.id = e.run_id
      returning r.id as run_id, e.chain, e.run_day, e.event_seq, r.state, r.end_code as code, r.end_kind as kind,
                r.end_detail as detail, r.exit_code, r.signal, r.fence, r.kind as run_kind, r.queue, r.ended_at,
                r.started_at, ${payloadOf(sql)} as payload
    ),
    end_event as (
      insert into run_events (run_day, run_id, seq, type, at, data)
      select run_day, run_id, event_seq + 1, 'run.ended', ended_at,
             jsonb_strip_nulls(jsonb_build_object(
               'state', state, 'code', code, 'kind', kind, 'detail', detail, 'exitCode', exit_code, 'signal', signal,
               'fence', fence))
      from outcome
      returning run_id
    ),
    ended as (
      select run_id, chain, 'run.ended' as action, payload, state, code, run_kind, queue,
             extract(epoch from ended_at - started_at)::float8 as ran_seconds
      from outcome
      -- Everything is written before the chain's lock is taken.
      where (select count(*) from gone) + (select count(*) from end_event) >= 0
    )`;
}

/**
 * An end's audit payload: RFC 8785 text, made as such, in the order of its names. What is quoted here as it is consists of
 * letters, digits and `:_`.
 */
function payloadOf(sql: Sql): Fragment {
  return sql`
    '{"action":"run.ended"' || coalesce(',"cancelKind":"' || e.kind || '"', '') || ',"code":"' || e.code
      || '","endedAt":"' || (select text from instant) || '"' || coalesce(',"exitCode":' || e.exit_code, '')
      || ',"fence":' || e.fence || ',"object":"' || e.object || '"'
      || coalesce(',"outputDigest":"' || e.output_digest || '"', '') || ',"principal":"' || e.by || '"'
      || coalesce(',"principalName":' || to_json(e.by_name)::text, '') || coalesce(',"signal":"' || e.signal || '"', '')
      || ',"specDigest":"' || r.spec_digest || '"'
      || coalesce(',"startedAt":"' || to_char(e.started_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', '')
      || ',"state":"' || e.state || '"' || coalesce(',"worker":"' || e.worker || '"', '') || '}'`;
}

/** The columns of `ended` as an `EndedRun`. */
export function endedRunOf(sql: Sql): Fragment {
  return sql`
    jsonb_build_object('state', state, 'code', code, 'kind', run_kind, 'queue', queue, 'ranSeconds', ran_seconds)`;
}
