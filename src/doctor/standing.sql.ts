/**
 * Looks at lives and at what waits: nothing may wait for ever while somebody is there to move it on. Invariant: what a
 * replica does in seconds is called late after two minutes of a time in which one was surely able to do it.
 */
import { encodeId } from '../kernel/ids.js';
import type { Pool } from '../platform/db/db.js';
import type { LawName, Look } from './laws.js';

const MOST_TOLD = 100;
/** Whose lease was renewed within this is connected. */
const CONNECTED = '30 seconds';
const LATE_MS = 120_000;

interface StandingRow {
  readonly law: LawName;
  readonly prefix: 'run' | 'wrk';
  readonly id: string;
  readonly detail: string;
}

/**
 * One look at all of it. Whether somebody was able for all that time is told by the sessions: a lease keeper's that has
 * stood for so long, and renewed just now. (After an outage of everybody all sessions are new, and owners come first.)
 *
 * index    live_runs_holder, live_runs_due, workers_not_over, workers_pkey
 */
export async function lookAtStanding(pool: Pick<Pool, 'run'>, lateMs = LATE_MS): Promise<Look<never>> {
  const late = `${lateMs} milliseconds`;
  const rows = await pool.run<StandingRow[]>(
    (sql) => sql`
    with able as materialized (
      select exists (
        select from pg_stat_activity s
        where s.datname = current_database()
          and s.application_name = 'capstan keeper'
          and s.backend_start < clock_timestamp() - ${late}::interval
          and s.state_change > clock_timestamp() - ${CONNECTED}::interval
      ) as somebody
    ),
    life as materialized (
      select w.id, w.state, w.ended_at, w.lease_until, w.started_at, w.ttl_ms * interval '1 millisecond' as ttl,
             w.ended_at is null and w.lease_until - w.ttl_ms * interval '1 millisecond'
                                    > db_clock() - ${CONNECTED}::interval as is_connected
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
    rest as (select coalesce(max(ttl), interval '0') as after_a_jump from life where ended_at is null)
    (select 'life_state' as law, 'wrk' as prefix, w.id, 'its state is ' || w.state || ', its end '
            || coalesce(w.ended_at::text, 'not known') as detail
     from life w
     where (w.state in ('stopped', 'lost')) <> (w.ended_at is not null)
     limit ${MOST_TOLD})
    union all
    (select 'ended_life', 'run', h.run_id, 'it is ' || h.state || ' under a life that ended at ' || h.ended_at
     from held h, able
     where able.somebody and h.ended_at < db_clock() - ${late}::interval
     limit ${MOST_TOLD})
    union all
    (select 'lease_over', 'wrk', w.id, 'its lease was over at ' || w.lease_until
     from life w, able, rest
     where able.somebody and w.ended_at is null
       and w.lease_until < db_clock() - ${late}::interval - rest.after_a_jump
     limit ${MOST_TOLD})
    union all
    (select 'due', 'run', l.run_id, 'it was due at ' || l.not_before
     from live_runs l, able
     where able.somebody and l.state = 'pending' and l.not_before < db_now() - ${late}::interval
     order by l.not_before
     limit ${MOST_TOLD})
    union all
    (select 'cancel_heeded', 'run', h.run_id, 'it is ' || h.state || '; its stop was asked for at '
            || h.cancel_requested_at
     from held h, able
     where able.somebody and h.is_connected and h.cancel_requested_at < db_clock() - ${late}::interval - h.ttl
     limit ${MOST_TOLD})
    union all
    (select 'claim_moves_on', 'run', h.run_id, 'it was claimed at ' || h.claimed_at
     from held h, able
     where able.somebody and h.is_connected and h.state = 'claimed'
       and h.claimed_at < db_clock() - ${late}::interval - h.ttl
     limit ${MOST_TOLD})`,
  );
  const violations = rows.map(({ law, prefix, id, detail }) => ({ law, object: encodeId(prefix, id), detail }));
  return { violations, looked: rows.length, next: undefined };
}
