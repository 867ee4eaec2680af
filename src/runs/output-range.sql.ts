/** Where things are in a run's output: how long it is, and which chunk holds a byte. No content is read here. */
import type { Pool } from '../platform/db/db.js';
import type { OutputStream } from './output.sql.js';

/** What names a run's partition and rows. */
export interface OutputOf {
  readonly id: string;
  readonly createdAt: Date;
}

/** How many bytes there are by now, of one stream or of both. The length of a stored value is read without the value. */
export async function measureOutput(pool: Pool, run: OutputOf, stream: OutputStream | undefined): Promise<number> {
  const rows = await pool.run<{ bytes: number }[]>(
    (sql) => sql`
    select coalesce(sum(length(data)), 0)::bigint as bytes
    from run_output
    where run_day = (${run.createdAt}::timestamptz at time zone 'UTC')::date
      and run_id = ${run.id}
      and ${stream === undefined ? sql`true` : sql`stream = ${stream}`}`,
  );
  return rows[0]?.bytes ?? 0;
}

export interface OutputPlace {
  readonly fence: number;
  readonly batch: number;
  /** Bytes in front of this chunk. */
  readonly before: number;
}

/** The chunk that holds byte `offset`, counted from 0; `undefined` when there is no such byte. */
export async function locateOutput(
  pool: Pool,
  run: OutputOf,
  stream: OutputStream | undefined,
  offset: number,
): Promise<OutputPlace | undefined> {
  const rows = await pool.run<OutputPlace[]>(
    (sql) => sql`
    select fence, batch, upto - bytes as before
    from (
      select fence, batch, length(data) as bytes, sum(length(data)) over (order by fence, batch) as upto
      from run_output
      where run_day = (${run.createdAt}::timestamptz at time zone 'UTC')::date
        and run_id = ${run.id}
        and ${stream === undefined ? sql`true` : sql`stream = ${stream}`}
    ) chunk
    where upto > ${offset}
    order by fence, batch
    limit 1`,
  );
  return rows[0];
}
