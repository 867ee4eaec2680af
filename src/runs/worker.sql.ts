/** Worker rows: a life is registered, renewed, drained, stopped, or reaped when its lease ran out. */
import { type Pool, records, type Sql } from '../platform/db/db.js';
import type { PagePlace } from '../platform/http/page.js';
import type { Introduction, NewWorker, WorkerState, WorkerView } from './worker.js';

/**
 * A life begins, with its first lease and its entry in the installation's chain. When a person had taken the life before
 * it, of the same process, out of service, this one begins out of service too.
 *
 * outcomes  the receipt; nothing when this very id is registered already (an answer was lost)
 */
export function registerIfNew(
  pool: Pool,
  worker: NewWorker,
  ttlMs: number,
  entry: { readonly chain: string; readonly object: string },
  before: string | null = null,
  introduction: Introduction | null = null,
): Promise<{ receipt: string }[]> {
  return pool.run<{ receipt: string }[]>(
    (sql) => sql`
    with before as (
      select (select drained_by from workers where id = ${before}::uuid) as drained_by
    ),
    life as (
      insert into workers (id, name, kind, slots, queues, version, ttl_ms, lease_until, state, drained_by, signs,
                           clock_ahead_ms)
      select ${worker.id}::uuid, ${worker.name}, ${worker.kind}, ${worker.slots}, ${worker.queues as string[]}::text[],
             ${worker.version}, ${ttlMs}, db_clock() + ${ttlMs} * interval '1 millisecond',
             case when drained_by is null then 'live' else 'draining' end, drained_by,
             ${introduction?.signs ?? null}::text,
             round(${introduction?.wallMs ?? null}::float8 - extract(epoch from db_clock()) * 1000)::bigint
      from before
      on conflict do nothing
      returning *
    )
    select a.receipt
    from life l
    cross join lateral audit_append(
      array[${entry.chain}::text],
      array[jsonb_build_object('action', 'worker.joined', 'object', ${entry.object}::text, 'name', l.name,
                               'principal', ${entry.object}::text, 'principalName', l.name,
                               'kind', l.kind, 'slots', l.slots, 'version', l.version)],
      array[null::uuid]) a`,
  );
}

/**
 * Moves a life whose process is stopping to draining, then to stopped. Draining takes the lock that claim and start
 * share, so neither is in flight when it commits; who drained it before has no say any more.
 *
 * guard     the life is live or draining, and this was not said already: said again it writes nothing
 * outcomes  whether it is in that state now
 */
export async function leaveIfAlive(
  pool: Pool,
  worker: string,
  state: 'draining' | 'stopped',
  entry: { readonly chain: string; readonly object: string },
): Promise<boolean> {
  const rows = await pool.run<{ state: WorkerState }[]>(
    (sql) => sql`
    with locked as materialized (
      select id from workers
      where id = ${worker}
        and state in ('live', 'draining')
        and (state <> ${state} or drained_by is not null)    -- an answer was lost: it is said and recorded once
      for update
    ),
    life as (
      update workers w
      set state = ${state},
          drained_by = ${state === 'stopped' ? sql`w.drained_by` : sql`null`},
          ended_at = ${state === 'stopped' ? sql`db_clock()` : sql`null`}
      from locked k where w.id = k.id
      returning w.name, w.state
    )
    select l.state
    from life l
    cross join lateral audit_append(
      array[${entry.chain}::text],
      array[jsonb_build_object('action', ${`worker.${state}`}::text, 'object', ${entry.object}::text, 'name', l.name,
                               'principal', ${entry.object}::text, 'principalName', l.name)],
      array[null::uuid]) a
    union all
    select state from workers where id = ${worker} and state = ${state}`,
  );
  return rows.length > 0;
}

export interface Expired {
  readonly id: string;
  /** The database's clock when it found this, in milliseconds of the epoch. */
  readonly databaseAtMs: number;
}

