/**
 * What makes a run claimable and a worker its claimer: each predicate once, for the claim itself and for who asks why a
 * run isn't taken. In all of them `l` is a run's live row, `w` a worker's row, and `s` has a queue.
 */
import type postgres from 'postgres';
import type { Sql } from '../platform/db/db.js';

export type Fragment = postgres.PendingQuery<postgres.Row[]>;

export function isPending(sql: Sql): Fragment {
  return sql`l.state = 'pending'`;
}

/** What lies in the future carries its instant until a pulse of some worker finds that it has come. */
export function isDue(sql: Sql): Fragment {
  return sql`l.not_before is null`;
}

/** Both, as the column that the index of claims goes by (a generated one). */
export function isClaimable(sql: Sql): Fragment {
  return sql`l.claimable`;
}

export function isInQueue(sql: Sql): Fragment {
  return sql`l.queue = s.queue`;
}

/** Nobody paused the queue. */
export function isOpen(sql: Sql): Fragment {
  return sql`not exists (select from paused_queues p where p.name = s.queue)`;
}

/** Neither draining nor over. */
export function isLive(sql: Sql): Fragment {
  return sql`w.state = 'live'`;
}

export function holdsLease(sql: Sql): Fragment {
  return sql`w.lease_until > db_clock()`;
}

/** A worker's row says of itself what its claims go by. */
export function serves(sql: Sql): Fragment {
  return sql`w.queues && array[s.queue, '*']`;
}

/** Who goes first, as the two columns of live_runs_order behind the queue: ascending, and no two runs have them equal. */
export function claimOrder(sql: Sql): Fragment {
  return sql`-l.priority, l.position`;
}

/** `name (queue)`, recursive: every queue with something due, by index hops, and a null at the end. */
export function dueQueuesCte(sql: Sql): Fragment {
  return sql`
    name (queue) as (                                        -- every queue with something due, by index hops
      (select l.queue from live_runs l where ${isClaimable(sql)} order by l.queue limit 1)
      union all
      select (select l.queue from live_runs l
              where ${isClaimable(sql)} and l.queue > n.queue
              order by l.queue limit 1)
      from name n where n.queue is not null
    )`;
}
