/** One look at how a run stands and at what comes behind a place. Takes no lock. */

import type { Pool } from '../platform/db/db.js';
import type { OutputOf } from './output.js';
import { dayOf } from './partitions.sql.js';
import type { Place } from './place.rules.js';
import type { Standing } from './tail.rules.js';

/** What a page of events, and one of output, may have; the first of each comes whatever its size. */
const PAGE_BYTES = 512 * 1024;
const PAGE_CHUNKS = 256;

/**
 * How a run stands, the next events behind a place, and how much output to read next: all of one instant. As nothing
 * of a run commits after its end, what this counts for an ended run is all there is, whenever it is read.
 *
 * index     the partitions' primary keys; the bytes of output aren't touched
 */
export async function findStanding(
  pool: Pool,
  run: OutputOf,
  after: Pick<Place, 'seq' | 'fence' | 'batch'>,
  maxEvents: number,
): Promise<Standing | undefined> {
  const rows = await pool.run<Standing[]>(
    (sql) => sql`
    select
      coalesce(r.fence, l.fence) as fence,
      coalesce(r.claimed_at, l.claimed_at) as claimed_at,
      coalesce(r.started_at, l.started_at) as started_at,
      r.ended_at, coalesce(r.worker_id, l.holder) as worker_id, w.name as worker_name,
      c.after_batch as cut_after, c.pos as cut_pos,
      e.events, e.more_events, o.chunks, o.more_output
    from runs r
    left join live_runs l on l.run_id = r.id
    left join workers w on w.id = coalesce(r.worker_id, l.holder)
    left join run_output_cuts c
      on c.run_day = ${dayOf(sql, run)}
      and c.run_id = r.id
      and c.fence = coalesce(r.fence, l.fence)
    cross join lateral (
      select
        coalesce(
          jsonb_agg(jsonb_build_object('seq', seq, 'type', type, 'at', instant_text(at), 'data', data) order by seq)
            filter (where is_here), '[]') as events,
        coalesce(bool_or(not is_here), false) as more_events
      from (
        select seq, type, at, data,
               row_number() over by_seq <= ${maxEvents}
                 and sum(length(data::text)) over by_seq - length(data::text) < ${PAGE_BYTES} as is_here
        from (
          select seq, type, at, data from run_events
          where run_day = ${dayOf(sql, run)}
            and run_id = ${run.id}
            and seq > ${after.seq}
          order by seq
          limit ${maxEvents + 1}
        ) event
        window by_seq as (order by seq)
      ) sized
    ) e
    cross join lateral (
      select count(*) filter (where is_here)::integer as chunks,
             coalesce(bool_or(not is_here), false) as more_output
      from (
        select row_number() over by_batch <= ${PAGE_CHUNKS}
                 and pos - first_value(pos) over by_batch < ${PAGE_BYTES} as is_here
        from (
          select fence, batch, pos from run_output
          where run_day = ${dayOf(sql, run)}
            and run_id = ${run.id}
            and (fence, batch) > (${after.fence}, ${after.batch})
          order by fence, batch
          limit ${PAGE_CHUNKS + 1}
        ) chunk
        window by_batch as (order by fence, batch)
      ) sized
    ) o
    where r.id = ${run.id}
      and coalesce(r.state, l.state) is not null`,
  );
  return rows[0];
}
