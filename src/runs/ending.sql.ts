/**
 * The one way a run ends. A statement that ends runs locks their live rows, says in a CTE named `ending` how each
 * ends, and goes on with these CTEs: live row deleted, outcome written, event appended, audit payload made. All of it
 * is the same statement, so an end is whole or it isn't.
 *
 * `ending` has: run_id uuid, state, code, kind, detail, exit_code, signal, output jsonb, output_digest, by (a TypeID),
 * by_name, object (the run's TypeID), worker (the holder's TypeID or null), chain. The rows it names are locked.
 * Afterwards `ended` has one row for each: run_id, chain, state, payload, facts (an `EndedRun`). Each part hands all of it to the next, for no
 * CTE may be joined with another: the planner takes them for a few rows, and loops over 200 × 200 × 200 of them.
 */
import type postgres from 'postgres';
import type { Sql } from '../platform/db/db.js';
import type { EndCode, EndState, Kind } from './run.js';

/** What is counted of an end. */
export interface EndedRun {
  readonly state: EndState;
  readonly code: EndCode;
  readonly kind: Kind;
  readonly queue: string;
  /** From its start to its end; null when it never started. */
  readonly ranSeconds: number | null;
}

export function endingCtes(sql: Sql): postgres.PendingQuery<postgres.Row[]> {
  return sql`
    gone as (
      delete from live_runs l using ending e
      where l.run_id = e.run_id
      returning e.*, l.run_day, l.event_seq, l.fence, l.holder, l.claimed_at, l.started_at, l.cancel_requested_at,
                l.progress
    ),
    outcome as (
      update runs r set
        state = g.state,
        end_code = g.code,
        end_kind = g.kind,
        end_detail = left(g.detail, 2000),
        exit_code = g.exit_code,
        signal = g.signal,
        end_by = g.by,
        ended_at = date_trunc('milliseconds', db_clock()),
        fence = g.fence,
        worker_id = g.holder,
        claimed_at = g.claimed_at,
        started_at = g.started_at,
        cancel_requested_at = g.cancel_requested_at,
        output = g.output,
        progress = g.progress
      from gone g
      where r.id = g.run_id
      returning g.*, r.ended_at, r.end_detail, r.spec_digest, r.kind as run_kind, r.queue
    ),
    end_event as (
      insert into run_events (run_day, run_id, seq, type, at, data)
      select run_day, run_id, event_seq + 1, 'run.ended', ended_at,
             jsonb_strip_nulls(jsonb_build_object(
               'state', state, 'code', code, 'kind', kind, 'detail', end_detail, 'exitCode', exit_code, 'signal', signal,
               'fence', fence))
      from outcome
      returning run_id
    ),
    ended as (
      select run_id, chain, state,
             jsonb_strip_nulls(jsonb_build_object(
               'action', 'run.ended', 'object', object, 'principal', by, 'principalName', by_name,
               'state', state, 'code', code, 'cancelKind', kind, 'fence', fence,
               'exitCode', exit_code, 'signal', signal, 'worker', worker,
               'startedAt', instant_text(started_at), 'endedAt', instant_text(ended_at),
               'specDigest', spec_digest, 'outputDigest', output_digest)) as payload,
             jsonb_build_object(
               'state', state, 'code', code, 'kind', run_kind, 'queue', queue,
               'ranSeconds', extract(epoch from ended_at - started_at)) as facts
      from outcome
      where (select count(*) from end_event) >= 0            -- everything is written before the chain's lock is taken
    )`;
}
