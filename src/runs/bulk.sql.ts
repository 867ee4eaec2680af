/** Runs that a request names by the hundred, as they are read. None of these takes a lock. */
import type { Pool } from '../platform/db/db.js';
import { type RunRow, runColumns, runTables } from './read.sql.js';
import type { RunInput } from './submits.js';

/** The organization's runs of these ids, without their payloads, in no order. */
export function findSummaries(pool: Pool, organizationId: string, ids: readonly string[]): Promise<RunRow[]> {
  return pool.run<RunRow[]>(
    (sql) => sql`
    select ${runColumns(sql, 'summary')}
    from ${runTables(sql)}
    where r.id = any (${ids as string[]}::uuid[])
      and r.organization_id = ${organizationId}
      and coalesce(r.state, l.state) is not null`,
  );
}

/** What an ended run was made of. */
export interface EndedInput extends Omit<RunInput, 'spec' | 'notBefore'>, Pick<RunRow, 'spec'> {
  readonly id: string;
  readonly createdAt: Date;
}

/** What the ended ones of these were made of, in their order: from the first on, as many as weigh `maxBytes`, but one. */
export function findEndedInputs(
  pool: Pool,
  organizationId: string,
  ids: readonly string[],
  maxBytes: number,
): Promise<EndedInput[]> {
  return pool.run<EndedInput[]>(
    (sql) => sql`
    select id, created_at, kind, name, queue, priority, labels, spec, timeout_ms
    from (
      select r.*, i.place, sum(octet_length(r.spec::text)) over (order by i.place) as bytes
      from unnest(${ids as string[]}::uuid[]) with ordinality as i (id, place)
      join runs r on r.id = i.id
      where r.organization_id = ${organizationId}
        and r.state is not null
    ) ended
    where place = 1 or bytes <= ${maxBytes}
    order by place`,
  );
}
