/** Why a run isn't taken, as the database knows it: the predicates of a claim, asked without claiming anything. */
import type { Pool } from '../platform/db/db.js';
import {
  claimOrder,
  dueQueuesCte,
  holdsLease,
  isClaimable,
  isDue,
  isInQueue,
  isLive,
  isOpen,
  isPending,
  serves,
} from './claimable.sql.js';
import { type Standing, TOLD_QUEUES, TOLD_RUNS, TOLD_WORKERS } from './why.js';

/** What goes first is counted up to here, and up to the slots of the workers where those are more. */
const COUNTED = 100;

/**
 * How the organization's run of this id stands; `undefined` when there is none. About workers it says nothing of a run
 * that will never be pending again.
 *
 * locks     none: what is claimed meanwhile may be told as waiting
 * index     live_runs_order, by the same ranges as a claim, each counted no further than `bound`; live_runs_holder, per
 *           worker; workers_not_over. A backlog of any length costs what `bound` entries cost, per set of queues that
 *           some worker serves
 */
export async function lookWhy(pool: Pool, organizationId: string, id: string): Promise<Standing | undefined> {
  const rows = await pool.run<Standing[]>(
    (sql) => sql`
    with recursive run as materialized (
      select r.id, r.queue, coalesce(r.state, l.state) as state,
             coalesce(${isPending(sql)}, false) as is_pending,
             ${isDue(sql)} as is_due,
             ${isOpen(sql)} as is_open,
             r.state is null and l.state not in ('claimed', 'running') as is_waiting,
             l.priority, l.position, l.not_before, l.cancel_requested_at,
             r.end_detail as "end", r.end_code, r.ended_at,
             w.name as holder, l.claimed_at, l.started_at, least(w.lease_until, w.ended_at) as holder_lease_until,
             coalesce(w.ended_at is null and ${holdsLease(sql)}, false) as is_holder_leased,
             paused.at as paused_at, paused.by_name as paused_by, paused.reason as pause_reason
      from runs r
      cross join lateral (select r.queue) as s
      left join live_runs l on l.run_id = r.id
      left join workers w on w.id = l.holder
      left join paused_queues paused on paused.name = r.queue
      where r.id = ${id}
        and r.organization_id = ${organizationId}
        and coalesce(r.state, l.state) is not null
    ),
    worker as materialized (                                 -- connected: with slots, and a lease
      select w.id, w.name, w.queues, w.slots, w.drained_by,
             ${isLive(sql)} as is_live,
             ${serves(sql)} as serves,
             (select count(*)::integer from live_runs l where l.holder = w.id) as held
      from run s
      cross join workers w
      where s.is_waiting
        and w.ended_at is null
        and w.slots > 0
        and ${holdsLease(sql)}
    ),
    claimer as materialized (select *, slots - held as free from worker where serves and is_live),
    bound as materialized (select greatest(max(free), ${COUNTED}) as n from claimer),
    offer as materialized (                                  -- workers of the same queues see the same in front of them
      select queues, max(free) as free from claimer group by queues
    ),
    ${dueQueuesCte(sql)},
    standing as materialized (
      select o.queues, o.free, (
        select count(*)::integer from (
          select from run
          cross join lateral (
            select n.queue from name n where '*' = any (o.queues) and n.queue is not null
            union all
            select q.name from unnest(o.queues) as q (name) where '*' <> all (o.queues)
          ) s
          cross join lateral (
            select from live_runs l
            where ${isClaimable(sql)}
              and ${isInQueue(sql)}
              and (${claimOrder(sql)}) < (-run.priority, run.position)
            order by ${claimOrder(sql)}
            limit (select n from bound)
          ) first
          where s.queue = run.queue                          -- paused or not: whether it is, is_open tells
             or ${isOpen(sql)}
          limit (select n from bound)
        ) entry
      ) as ahead
      from offer o
    )
    select run.*, coalesce(best.ahead, 0) as ahead, (select n from bound) as bound, n.*,
           exists (select from claimer c join standing using (queues) where standing.ahead < c.free) as is_next,
           array(select distinct q.name from worker w, unnest(w.queues) as q (name) order by 1 limit ${TOLD_QUEUES}) as served,
           array(select to_jsonb(d) from (
             select id, name, drained_by is null as "isStopping" from worker where serves and not is_live
             order by name, id limit ${TOLD_WORKERS}
           ) d) as draining,
           array(select to_jsonb(b) from (
             select c.id, c.name, c.slots, c.held,
                    array(select l.run_id from live_runs l
                          where l.holder = c.id and l.organization_id = ${organizationId}
                          order by l.claimed_at, l.run_id limit ${TOLD_RUNS}) as runs
             from claimer c where c.free <= 0
             order by c.name, c.id limit ${TOLD_WORKERS}
           ) b) as busy
    from run
    cross join (
      select count(*)::integer as connected,
             count(*) filter (where serves)::integer as serving,
             count(*) filter (where serves and is_live)::integer as live,
             count(*) filter (where serves and is_live and held < slots)::integer as free
      from worker
    ) n
    left join (select ahead from standing order by free > 0 desc, ahead limit 1) best on true`,
  );
  return rows[0];
}
