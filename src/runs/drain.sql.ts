/** A worker is taken out of service and put back by a person; a process that stops says so by `leaveIfAlive`. */
import type { Pool } from '../platform/db/db.js';

export interface WorkerChange {
  readonly worker: string;
  /** `drains` of the worker when it was looked at. */
  readonly seen: number;
  /** The installation's chain. */
  readonly chain: string;
  /** The worker's TypeID. */
  readonly object: string;
  /** TypeID and name of who asks for it. */
  readonly by: string;
  readonly byName: string;
}

/**
 * Takes a life out of service (`draining`: it starts nothing any more, and what it runs goes on), or puts it back
 * (`live`).
 *
 * guard     the life is in the other of these states, where its process doesn't keep it: one that is stopping goes on
 *           stopping; and nobody has moved it since it was looked at
 * outcomes  the receipt; nothing when it was not so: said again it writes nothing
 * locks     worker row (claim and start share it, so neither is in flight when this commits) → the installation's chain
 */
export function putIfUnchanged(
  pool: Pool,
  to: 'draining' | 'live',
  change: WorkerChange,
): Promise<{ receipt: string }[]> {
  const { worker, seen, chain, object, by, byName } = change;
  const [from, action, drainedBy] =
    to === 'draining' ? ['live', 'worker.draining', by] : ['draining', 'worker.undrained', null];
  return pool.run<{ receipt: string }[]>(
    (sql) => sql`
    with locked as materialized (
      select id from workers
      where id = ${worker}
        and state = ${from}                                  -- never a life that is over
        and (state = 'live' or drained_by is not null)       -- nor a process that is stopping
        and drains = ${seen}                                 -- a statement that comes late undoes no later decision
      for update
    ),
    moved as (
      update workers w
      set state = ${to}, drained_by = ${drainedBy}, drains = w.drains + 1
      from locked k where w.id = k.id
      returning w.name
    )
    select a.receipt
    from moved m
    cross join lateral audit_append(
      array[${chain}::text],
      array[jsonb_build_object('action', ${action}::text, 'object', ${object}::text, 'name', m.name,
                               'principal', ${by}::text, 'principalName', ${byName}::text)],
      array[null::uuid]) a`,
  );
}

/** What may have put a life where it is now: it begins live, or draining after a life that a person had drained. */
const CAUSES = { draining: ['worker.joined', 'worker.draining'], live: ['worker.joined', 'worker.undrained'] } as const;

/**
 * The receipt of the newest entry that says how a life came into this state; null when there is none.
 * Index: audit_entries_object.
 */
export async function findCause(
  pool: Pool,
  state: 'draining' | 'live',
  { chain, object }: Pick<WorkerChange, 'chain' | 'object'>,
): Promise<string | null> {
  const rows = await pool.run<{ receipt: string }[]>(
    (sql) => sql`
    select chain_id || ':' || seq || ':' || encode(link, 'hex') as receipt
    from audit_entries
    where chain_id = ${chain}
      and substring(claim from '"object":"([^"]*)"') = ${object}
      and run_id is null
      and action = any (${[...CAUSES[state]]}::text[])
    order by seq desc
    limit 1`,
  );
  return rows[0]?.receipt ?? null;
}
