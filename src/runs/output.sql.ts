/** Output of a run: appended by its one holder, read in the order of arrival. */
import type { Pool } from '../platform/db/db.js';
import type { Hold } from './run.js';

export type OutputStream = 1 | 2;

export interface OutputChunk {
  readonly stream: OutputStream;
  readonly at: Date;
  readonly data: Buffer;
}

/**
 * Stores one batch of a run's output: one chunk of one stream.
 *
 * guard     the run is still running under this holder and fence, its live row locked: nothing commits after its end
 * outcomes  whether it is held; a batch that is stored already (an answer was lost) changes nothing
 * locks     live row (key share)
 */
export async function appendOutputIfHeld(
  pool: Pool,
  worker: string,
  hold: Hold,
  batch: number,
  chunk: OutputChunk,
): Promise<boolean> {
  const rows = await pool.run<{ held: boolean }[]>(
    (sql) => sql`
    with live as materialized (
      select run_day, run_id, fence from live_runs
      where run_id = ${hold.runId}
        and holder = ${worker}
        and fence = ${hold.fence}
        and state = 'running'
      for key share
    ),
    stored as (
      insert into run_output (run_day, run_id, fence, batch, stream, at, data)
      select run_day, run_id, fence, ${batch}, ${chunk.stream}, ${chunk.at}, ${chunk.data} from live
      on conflict do nothing
    )
    select true as held from live`,
  );
  return rows.length > 0;
}

export interface StoredChunk {
  readonly fence: number;
  readonly batch: number;
  readonly stream: OutputStream;
  readonly at: Date;
  readonly data: Buffer;
}

/** The next chunks of a run's output behind a position, at most `limit`. Index: the partition's primary key. */
export function readOutput(
  pool: Pool,
  run: { readonly id: string; readonly createdAt: Date },
  after: { readonly fence: number; readonly batch: number },
  stream: OutputStream | undefined,
  limit: number,
): Promise<StoredChunk[]> {
  return pool.run<StoredChunk[]>(
    (sql) => sql`
    select fence, batch, stream, at, data
    from run_output
    where run_day = (${run.createdAt}::timestamptz at time zone 'UTC')::date
      and run_id = ${run.id}
      and (fence, batch) > (${after.fence}, ${after.batch})
      and ${stream === undefined ? sql`true` : sql`stream = ${stream}`}
    order by fence, batch
    limit ${limit}`,
  );
}
