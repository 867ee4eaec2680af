/** Little worlds of queues, workers and runs: drawn at random, put into a database, and claimed from for a moment. */
import fc from 'fast-check';
import postgres from 'postgres';
import { newId } from '../../src/kernel/ids.js';
import type { Pool } from '../../src/platform/db/db.js';
import { claimIfLive } from '../../src/runs/claim.sql.js';
import type { Ground } from './ground.fixture.js';

const QUEUES = ['a', 'b', 'c'] as const;

export interface WorldWorker {
  readonly id: string;
  readonly state: 'live' | 'draining' | 'stopped' | 'lost';
  readonly isLeased: boolean;
  readonly slots: number;
  readonly queues: readonly string[];
}

export interface WorldRun {
  readonly id: string;
  readonly state: 'held' | 'pending' | 'parked' | 'claimed' | 'running' | 'succeeded';
  readonly queue: string;
  readonly priority: number;
  /** When it is due, in seconds from now; null: it was promoted, or never had an instant. */
  readonly dueIn: number | null;
  readonly isFlagged: boolean;
  readonly holder: string | null;
}

export interface World {
  readonly paused: readonly string[];
  readonly workers: readonly WorldWorker[];
  /** In the order of their positions. */
  readonly runs: readonly WorldRun[];
}

const often = <const T>(value: T, weight: number) => ({ arbitrary: fc.constant(value), weight });

const worker = fc.record({
  state: fc.oneof(often('live', 6), often('draining', 1), often('stopped', 1), often('lost', 1)),
  isLeased: fc.oneof(often(true, 6), often(false, 1)),
  slots: fc.integer({ min: 0, max: 3 }),
  queues: fc.constantFrom<string[][]>(['*'], ['a'], ['b'], ['a', 'b'], ['c', 'b'], ['a', 'b', 'c']),
});

const run = fc.record({
  state: fc.oneof(
    often('pending', 12),
    often('claimed', 1),
    often('running', 2),
    often('held', 1),
    often('parked', 1),
    often('succeeded', 1),
  ),
  queue: fc.constantFrom(...QUEUES),
  priority: fc.integer({ min: -1, max: 1 }),
  dueIn: fc.oneof(often(null, 6), often(-5, 1), often(3_600, 1)),
  isFlagged: fc.boolean(),
  holder: fc.nat({ max: 2 }),
});

export const worlds: fc.Arbitrary<World> = fc
  .record({
    paused: fc.oneof(often([], 3), { arbitrary: fc.subarray<string>([...QUEUES]), weight: 2 }),
    workers: fc.array(worker, { maxLength: 3 }),
    runs: fc.array(run, { minLength: 1, maxLength: 14 }),
  })
  .map(({ paused, workers, runs }) => {
    const lives = workers.map((each) => ({ ...each, id: newId() }));
    return { paused, workers: lives, runs: runs.map((each) => ({ ...each, id: newId(), ...held(each, lives) })) };
  });

/** Only somebody holds what is held: with nobody there it waits. */
function held(
  {
    state,
    dueIn,
    isFlagged,
    holder,
  }: { state: WorldRun['state']; dueIn: number | null; isFlagged: boolean; holder: number },
  lives: readonly WorldWorker[],
): Pick<WorldRun, 'state' | 'dueIn' | 'isFlagged' | 'holder'> {
  const life = lives[holder];
  if (state !== 'claimed' && state !== 'running') {
    return { state, dueIn: state === 'held' || state === 'pending' ? dueIn : null, isFlagged: false, holder: null };
  }
  return life
    ? { state, dueIn: null, isFlagged, holder: life.id }
    : { state: 'pending', dueIn, isFlagged: false, holder: null };
}

/** Puts a world in the place of the one before. */
export async function settle({ sql, organizationId }: Ground, { paused, workers, runs }: World): Promise<void> {
  await sql.query('delete from live_runs');
  await sql.query('delete from paused_queues');
  await sql.query('delete from workers');
  await sql.query(
    `insert into paused_queues select q, now(), 'tok_test', 'test', 'a reason' from unnest($1::text[]) as q`,
    [paused],
  );
  await sql.query(
    `insert into workers (id, name, kind, slots, queues, version, ttl_ms, state, lease_until, ended_at)
     select id, 'w-' || right(id::text, 4), 'worker', slots, array(select jsonb_array_elements_text(queues)), '0', 30000, state,
            clock_timestamp() + case when "isLeased" then interval '1 hour' else interval '-1 second' end,
            case when state in ('stopped', 'lost') then now() end
     from jsonb_to_recordset($1::jsonb) as w (id uuid, slots integer, queues jsonb, state text, "isLeased" boolean)`,
    [JSON.stringify(workers)],
  );
  await sql.query(
    `with given as materialized (
       select * from jsonb_array_elements($2::jsonb) with ordinality as e (run, i)
       cross join lateral jsonb_to_record(e.run)
         as r (id uuid, state text, queue text, priority smallint, "dueIn" integer, "isFlagged" boolean, holder uuid)
     ),
     made as (
       insert into runs (id, organization_id, kind, queue, priority, labels, spec, spec_digest, origin, principal, root_id,
                         created_at, state, end_code, end_by, ended_at, fence)
       select id, $1, 'noop', queue, priority, '{}', '{}', 'sha256:x', 'api', '{"id":"tok_test","name":"test"}', id, now(),
              nullif(state, o.live), case when o.live is null then 'ok' end, case when o.live is null then 'wrk_test' end,
              case when o.live is null then now() end, case when o.live is null then 1 end
       from given cross join lateral (select case when state <> 'succeeded' then state end as live) o
     )
     insert into live_runs (run_id, organization_id, created_at, run_day, state, queue, priority, not_before, holder,
                            claimed_at, started_at, cancel_requested_at, cancel_kind)
     select id, $1, now(), current_date, state, queue, priority, now() + "dueIn" * interval '1 second', holder,
            case when holder is not null then now() end, case when state = 'running' then now() end,
            case when "isFlagged" then now() end, case when "isFlagged" then 'requested' end
     from given where state <> 'succeeded' order by i`,
    [organizationId, JSON.stringify(runs)],
  );
}

/** Free slots, by what the world says. */
export function freeOf({ id, slots }: WorldWorker, { runs }: World): number {
  return slots - runs.filter(({ holder }) => holder === id).length;
}

/** Claims for a moment: nothing of it is there afterwards. */
export class Trial {
  private readonly sql: postgres.Sql;

  constructor({ db }: Ground) {
    this.sql = postgres(db.url, { max: 1, transform: { column: { from: postgres.toCamel } } });
  }

  /** Ids of what some worker takes, each asked alone to fill its free slots with one claim. */
  async taken(world: World): Promise<string[]> {
    const ids = new Set<string>();
    for (const one of world.workers) {
      const free = freeOf(one, world);
      if (free <= 0) continue;
      const back = new Error('everything back');
      await this.sql
        .begin(async (tx) => {
          const pool = { run: (statement: (sql: typeof tx) => Promise<unknown>) => statement(tx) };
          const runs = await claimIfLive(pool as unknown as Pool, one.id, one.queues, free);
          for (const { runId } of runs) ids.add(runId);
          throw back;
        })
        .catch((error: unknown) => {
          if (error !== back) throw error;
        });
    }
    return [...ids].sort();
  }

  close(): Promise<void> {
    return this.sql.end();
  }
}
