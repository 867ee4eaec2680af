/** A worker is taken out of service and put back by a person; a process that stops says so by `leaveIfAlive`. */
import type { Pool } from '../platform/db/db.js';

export interface WorkerChange {
  readonly worker: string;
  /** The installation's chain. */
  readonly chain: string;
  /** The worker's TypeID. */
  readonly object: string;
  /** TypeID and name of who asks for it. */
  readonly by: string;
  readonly byName: string;
}

/**
 * Takes a life out of service: it starts nothing any more, and what it runs goes on.
 *
 * guard     the life is live
 * outcomes  the receipt; nothing when it was not live: a drain said again writes nothing
 * locks     worker row (claim and start share it, so neither is in flight when this commits) → the installation's chain
 */
export function drainIfLive(pool: Pool, change: WorkerChange): Promise<{ receipt: string }[]> {
  const { worker, chain, object, by, byName } = change;
  return pool.run<{ receipt: string }[]>(
    (sql) => sql`
    with locked as materialized (
      select id from workers
      where id = ${worker}
        and state = 'live'                                   -- said once, and never to a life that is over
      for update
    ),
    drained as (
      update workers w
      set state = 'draining', drained_by = ${by}
      from locked k where w.id = k.id
      returning w.name
    )
    select a.receipt
    from drained d
    cross join lateral audit_append(
      array[${chain}::text],
      array[jsonb_build_object('action', 'worker.draining', 'object', ${object}::text, 'name', d.name,
                               'principal', ${by}::text, 'principalName', ${byName}::text)],
      array[null::uuid]) a`,
  );
}

/**
 * Puts a drained life back into service.
 *
 * guard     the life is draining, and a person said so: a process that is stopping goes on stopping
 * outcomes  the receipt; nothing when it was not so
 * locks     worker row → the installation's chain
 */
export function undrainIfDrained(pool: Pool, change: WorkerChange): Promise<{ receipt: string }[]> {
  const { worker, chain, object, by, byName } = change;
  return pool.run<{ receipt: string }[]>(
    (sql) => sql`
    with locked as materialized (
      select id from workers
      where id = ${worker}
        and state = 'draining'
        and drained_by is not null                           -- not by a process that is stopping
      for update
    ),
    back as (
      update workers w
      set state = 'live', drained_by = null
      from locked k where w.id = k.id
      returning w.name
    )
    select a.receipt
    from back b
    cross join lateral audit_append(
      array[${chain}::text],
      array[jsonb_build_object('action', 'worker.undrained', 'object', ${object}::text, 'name', b.name,
                               'principal', ${by}::text, 'principalName', ${byName}::text)],
      array[null::uuid]) a`,
  );
}

/**
 * What was last written about a worker in the installation's chain. It is found from the newest entry back, so it costs
 * what was written since.
 */
export function lastEntryOf(pool: Pool, chain: string, object: string): Promise<{ action: string; receipt: string }[]> {
  return pool.run<{ action: string; receipt: string }[]>(
    (sql) => sql`
    select action, chain_id || ':' || seq || ':' || encode(link, 'hex') as receipt
    from audit_entries
    where chain_id = ${chain}
      and claim::jsonb -> 'payload' ->> 'object' = ${object}
    order by seq desc
    limit 1`,
  );
}
