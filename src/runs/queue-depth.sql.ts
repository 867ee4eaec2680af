/** How much waits in which queue: an answer whose cost doesn't grow with what waits. */
import type { Pool } from '../platform/db/db.js';

/** Up to here a queue's runs are counted one by one, while they are not more than `COUNTED_IN_ALL` together. */
export const COUNTED = 1_000;
export const COUNTED_IN_ALL = 20_000;
/** Names that are looked for beyond those that were asked for. */
export const FOUND_AT_MOST = 1_000;
/** Of very many queues only so many are counted and told. */
export const TOLD_AT_MOST = 100;
/** The longest run in line is looked for at so many priorities of a queue, from the lowest on: those starve first. */
const PRIORITIES = 16;
/** Read, here and there, to estimate the depth of long queues. */
const SAMPLED_PAGES = 200;

export interface QueueDepth {
  readonly queue: string;
  /** Pending and due; from `COUNTED` on (200 where a hundred queues are told) an estimate, never less than that. */
  readonly depth: number;
  readonly isEstimate: boolean;
  /** For how long the first in line has been due, at the priority where that is longest; 0 when nothing waits. */
  readonly oldestSeconds: number;
  /** Since when that is; null when nothing waits. */
  readonly oldestAt: Date | null;
  readonly paused: boolean;
  /** The same in each row: how many queues with something due, out of `FOUND_AT_MOST`, are not among the rows. */
  readonly untold: number;
}

/**
 * What waits in the queues of these names, and with `others` in those too that are found to have something due; in all
 * up to `TOLD_AT_MOST`.
 *
 * index     live_runs_order: a hop per queue, a bounded range of each, a hop per priority; no scan of a table
 * size      at most `FOUND_AT_MOST` hops, `COUNTED_IN_ALL` entries, `TOLD_AT_MOST` × 2 × `PRIORITIES` hops, `SAMPLED_PAGES`
 *           pages
 */
export function queueDepths(pool: Pool, names: readonly string[], others = true): Promise<QueueDepth[]> {
  return pool.run<QueueDepth[]>(
    (sql) => sql`
    with recursive found (queue, n) as (                     -- every queue with something due, by index hops
      (select queue, 1 from live_runs
       where ${others} and claimable
       order by queue limit 1)
      union all
      select next.queue, f.n + 1
      from found f
      cross join lateral (
        select l.queue from live_runs l
        where l.claimable and l.queue > f.queue
        order by l.queue limit 1
      ) next
      where f.n < ${FOUND_AT_MOST}
    ),
    named as materialized (
      select queue, 0 as n from unnest(${names as string[]}::text[]) as q (queue)
      union all
      select queue, n from found where queue <> all (${names as string[]}::text[])
    ),
    told as materialized (select queue from named order by n limit ${TOLD_AT_MOST}),
    bound as materialized (
      select least(${COUNTED}::integer, ${COUNTED_IN_ALL}::integer / greatest(count(*), 1))::integer as each from told
    ),
    counted as materialized (
      select t.queue, (
        select count(*)::integer from (
          select from live_runs l
          where l.claimable
            and l.queue between t.queue and t.queue          -- not '=', which would make the order mean nothing
          order by l.queue                                   -- and any plan right; this one may read the index alone
          limit (select each from bound)
        ) entry
      ) as n
      from told t
    ),
    sampling as materialized (
      select least(100, 100.0 * ${SAMPLED_PAGES} * current_setting('block_size')::integer
                        / greatest(pg_relation_size('live_runs'), 1)) as percent
    ),
    sample as materialized (                                 -- not read unless a queue is that long
      select queue, count(*) as n
      from live_runs tablesample system ((select percent from sampling))
      where claimable
      group by queue
    )
    select c.queue,
           case when c.n < (select each from bound) then c.n
                else greatest(c.n, round((select s.n from sample s where s.queue = c.queue)
                                         * 100 / (select percent from sampling)))
           end::float8 as depth,
           c.n = (select each from bound) as is_estimate,
           greatest(0, extract(epoch from db_now() - line.due_at))::float8 as oldest_seconds,
           line.due_at as oldest_at,
           exists (select from paused_queues p where p.name = c.queue) as paused,
           ((select count(*) from named) - (select count(*) from told))::integer as untold
    from counted c
    cross join lateral (
      with recursive level (rank, n) as (                    -- the priorities in use, negated, the lowest first
        (select -l.priority, 1 from live_runs l
         where l.claimable and l.queue = c.queue
         order by -l.priority desc, l.position desc limit 1)
        union all
        select next.rank, v.n + 1
        from level v
        cross join lateral (
          select -l.priority as rank from live_runs l
          where l.claimable and l.queue = c.queue and -l.priority < v.rank
          order by -l.priority desc, l.position desc limit 1
        ) next
        where v.n < ${PRIORITIES}
      )
      select min(greatest(r.created_at, r.not_before)) as due_at
      from level v
      cross join lateral (
        select l.run_id from live_runs l
        where l.claimable and l.queue = c.queue and -l.priority = v.rank
        order by -l.priority, l.position limit 1
      ) first
      join runs r on r.id = first.run_id
    ) line`,
  );
}
