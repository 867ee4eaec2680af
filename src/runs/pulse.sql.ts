/** What a life looks at between its claims: what there is to do, what it holds; and what falls due is made claimable. */
import type { Pool } from '../platform/db/db.js';
import { type ServedQueues, servedCte } from './claim.sql.js';
import type { Hold, Kind, LiveState } from './run.js';

/**
 * Makes runs whose time has come claimable, at most `limit`, those that have waited longest. Returns how many.
 *
 * guard     run pending, its instant reached by the database's clock
 * index     live_runs_due
 */
export async function promoteDue(pool: Pool, limit: number): Promise<number> {
  const rows = await pool.run<{ runId: string }[]>(
    (sql) => sql`
    with due as (
      select run_id from live_runs
      where state = 'pending'
        and not_before <= db_now()
      order by not_before
      limit ${limit}
      for update skip locked
    )
    update live_runs l set not_before = null from due where l.run_id = due.run_id
    returning l.run_id`,
  );
  return rows.length;
}

/** A run that the database says a life holds. */
export interface Holding extends Hold {
  readonly organizationId: string;
  /** Null of a run that an earlier version made. */
  readonly kind: Kind | null;
  readonly state: LiveState;
}

/** All runs that the database says this life holds. */
export function holdingsOf(pool: Pool, worker: string): Promise<Holding[]> {
  return pool.run<Holding[]>(
    (sql) => sql`select run_id, fence, organization_id, kind, state from live_runs where holder = ${worker}`,
  );
}

/** Whether this life is out of service: its process is stopping, or a person drained it. */
export async function isDraining(pool: Pool, worker: string): Promise<boolean> {
  const rows = await pool.run<object[]>((sql) => sql`select from workers where id = ${worker} and state = 'draining'`);
  return rows.length > 0;
}

export interface Pulse {
  /** This life is out of service, or over: it would claim in vain. */
  readonly draining: boolean;
  /** Something pending and due waits in one of the queues that are not paused. */
  readonly claimable: boolean;
  /** Runs that this life holds. */
  readonly held: number;
  /** Until the next run becomes due: no more than 0 when one is; null when none waits for its instant. */
  readonly dueInMs: number | null;
  /** Runs of this life with a cancel request. */
  readonly canceled: string[];
  /** Some worker's lease is over and nobody has reaped it yet. */
  readonly leaseOver: boolean;
  /** Some live run's holder is a life that is over. */
  readonly orphaned: boolean;
  /** Some run has been executing for longer than any may. */
  readonly overdue: boolean;
  /** This server takes writes. */
  readonly writable: boolean;
}

/** One cheap look that answers for all idle loops of a replica together. */
export async function pulse(
  pool: Pool,
  worker: string,
  queues: ServedQueues,
  maxRunDurationMs: number,
): Promise<Pulse> {
  const rows = await pool.run<Pulse[]>(
    (sql) => sql`
    with recursive ${servedCte(sql, queues)}
    select
      not exists (select from workers where id = ${worker} and state = 'live') as draining,
      exists (
        select from served s
        where not exists (select from paused_queues p where p.name = s.queue)
          and exists (select from live_runs l
                      where l.claimable and l.queue = s.queue)
      ) as claimable,
      (select extract(epoch from not_before - db_now())::float8 * 1000 from live_runs
       where state = 'pending' and not_before is not null
       order by not_before limit 1) as due_in_ms,
      exists (select from workers where ended_at is null and lease_until < db_clock()) as lease_over,
      not pg_is_in_recovery() and current_setting('transaction_read_only') = 'off' as writable,
      holding.*
    from (
      select count(*) filter (where l.holder = ${worker})::integer as held,
             coalesce(array_agg(l.run_id) filter (where l.holder = ${worker} and l.cancel_requested_at is not null), '{}')
               as canceled,
             coalesce(bool_or(w.state in ('lost', 'stopped')), false) as orphaned,
             coalesce(bool_or(l.state = 'running' and l.cancel_requested_at is null
                              and l.started_at < db_now() - ${maxRunDurationMs} * interval '1 millisecond'), false) as overdue
      from live_runs l join workers w on w.id = l.holder
      where l.holder is not null                             -- one walk: entries of runs that ended are on the way, too
    ) holding`,
  );
  const row = rows[0];
  if (!row) throw new Error('the pulse returned no row');
  return row;
}
