/** What a tool reports while it runs: events in the run's order, and its latest progress. Appended by its one holder. */
import type { JsonValue } from '../kernel/json.js';
import type { BytePool } from '../platform/db/byte-pool.js';
import type { Hold } from './run.js';

/** An event as a tool reported it. Types that begin with `run.` are the product's own. */
export interface RunReport {
  readonly type: string;
  /** RFC 3339: when it was read. */
  readonly at: string;
  readonly data: { [key: string]: JsonValue };
}

/**
 * Stores one batch of a run's reports as its next events, and the last progress among them (undefined: none).
 *
 * guard     the run is still running under this holder and fence, its live row locked: nothing commits after its end,
 *           and events commit in the order of their numbers
 * outcomes  whether it is held; a batch that is stored already (an answer was lost) changes nothing
 * locks     live row → events
 */
export async function appendReportsIfHeld(
  pool: BytePool,
  worker: string,
  hold: Hold,
  batch: number,
  reports: readonly RunReport[],
  progress: JsonValue | undefined,
): Promise<boolean> {
  const rows = await pool.run<{ held: boolean }>({
    name: 'append_reports_if_held',
    text: `
    with live as materialized (
      select run_id, report_batch from live_runs
      where run_id = $1
        and holder = $2                                      -- still this life's
        and fence = $3                                       -- and this claim's
        and state = 'running'                                -- not ended
      for no key update
    ),
    taken as (
      update live_runs l
      set event_seq = l.event_seq + $5::integer,
          report_batch = $4::integer,
          progress = coalesce($7::jsonb, l.progress)
      from live h
      where l.run_id = h.run_id
        and h.report_batch < $4::integer                     -- not stored before
      returning l.run_day, l.run_id, l.event_seq - $5::integer as seq_before
    ),
    stored as (
      insert into run_events (run_day, run_id, seq, type, at, data)
      select t.run_day, t.run_id, t.seq_before + r.n, r.type, r.at, r.data
      from taken t
      cross join rows from (
        jsonb_to_recordset($6::jsonb) as (type text, at timestamptz, data jsonb)
      ) with ordinality as r (type, at, data, n)
    )
    select true as held from live`,
    values: [
      hold.runId,
      worker,
      hold.fence,
      batch,
      reports.length,
      JSON.stringify(reports),
      progress === undefined ? null : JSON.stringify(progress),
    ],
  });
  return rows.length > 0;
}
