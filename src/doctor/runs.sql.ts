/** Looks at a window of runs: everything that is stored about each must obey the laws of a run. */
import type postgres from 'postgres';
import { encodeId } from '../kernel/ids.js';
import type { Pool, Sql } from '../platform/db/db.js';
import type { LawName, Look } from './laws.js';
import { factsCte, holdersCte, runDetail, runLaws } from './run-laws.sql.js';

/** Some runs by their ids, or the `limit` newest before one. */
export type RunWindow =
  | { readonly ids: readonly string[] }
  | { readonly before?: string | undefined; readonly limit: number };

/** More than anybody reads of one window; the number of them all is told. */
const MOST_TOLD = 100;

const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

interface WindowRow {
  readonly looked: number;
  readonly last: string | null;
  readonly found: readonly { readonly law: LawName; readonly id: string; readonly detail: string }[];
}

/**
 * Looks at the runs of a window, and at what stands among their ids and belongs to no run. One statement, one snapshot.
 * Index: runs_pkey; 500 runs take about 15 ms.
 */
export async function lookAtRuns(pool: Pick<Pool, 'run'>, window: RunWindow): Promise<Look<string>> {
  const [row] = await pool.run<WindowRow[]>(
    (sql) => sql`
    with picked as materialized (
      select id, organization_id, kind, name, queue, priority, spec_digest, not_before, origin, principal, parent_id,
             root_id, created_at, state, end_code, end_kind, end_detail, exit_code, signal, end_by, ended_at, fence, worker_id, claimed_at, started_at,
             cancel_requested_at, (created_at at time zone 'UTC')::date as run_day
      from runs r
      where ${isPicked(sql, 'r.id', window)}
      order by id desc
      limit ${'ids' in window ? window.ids.length : window.limit}
    ),
    ${holdersCte(sql)},
    ${factsCte(sql)},
    found as (
      (select law, f.id, ${runDetail(sql)} as detail
       from facts f
       cross join lateral (${runLaws(sql)}) as laws (law, holds)
       where holds is not true
       limit ${MOST_TOLD})
      union all
      (select 'audit_run', a.run_id, 'entry ' || a.seq || ' of the chain ' || a.chain_id || ' is about it: ' || a.action
       from audit_entries a
       where ${isAmong(sql, 'a.run_id', window)}
         and not exists (select from picked p where p.id = a.run_id)
       limit ${MOST_TOLD})
      union all
      (select 'one_standing', l.run_id, 'there is a live row of it, and no record'
       from live_runs l
       where ${isAmong(sql, 'l.run_id', window)}
         and not exists (select from picked p where p.id = l.run_id)
       limit ${MOST_TOLD})
    )
    select (select count(*) from picked) as looked,
           (select id from picked order by id limit 1) as last,
           coalesce((select jsonb_agg(jsonb_build_object('law', law, 'id', id, 'detail', coalesce(detail, '')))
                     from found), '[]') as found`,
  );
  if (!row) throw new Error('a look at runs returned no row');
  const isFull = 'limit' in window && row.looked === window.limit;
  return {
    violations: row.found.map(({ law, id, detail }) => ({ law, object: encodeId('run', id), detail })),
    looked: row.looked,
    next: isFull && row.last !== null ? row.last : undefined,
  };
}

/** The id of the next run behind a place, in the order of the windows: for who has to go on behind it. Index: runs_pkey. */
export async function nextRun(pool: Pick<Pool, 'run'>, before: string | undefined): Promise<string | undefined> {
  const rows = await pool.run<{ id: string }[]>(
    (sql) => sql`select id from runs r where ${isPicked(sql, 'r.id', { before, limit: 1 })} order by id desc limit 1`,
  );
  return rows[0]?.id;
}

function isPicked(sql: Sql, column: string, window: RunWindow): postgres.PendingQuery<postgres.Row[]> {
  if ('ids' in window) return sql`${sql(column)} = any (${window.ids as string[]}::uuid[])`;
  // With a bound on either side the planner takes the index, however many entries there are.
  return window.before === undefined ? sql`${sql(column)} <= ${LAST_ID}` : sql`${sql(column)} < ${window.before}`;
}

/** Between the runs of a window as well, where there is no other run; behind the last of all runs when the window isn't full. */
function isAmong(sql: Sql, column: string, window: RunWindow): postgres.PendingQuery<postgres.Row[]> {
  if ('ids' in window) return isPicked(sql, column, window);
  return sql`
    ${isPicked(sql, column, window)}
    and ${sql(column)} >= case when (select count(*) from picked) < ${window.limit}
                               then ${FIRST_ID}::uuid
                               else (select id from picked order by id limit 1) end`;
}
