/**
 * The one way a run ends. A statement that ends runs locks their live rows, says in a CTE named `ending` how each
 * ends, and goes on with these CTEs: live row deleted, outcome written, event appended, audit payload made. All of it
 * is the same statement, so an end is whole or it isn't.
 *
 * `ending` has: run_id uuid, state, code, kind, detail, exit_code, signal, output jsonb, output_digest, by (a TypeID),
 * by_name, object (the run's TypeID), worker (the holder's TypeID or null), chain. The rows it names are locked.
 * Afterwards `ended` has one row for each: run_id, chain, payload.
 */
import type postgres from 'postgres';
import type { Sql } from '../platform/db/db.js';

export function endingCtes(sql: Sql): postgres.PendingQuery<postgres.Row[]> {
  return sql`
    gone as (
      delete from live_runs l using ending e
      where l.run_id = e.run_id
      returning l.*
    ),
    outcome as (
      update runs r set
        state = e.state,
        end_code = e.code,
        end_kind = e.kind,
        end_detail = e.detail,
        exit_code = e.exit_code,
        signal = e.signal,
        end_by = e.by,
        ended_at = date_trunc('milliseconds', db_clock()),
        fence = g.fence,
        worker_id = g.holder,
        claimed_at = g.claimed_at,
        started_at = g.started_at,
        cancel_requested_at = g.cancel_requested_at,
        output = e.output
      from gone g join ending e on e.run_id = g.run_id
      where r.id = g.run_id
      returning r.*
    ),
    end_event as (
      insert into run_events (run_day, run_id, seq, type, at, data)
      select g.run_day, g.run_id, g.event_seq + 1, 'run.ended', o.ended_at,
             jsonb_strip_nulls(jsonb_build_object(
               'state', o.state, 'code', o.end_code, 'kind', o.end_kind, 'detail', o.end_detail,
               'exitCode', o.exit_code, 'signal', o.signal, 'fence', o.fence))
      from gone g join outcome o on o.id = g.run_id
      returning run_id
    ),
    ended as (
      select o.id as run_id, e.chain,
             jsonb_strip_nulls(jsonb_build_object(
               'action', 'run.ended', 'object', e.object, 'principal', e.by, 'principalName', e.by_name,
               'state', o.state, 'code', o.end_code, 'cancelKind', o.end_kind, 'fence', o.fence,
               'exitCode', o.exit_code, 'signal', o.signal, 'worker', e.worker,
               'startedAt', instant_text(o.started_at), 'endedAt', instant_text(o.ended_at),
               'specDigest', o.spec_digest, 'outputDigest', e.output_digest)) as payload
      from outcome o
      join ending e on e.run_id = o.id
      join end_event v on v.run_id = o.id
    )`;
}
