/** Rows 10 to 12 and 15: the holder says how its run ended. */
import { encodeId } from '../kernel/ids.js';
import type { JsonValue } from '../kernel/json.js';
import { type Pool, records } from '../platform/db/db.js';
import { type EndedRun, endingCtes } from './ending.sql.js';
import type { Hold, Outcome } from './run.js';

export interface Finish extends Hold {
  readonly chain: string;
  readonly object: string;
  /** TypeID and name of the worker that held the run and writes its end. */
  readonly worker: string;
  readonly workerName: string;
  readonly outcome: Outcome;
  readonly output: JsonValue | null;
  readonly outputDigest: string | null;
}

/** An end that stands. */
export interface Written {
  readonly runId: string;
  readonly ended: EndedRun;
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
  const rows = finishes.map(({ outcome, ...rest }) => ({ ...rest, ...outcome }));
  return pool.run<Written[]>(
    (sql) => sql`
    with ending as materialized (
      select l.run_id, i.state, i.code, case i.state when 'canceled' then l.cancel_kind else i.kind end as kind,
             case i.state when 'canceled' then concat_ws('; ', l.cancel_detail, nullif(i.detail, '')) else i.detail end as detail,
             i."exitCode" as exit_code, i.signal,
             nullif(i.output, 'null'::jsonb) as output, i."outputDigest" as output_digest, i.worker as by,
             i."workerName" as by_name, i.object, i.worker, i.chain
      from jsonb_to_recordset(${records(sql, rows)}::jsonb) as i (
        "runId" uuid, fence integer, state text, code text, kind text, detail text, "exitCode" integer, signal text,
        output jsonb, "outputDigest" text, worker text, "workerName" text, object text, chain text)
      join live_runs l on l.run_id = i."runId"
      where l.holder = ${worker}                             -- still this life's
        and l.fence = i.fence                                -- and this claim's
        and (l.state = 'running' or (l.state = 'claimed' and i.state in ('failed', 'canceled')))
        and (i.state <> 'canceled' or l.cancel_requested_at is not null)
      order by l.run_id
      for update of l
    ),
    ${endingCtes(sql)},
    entry as (
      select array_agg(chain order by run_id) as chains, array_agg(payload order by run_id) as payloads,
             array_agg(run_id order by run_id) as run_ids, array_agg(facts order by run_id) as facts
      from ended
    )
    select e.run_ids[a.entry] as run_id, e.facts[a.entry] as ended
    from entry e
    cross join lateral audit_append(e.chains, e.payloads, e.run_ids) a`,
  );
}

/**
 * Of these holds, the runs whose end this worker itself wrote under this fence: ends that were written after all. An end
 * that a janitor wrote bears the same worker and fence, but another's name.
 */
export function findOwnEnds(pool: Pool, worker: string, holds: readonly Hold[]): Promise<Written[]> {
  return pool.run<Written[]>(
    (sql) => sql`
    select r.id as run_id,
           jsonb_build_object(
             'state', r.state, 'code', r.end_code, 'kind', r.kind, 'queue', r.queue,
             'ranSeconds', extract(epoch from r.ended_at - r.started_at)) as ended
    from jsonb_to_recordset(${records(sql, holds)}::jsonb) as i ("runId" uuid, fence integer)
    join runs r on r.id = i."runId"
    where r.state is not null
      and r.worker_id = ${worker}
      and r.end_by = ${encodeId('wrk', worker)}
      and r.fence = i.fence`,
  );
}
