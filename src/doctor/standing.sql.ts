/**
 * Looks at lives and at what waits: nothing may wait for ever while somebody is there to move it on. Invariant: what a
 * replica does in seconds is called late after two minutes of a time in which one was surely able to do it.
 */
import { encodeId } from '../kernel/ids.js';
import type { Pool } from '../platform/db/db.js';
import { isConnected } from './connected.sql.js';
import type { LawName, Look } from './laws.js';

const MOST_TOLD = 100;
const LATE_MS = 120_000;

interface StandingRow {
  readonly law: LawName;
  readonly prefix: 'run' | 'wrk';
  readonly id: string;
  readonly detail: string;
}

interface StandingLook extends Look<never> {
  /** Nobody was able to move anything on, or this role can't see it: what waits was not judged. */
  readonly isAnybodyAble: boolean;
}

/**
 * One look at all of it. Until when somebody was able for all that time is told by the sessions: a lease keeper's that
 * had stood for so long when it last renewed, however seldom that is. What waits is late when it was late by then. (After
 * an outage of everybody all sessions are new, and owners come first.)
 *
 * index    live_runs_holder, live_runs_due, workers_not_over, workers_pkey
 */
export async function lookAtStanding(pool: Pick<Pool, 'run'>, lateMs = LATE_MS): Promise<StandingLook> {
  const late = `${lateMs} milliseconds`;
  const [row] = await pool.run<{ isAnybodyAble: boolean; found: readonly StandingRow[] }[]>(
    (sql) => sql`
    with able as materialized (
      select db_clock() - (clock_timestamp() - max(s.state_change)) as until
      from pg_stat_activity s
      where s.datname = current_database()
        and s.application_name = 'capstan keeper'
        and s.backend_start < s.state_change - ${late}::interval
    ),
    life as materialized (
      select w.id, w.state, w.ended_at, w.lease_until, w.started_at, w.ttl_ms * interval '1 millisecond' as ttl,
             ${isConnected(sql)} as is_connected
      from workers w
      where w.id in (
        select id from workers where ended_at is null
        union
        select holder from live_runs where holder is not null
        union
        (select id from workers order by id desc limit 100)
      )
    ),
    held as materialized (
      select l.run_id, l.state, l.claimed_at, l.cancel_requested_at, w.id as holder, w.ended_at, w.ttl, w.is_connected
      from live_runs l join life w on w.id = l.holder
      where l.holder is not null
    ),
    rest as (select coalesce(max(ttl), interval '0') as after_a_jump from life where ended_at is null),
    late as (
    (select 'life_state' as law, 'wrk' as prefix, w.id, 'its state is ' || w.state || ', its end '
            || coalesce(w.ended_at::text, 'not known') as detail
     from life w
     where (w.state in ('stopped', 'lost')) <> (w.ended_at is not null)
     limit ${MOST_TOLD})
    union all
    (select 'ended_life', 'run', h.run_id, 'it is ' || h.state || ' under a life that ended at ' || h.ended_at
     from held h, able
     where h.ended_at < able.until - ${late}::interval
     limit ${MOST_TOLD})
    union all
    (select 'lease_over', 'wrk', w.id, 'its lease was over at ' || w.lease_until
     from life w, able, rest
     where w.ended_at is null and w.lease_until < able.until - ${late}::interval - rest.after_a_jump
     limit ${MOST_TOLD})
    union all
    (select 'due', 'run', l.run_id, 'it was due at ' || l.not_before
     from live_runs l, able
     where l.state = 'pending' and l.not_before < able.until - ${late}::interval
     order by l.not_before
     limit ${MOST_TOLD})
    union all
    (select 'cancel_heeded', 'run', h.run_id, 'it is ' || h.state || '; its stop was asked for at '
            || h.cancel_requested_at
     from held h, able
     where h.is_connected and h.cancel_requested_at < able.until - ${late}::interval - h.ttl
     limit ${MOST_TOLD})
    union all
    (select 'claim_moves_on', 'run', h.run_id, 'it was claimed at ' || h.claimed_at
     from held h, able
     where h.is_connected and h.state = 'claimed' and h.claimed_at < able.until - ${late}::interval - h.ttl
     limit ${MOST_TOLD})
    )
    select (select until is not null from able) as is_anybody_able,
           coalesce((select jsonb_agg(to_jsonb(late)) from late), '[]') as found`,
  );
  if (!row) throw new Error('a look at what waits returned no row');
  const { found, isAnybodyAble } = row;
  const violations = found.map(({ law, prefix, id, detail }) => ({ law, object: encodeId(prefix, id), detail }));
  return { violations, looked: found.length, next: undefined, isAnybodyAble };
}
