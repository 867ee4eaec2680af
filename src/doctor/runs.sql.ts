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
/** Of one window; what its runs have themselves counts. */
const MOST_ENTRIES = 10_000;

const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

interface WindowRow {
  readonly looked: number;
  readonly last: string | null;
  readonly found: readonly { readonly law: LawName; readonly id: string; readonly detail: string }[];
}

/**
 * Looks at the runs of a window, and at what stands among their ids and belongs to no run. One statement, one snapshot.
 * Index: runs_pkey, audit_entries_run, audit_entries_object; 500 runs take about 15 ms.
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
    -- Of runs that were removed in order there are more entries than anybody can look at.
    missing as materialized (
      select a.run_id, a.seq, a.chain_id, a.action
      from (
        select * from audit_entries a
        where ${isAmong(sql, 'a.run_id', window)}
        order by a.run_id desc, a.seq desc
        limit ${MOST_ENTRIES}
      ) a
      where not exists (select from picked p where p.id = a.run_id)
    ),
    -- What had ended before this may have been removed: so the last entries of removals say.
    removed_before as materialized (
      select c.chain_id, max(substring(r.claim from '"before":"([^"]*)"') collate "C") as instant
      from (select distinct chain_id from missing) c
      cross join lateral (
        select a.claim from audit_entries a
        where a.chain_id = c.chain_id
          and substring(a.claim from '"object":"([^"]*)"') = 'runs'
          and a.run_id is null
          and strpos(a.claim, '"action":"runs.removed"') > 0
        order by a.seq desc
        limit 100
      ) r
      group by c.chain_id
    ),
    found as (
      (select law, f.id, ${runDetail(sql)} as detail
       from facts f
       cross join lateral (${runLaws(sql)}) as laws (law, holds)
       where holds is not true
       limit ${MOST_TOLD})
      union all
      (select 'audit_run', m.run_id, 'entry ' || m.seq || ' of the chain ' || m.chain_id || ' is about it: ' || m.action
       from missing m
       where not exists (
         select from audit_entries e
         join removed_before b on b.chain_id = e.chain_id
         where e.run_id = m.run_id
           and strpos(e.claim, '"action":"run.ended"') > 0
           and substring(e.claim from '"endedAt":"([^"]*)"') collate "C" < b.instant)
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
