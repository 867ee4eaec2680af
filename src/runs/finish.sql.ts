/** Rows 10 to 12 and 15: the holder says how its run ended. */
import { encodeId } from '../kernel/ids.js';
import type { JsonValue } from '../kernel/json.js';
import { listed, type Pool, records } from '../platform/db/db.js';
import { type EndedRun, endingCtes, liveColumns } from './ending.sql.js';
import type { Hold, Outcome } from './run.js';

export interface Finish extends Hold {
  readonly chain: string;
  readonly object: string;
  readonly outcome: Outcome;
  readonly output: JsonValue | null;
  readonly outputDigest: string | null;
}

/** An end that stands. */
export interface Written extends EndedRun {
  readonly runId: string;
}

/**
 * Ends runs under their holder.
 *
 * guard     run running, or claimed when the end is a refusal (failed) or a cancellation, under this holder and this
 *           fence; an end `canceled` needs the cancel request; no lease check: the truth wins until it was settled
 * outcomes  one row per run that ended now; what is missing is no longer ours, or ended by a try whose answer was
 *           lost: see `findOwnEnds`
 * locks     live rows by id → runs → events → chains
 */
export function finishIfHeld(pool: Pool, worker: string, finishes: readonly Finish[]): Promise<Written[]> {
  const by = encodeId('wrk', worker);
  const of = <T extends string | number>(value: (finish: Finish) => T) => listed(finishes.map(value));
  return pool.run<Written[]>(
    (sql) => sql`
    with ending as materialized (
      select l.*, i.state, i.code, case i.state when 'canceled' then l.cancel_kind else i.said ->> 'kind' end as kind,
             case i.state when 'canceled' then concat_ws('; ', l.cancel_detail, i.said ->> 'detail')
                          else coalesce(i.said ->> 'detail', '') end as detail,
             (i.said ->> 'exitCode')::integer as exit_code, i.said ->> 'signal' as signal, i.said -> 'output' as output,
             i.said ->> 'outputDigest' as output_digest, ${by} as by,
             (select name from workers where id = ${worker}) as by_name, i.object, ${by} as worker, i.chain
      from (
        select * from rows from (
          unnest(
            string_to_array(${of(({ runId }) => runId)}, ',')::uuid[],
            string_to_array(${of(({ fence }) => fence)}, ',')::integer[],
            string_to_array(${of(({ chain }) => chain)}, ','),
            string_to_array(${of(({ object }) => object)}, ','),
            string_to_array(${of(({ outcome }) => outcome.state)}, ','),
            string_to_array(${of(({ outcome }) => outcome.code)}, ',')),
          jsonb_array_elements(${records(sql, finishes.map(saidOf))}::jsonb)
        ) as i (run_id, fence, chain, object, state, code, said)
        order by run_id
      ) i
      -- One look-up each, and by the run (what "is true" is no condition for an index): joined as sets, or by the holder,
      -- the planner may loop over 200 × 200 of them.
      cross join lateral (
        select ${liveColumns(sql)}, l.cancel_kind, l.cancel_detail from live_runs l
        where l.run_id = i.run_id
          and (l.holder = ${worker}) is true                 -- still this life's
          and l.fence = i.fence                              -- and this claim's
          and (l.state = 'running' or (l.state = 'claimed' and i.state in ('failed', 'canceled')))
          and (i.state <> 'canceled' or l.cancel_requested_at is not null)
        for update
      ) l
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
    select run_id, state, code, run_kind as kind, queue, ran_seconds from ended where (select n from appended) > 0`,
  );
}

/** What there is to say of an end beside its state and code: null when that is all, as with most. */
function saidOf({ outcome: { kind, detail, exitCode, signal }, output, outputDigest }: Finish): object | null {
  const said = [
    ['kind', kind],
    ['detail', detail || null],
    ['exitCode', exitCode],
    ['signal', signal],
    ['output', output],
    ['outputDigest', outputDigest],
  ].filter(([, value]) => value !== null);
  return said.length === 0 ? null : Object.fromEntries(said);
}

/**
 * Of these holds, the runs whose end this worker itself wrote under this fence: ends that were written after all. An end
 * that a janitor wrote bears the same worker and fence, but another's name.
 */
export function findOwnEnds(pool: Pool, worker: string, holds: readonly Hold[]): Promise<Written[]> {
  return pool.run<Written[]>(
    (sql) => sql`
    select r.id as run_id, r.state, r.end_code as code, r.kind, r.queue,
           extract(epoch from r.ended_at - r.started_at)::float8 as ran_seconds
    from jsonb_to_recordset(${records(sql, holds)}::jsonb) as i ("runId" uuid, fence integer)
    join runs r on r.id = i."runId"
    where r.state is not null
      and r.worker_id = ${worker}
      and r.end_by = ${encodeId('wrk', worker)}
      and r.fence = i.fence`,
  );
}
