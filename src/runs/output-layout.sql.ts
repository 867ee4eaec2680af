/** How long a run's output is, what is missing of it, and which chunk holds a byte. No content is read here. */
import type { Pool } from '../platform/db/db.js';
import type { FenceOutput, OutputOf, OutputStream } from './output.js';
import { dayOf } from './partitions.sql.js';

/**
 * What every fence wrote, in order. `fence` is the run's latest. Index: two probes per fence, and the length of a stored
 * value is read without the value.
 */
export function outputByFence(
  pool: Pool,
  run: OutputOf & { readonly fence: number },
  stream: OutputStream | undefined,
): Promise<FenceOutput[]> {
  return pool.run<FenceOutput[]>(
    (sql) => sql`
    select f.fence, coalesce(last.end, 0) as "end", coalesce(whole.end, 0) as whole_end,
           case when c.run_id is not null then jsonb_build_object(
             'afterBatch', c.after_batch, 'throughBatch', c.through_batch, 'pos', c.pos, 'stdoutPos', c.stdout_pos,
             'bytes', c.bytes, 'stdoutBytes', c.stdout_bytes) end as cut
    from generate_series(1, ${run.fence}::integer) as f (fence)
    left join lateral (
      select ${stream === undefined ? sql`o.pos` : sql`o.stream_pos`} + length(o.data) as "end"
      from run_output o
      where o.run_day = ${dayOf(sql, run)}
        and o.run_id = ${run.id}
        and o.fence = f.fence
        and ${stream === undefined ? sql`true` : sql`o.stream = ${stream}`}
      order by o.batch desc
      limit 1
    ) last on true
    left join lateral (
      select o.pos + length(o.data) as "end"
      from run_output o
      where o.run_day = ${dayOf(sql, run)}
        and o.run_id = ${run.id}
        and o.fence = f.fence
      order by o.batch desc
      limit 1
    ) whole on true
    left join run_output_cuts c
      on c.run_day = ${dayOf(sql, run)}
      and c.run_id = ${run.id}
      and c.fence = f.fence
    order by f.fence`,
  );
}

/** The chunk under a fence that holds the byte at `pos` of both streams or of the one; `undefined` when none does. */
export async function chunkAt(
  pool: Pool,
  run: OutputOf,
  fence: number,
  stream: OutputStream | undefined,
  pos: number,
): Promise<number | undefined> {
  const rows = await pool.run<{ batch: number }[]>(
    (sql) => sql`
    select batch
    from run_output
    where run_day = ${dayOf(sql, run)}
      and run_id = ${run.id}
      and fence = ${fence}
      and ${stream === undefined ? sql`pos <= ${pos}` : sql`stream = ${stream} and stream_pos <= ${pos}`}
    order by batch desc
    limit 1`,
  );
  return rows[0]?.batch;
}
