/**
 * Thousands of runs of one lost worker, and three real replicas that take them over while everything goes wrong in the
 * middle.
 */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../src/kernel/ids.js';
import { until } from '../server.js';
import { isFull } from './scale.js';
import { Stage } from './stage.fixture.js';

const NAMES = ['r1', 'r2', 'r3'];
const RUNS = 5_000;
const BATCH = 200;

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open(NAMES);
});
afterAll(() => stage?.close());

/**
 * A worker whose lease is over, holding `n` runs of a queue that nobody serves: half claimed, half running, a tenth of
 * each to be canceled. Their ids are in the order in which a janitor takes them.
 */
async function loseWorkerWith(n: number): Promise<string> {
  const worker = newId();
  await stage.db.query(
    `with life as (
       insert into workers (id, name, kind, slots, queues, version, ttl_ms, lease_until)
       values ('${worker}', 'lost', 'worker', 1000, '{lost}', '0', 15000, now() + interval '1 hour') returning id
     ),
     input as (
       select gen_random_uuid() as id, o.id as organization_id, h.chain_id, n, n % 20 < 2 as is_flagged
       from generate_series(1, ${n}) as n
       cross join (select id from organizations limit 1) o
       join audit_heads h on h.organization_id = o.id
     ),
     record as (
       insert into runs (id, organization_id, kind, queue, priority, labels, spec, spec_digest, origin, principal, root_id,
                         created_at)
       select id, organization_id, 'noop', '${worker}', 0, '{}', '{}', 'sha256:0', 'api', '{"id":"tok_0","name":"t"}', id,
              now()
       from input
     ),
     live as (
       insert into live_runs (run_id, organization_id, created_at, run_day, state, queue, priority, fence, holder,
                              claimed_at, started_at, cancel_requested_at, cancel_kind, event_seq)
       select i.id, i.organization_id, now(), (now() at time zone 'UTC')::date,
              case when n % 2 = 0 then 'claimed' else 'running' end, '${worker}', 0, 1, l.id, now(),
              case when n % 2 = 1 then now() end, case when is_flagged then now() end,
              case when is_flagged then 'requested' end, case when is_flagged then 2 else 1 end
       from input i cross join life l
     ),
     fact (id, chain_id, seq, type) as (
       select id, chain_id, 1, 'run.submitted' from input
       union all
       select id, chain_id, 2, 'run.cancel_requested' from input where is_flagged
     ),
     event as (
       insert into run_events (run_day, run_id, seq, type, at, data)
       select (now() at time zone 'UTC')::date, id, seq, type, now(), '{}' from fact
     ),
     entry as (
       select array_agg(chain_id) as chains, array_agg(id) as ids,
              array_agg(jsonb_build_object('action', type, 'object', 'run_' || id, 'kind', 'noop', 'queue', '${worker}',
                                           'origin', 'api', 'specDigest', 'sha256:0', 'principal', 'tok_0',
                                           'principalName', 't')) as payloads
       from fact
     )
     select count(*) from entry e cross join lateral audit_append(e.chains, e.payloads, e.ids)`,
  );
  return worker;
}

const expire = (worker: string) =>
  stage.db.query(`update workers set lease_until = now() - interval '1 second' where id = $1`, [worker]);

/** How many runs of a lost worker nobody has settled yet. */
async function orphansOf(worker: string): Promise<number> {
  const [row] = await stage.db.query<{ n: number }>('select count(*)::integer as n from live_runs where holder = $1', [
    worker,
  ]);
  return row?.n ?? 0;
}

/** What was written about a lost worker's runs, by what stands in the end. */
async function settledOf(worker: string) {
  return stage.db.query(
    `select state, code, count(*)::integer as n, ends::integer, requeues::integer
     from (
       select coalesce(r.state, l.state) as state, r.end_code as code,
              count(*) filter (where w.what = 'run.ended') as ends,
              count(*) filter (where w.what = 'run.requeued') as requeues
       from runs r
       left join live_runs l on l.run_id = r.id and l.fence = 1 and l.holder is null
       left join (
         select run_id, action as what from audit_entries
         union all
         select run_id, type from run_events
       ) w on w.run_id = r.id
       where r.queue = '${worker}'
       group by r.id, l.state
     ) run
     group by state, code, ends, requeues order by state`,
  );
}

