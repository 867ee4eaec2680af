/** Output of a run: appended by its one holder, dropped in the middle when it grows too long, read in order of arrival. */
import type { BytePool } from '../platform/db/byte-pool.js';
import type { Pool, Sql } from '../platform/db/db.js';
import type { OutputBatch, OutputCut, OutputOf, OutputPlace, OutputStream, StoredChunk } from './output.js';
import { dayOf } from './partitions.sql.js';
import type { Hold } from './run.js';

/**
 * Stores batches of a run's output, whose bytes stand one behind the other in `data`.
 *
 * guard     the run is still running under this holder and fence, its live row locked: nothing commits after its end
 * outcomes  whether it is held; a batch that is stored already (an answer was lost) changes nothing
 * locks     live row (key share)
 * size      the bytes of all batches are one parameter, which the driver sends as it is
 */
export async function appendOutputIfHeld(
  pool: BytePool,
  worker: string,
  hold: Hold,
  batches: readonly OutputBatch[],
  data: Buffer,
): Promise<boolean> {
  let from = 1;
  const places = batches.map((batch) => {
    const place = { ...batch, from };
    from += batch.bytes;
    return place;
  });
  const rows = await pool.run<{ held: boolean }>({
    name: 'append_output_if_held',
    text: `
    with live as materialized (
      select run_day, run_id, fence from live_runs
      where run_id = $1
        and holder = $2
        and fence = $3
        and state = 'running'
      for key share
    ),
    stored as (
      insert into run_output (run_day, run_id, fence, batch, stream, at, pos, stream_pos, data)
      select l.run_day, l.run_id, l.fence, b.batch, b.stream, b.at, b.pos, b."streamPos",
             substring($5::bytea from b."from" for b.bytes)
      from live l
      cross join jsonb_to_recordset($4::jsonb) as b (
        batch integer, stream smallint, at timestamptz, pos bigint, "streamPos" bigint, "from" integer, bytes integer)
      on conflict do nothing
    )
    select true as held from live`,
    values: [hold.runId, worker, hold.fence, JSON.stringify(places), data],
  });
  return rows.length > 0;
}

/**
 * Drops the batches of a cut and remembers what is missing; of an earlier, smaller cut only the rest is still there.
 *
 * guard     the run is still running under this holder and fence, its live row locked
 * outcomes  whether it is held; the same cut again changes nothing
 * locks     live row (key share)
 */
export async function dropOutputIfHeld(pool: BytePool, worker: string, hold: Hold, cut: OutputCut): Promise<boolean> {
  const rows = await pool.run<{ held: boolean }>({
    name: 'drop_output_if_held',
    text: `
    with live as materialized (
      select run_day, run_id, fence from live_runs
      where run_id = $1
        and holder = $2
        and fence = $3
        and state = 'running'
      for key share
    ),
    dropped as (
      delete from run_output o using live l
      where (o.run_day, o.run_id, o.fence) = (l.run_day, l.run_id, l.fence)
        and o.batch > $4
        and o.batch <= $5
    ),
    cut as (
      insert into run_output_cuts as c
             (run_day, run_id, fence, after_batch, through_batch, pos, stdout_pos, bytes, stdout_bytes)
      select run_day, run_id, fence, $4::integer, $5::integer, $6::bigint, $7::bigint, $8::bigint, $9::bigint from live
      on conflict (run_day, run_id, fence) do update
      set through_batch = excluded.through_batch, bytes = excluded.bytes, stdout_bytes = excluded.stdout_bytes
      where c.through_batch < excluded.through_batch         -- a cut only grows
    )
    select true as held from live`,
    values: [
      hold.runId,
      worker,
      hold.fence,
      cut.afterBatch,
      cut.throughBatch,
      cut.pos,
      cut.stdoutPos,
      cut.bytes,
      cut.stdoutBytes,
    ],
  });
  return rows.length > 0;
}

/** How much is read at a time: chunks may be large, or very many. The first comes whatever its size. */
export interface PageSize {
  readonly chunks: number;
  readonly bytes: number;
}

/** The next chunks behind a place, in order of arrival. Index: the partition's primary key. */
export function readOutput(
  pool: Pool,
  run: OutputOf,
  after: OutputPlace,
  stream: OutputStream | undefined,
  page: PageSize,
): Promise<StoredChunk[]> {
  return pool.run<StoredChunk[]>(
    (sql) => sql`
    select fence, batch, stream, at, pos, stream_pos, data
    from (
      select *, ${positionIn(sql, stream)} - first_value(${positionIn(sql, stream)}) over (order by fence, batch) as ahead
      from (
        select * from run_output
        where run_day = ${dayOf(sql, run)}
          and run_id = ${run.id}
          and (fence, batch) > (${after.fence}, ${after.batch})
          and ${stream === undefined ? sql`true` : sql`stream = ${stream}`}
        order by fence, batch
        limit ${page.chunks}
      ) chunk
    ) sized
    where ahead < ${page.bytes}
    order by fence, batch`,
  );
}

/** The chunks in front of a place, the nearest first. */
export function readOutputBackwards(
  pool: Pool,
  run: OutputOf,
  before: OutputPlace,
  stream: OutputStream | undefined,
  page: PageSize,
): Promise<StoredChunk[]> {
  return pool.run<StoredChunk[]>(
    (sql) => sql`
    select fence, batch, stream, at, pos, stream_pos, data
    from (
      select *, first_value(${positionIn(sql, stream)}) over (order by fence desc, batch desc) - ${positionIn(sql, stream)}
                  as ahead
      from (
        select * from run_output
        where run_day = ${dayOf(sql, run)}
          and run_id = ${run.id}
          and (fence, batch) < (${before.fence}, ${before.batch})
          and ${stream === undefined ? sql`true` : sql`stream = ${stream}`}
        order by fence desc, batch desc
        limit ${page.chunks}
      ) chunk
    ) sized
    where ahead < ${page.bytes}
    order by fence desc, batch desc`,
  );
}

function positionIn(sql: Sql, stream: OutputStream | undefined) {
  return stream === undefined ? sql`pos` : sql`stream_pos`;
}