/** Lives whose lease has run out, at most `limit`. Index: workers_not_over, for the rows of lives that are over stay. */
export function findExpired(pool: Pool, limit: number): Promise<Expired[]> {
  return pool.run<Expired[]>(
    (sql) => sql`
    select id, (extract(epoch from db_clock()) * 1000)::float8 as database_at_ms from workers
    where ended_at is null and lease_until < db_clock()
    order by id
    limit ${limit}`,
  );
}

export interface Reap {
  readonly id: string;
  readonly object: string;
  /** Id and name of the life that says so. */
  readonly by: string;
  readonly byName: string;
}

/**
 * Ends lives whose lease ran out; nothing else happens in this statement.
 *
 * guard     the life is live or draining, its lease is over by the database's clock
 * outcomes  one row per life that was reaped now
 * locks     worker rows by id, skipping those that others hold → the installation's chain
 */
export function reapIfExpired(pool: Pool, chain: string, reaps: readonly Reap[]): Promise<{ id: string }[]> {
  return pool.run<{ id: string }[]>(
    (sql) => sql`
    with locked as materialized (
      select w.id, i.object, i.by, i."byName" as by_name
      from jsonb_to_recordset(${records(sql, reaps)}::jsonb) as i (id uuid, object text, by text, "byName" text)
      join workers w on w.id = i.id
      where w.state in ('live', 'draining')
        and w.lease_until < db_clock()
      order by w.id
      for update of w skip locked
    ),
    reaped as (
      update workers w set state = 'lost', ended_at = db_clock()
      from locked k
      where w.id = k.id
        and w.lease_until < db_clock()                       -- read again under the lock
      returning w.id, w.name, w.lease_until, k.object, k.by, k.by_name
    ),
    entry as (
      select array_agg(${chain}::text) as chains, array_agg(null::uuid) as run_ids,
             array_agg(jsonb_build_object('action', 'worker.lost', 'object', object, 'name', name, 'principal', by,
                                          'principalName', by_name, 'leaseUntil', instant_text(lease_until)) order by id) as payloads
      from reaped
    ),
    appended as materialized (
      select count(*) as n from entry e cross join lateral audit_append(e.chains, e.payloads, e.run_ids)
    )
    select r.id from reaped r where (select n from appended) > 0`,
  );
}

/** A page of the lives that are not over and those that ended within a day, newest first. `connectedMs`: seen within. */
export function listWorkers(
  pool: Pool,
  connectedMs: number,
  after: PagePlace | undefined,
  limit: number,
): Promise<WorkerView[]> {
  return pool.run<WorkerView[]>(
    (sql) => sql`
    select ${viewOf(sql, connectedMs)}
    from workers w
    where (w.state in ('live', 'draining') or w.ended_at > db_now() - interval '1 day')
      and ${after === undefined ? sql`true` : sql`(w.started_at, w.id) < (${after.at}, ${after.id})`}
    order by w.started_at desc, w.id desc
    limit ${limit}`,
  );
}

/** A life, however long ago it ended. */
export async function findWorker(pool: Pool, connectedMs: number, id: string): Promise<WorkerView | undefined> {
  const rows = await pool.run<WorkerView[]>(
    (sql) => sql`select ${viewOf(sql, connectedMs)} from workers w where w.id = ${id}`,
  );
  return rows[0];
}

function viewOf(sql: Sql, connectedMs: number) {
  const seenAt = sql`(w.lease_until - w.ttl_ms * interval '1 millisecond')`;
  return sql`
    w.id, w.name, w.kind, w.slots, w.queues, w.version, w.state, w.drained_by, w.drains, w.lease_until, w.started_at,
    w.ended_at,
    ${seenAt} as seen_at,
    (select count(*)::integer from live_runs l where l.holder = w.id and l.state = 'running') as running,
    w.state in ('live', 'draining')
      and ${seenAt} > db_clock() - ${connectedMs} * interval '1 millisecond' as connected`;
}