/** One entry and one event for each, whatever happened: of 20 runs, 10 were running, one of each kind to be canceled. */
const ONCE_EACH = [
  { state: 'canceled', code: 'canceled', n: RUNS / 20, ends: 2, requeues: 0 },
  { state: 'interrupted', code: 'worker_lost', n: RUNS / 2, ends: 2, requeues: 0 },
  { state: 'pending', code: null, n: (RUNS * 9) / 20, ends: 0, requeues: 2 },
];

/** How a worker's life ended, and how many entries say that it was lost. */
async function lossesOf(worker: string): Promise<{ state: string; entries: number }[]> {
  return stage.db.query(
    `select w.state,
            (select count(*)::integer from audit_entries e where e.action = 'worker.lost'
             and e.claim::jsonb -> 'payload' ->> 'leaseUntil' = instant_text(w.lease_until)) as entries
     from workers w where w.id = $1`,
    [worker],
  );
}

/** A row in the middle of what janitors take, locked by the test: there they all stand, with batches behind them. */
async function stopInTheMiddle(worker: string): Promise<pg.Client> {
  const session = new pg.Client(stage.db.directUrl);
  session.on('error', () => undefined);
  await session.connect();
  await session.query('begin');
  await session.query(
    `select 1 from live_runs where run_id = (
       select run_id from live_runs where holder = $1 order by run_id offset $2 limit 1) for update`,
    [worker, RUNS / 2],
  );
  await expire(worker);
  await until('half of it is settled', async () => (await orphansOf(worker)) <= RUNS / 2 + BATCH, 60_000);
  return session;
}

/** The replicas that wrote ends of this worker's runs. */
async function settlersOf(worker: string): Promise<string[]> {
  const rows = await stage.db.query<{ name: string }>(
    `select distinct claim::jsonb -> 'payload' ->> 'principalName' as name
     from audit_entries e join runs r on r.id = e.run_id and r.queue = $1 where e.action = 'run.ended'`,
    [worker],
  );
  return rows.map(({ name }) => name);
}

const FAULTS: readonly [title: string, strike: (worker: string) => Promise<void>][] = [
  ['the database restarts fast', () => stage.db.restart('fast')],
  ['the database restarts immediately', () => stage.db.restart('immediate')],
  [
    'the replica that settles is killed',
    async (worker) => {
      const [name = ''] = await settlersOf(worker);
      await stage.kill(name);
    },
  ],
];

describe(`${RUNS} runs that a lost worker held`, () => {
  it('F020 S3-13 S4-09 S4-60 are settled once each by three replicas, and whoever submits goes on', async () => {
    const worker = await loseWorkerWith(RUNS);
    const begun = performance.now();
    await expire(worker);
    const took: number[] = [];
    while ((await orphansOf(worker)) > 0) {
      const sent = performance.now();
      await stage.submit(['true'], { kind: 'noop', spec: {} });
      took.push(performance.now() - sent);
    }
    if (isFull)
      process.stdout.write(`settled in ${performance.now() - begun} ms, longest submit ${Math.max(...took)} ms\n`);
    expect(await settledOf(worker)).toEqual(ONCE_EACH);
    expect(await lossesOf(worker)).toEqual([{ state: 'lost', entries: 1 }]);
    // The bound of a wait for any lock: nobody stood behind all of it.
    expect(Math.max(...took)).toBeLessThan(5_000);
  });

  it.each(FAULTS)('F020 S4-60 are settled once each when in the middle of it %s', async (_, strike) => {
    const worker = await loseWorkerWith(RUNS);
    const session = await stopInTheMiddle(worker);
    await strike(worker);
    await session.end().catch(() => undefined);
    expect(await orphansOf(worker)).toBeGreaterThan(0);
    await until('all of it is settled', async () => (await orphansOf(worker)) === 0, 60_000);
    expect(await settledOf(worker)).toEqual(ONCE_EACH);
    expect(await lossesOf(worker)).toEqual([{ state: 'lost', entries: 1 }]);
  });
});

it('the chain that all of them appended to holds, with one end for each run', async () => {
  expect(await stage.faults()).toEqual([]);
});
