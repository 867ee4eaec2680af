/**
 * What a claim, a submit and the first page of a list cost behind a long history: the same work on an empty database and
 * on one with 200,000 ended and 80,000 waiting runs, counted in pages that the statements touch.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Pool } from '../../src/platform/db/db.js';
import { claimIfLive } from '../../src/runs/claim.sql.js';
import { listRuns } from '../../src/runs/list.sql.js';
import { submitIfNew } from '../../src/runs/submit.sql.js';
import { type Cost, costsOf } from './explain.fixture.js';
import { Ground } from './ground.fixture.js';

const { fillRuns } = await import(new URL('../bench/many-runs.mjs', import.meta.url).href);

const ENDED = 200_000;
const WAITING = 60_000;
const CLAIMERS = 5;
const BATCH = 20;

interface Costs {
  readonly claims: readonly Cost[];
  readonly submit: Cost;
  readonly lists: readonly number[];
}

let ground: Ground;
let pools: Pool[] = [];
let young: Costs;
let unknown: Costs;
let old: Costs;
beforeAll(async () => {
  ground = await Ground.open();
  pools = Array.from({ length: CLAIMERS }, () => ground.db.pool(1));
  await wait(2 * CLAIMERS * BATCH);
  young = await costs();
  await fillRuns(ground.sql, ENDED, ground.organizationId);
  await wait(WAITING);
  unknown = await costs();
  await ground.sql.query('vacuum analyze runs');
  await ground.sql.query('vacuum analyze live_runs');
  old = await costs();
}, 180_000);
afterAll(() => ground.close());

async function wait(n: number): Promise<void> {
  await ground.sql.query(
    `with made as (
       insert into runs (id, organization_id, kind, queue, priority, labels, spec, spec_digest, origin, principal, root_id,
                         created_at)
       select id, $1, 'command', 'long', 0, '{}', '{}', 'sha256:none', 'api', '{"id":"tok_test","name":"test"}', id, now()
       from (select gen_random_uuid() as id from generate_series(1, $2)) as new
       returning id, organization_id, created_at, queue, priority
     )
     insert into live_runs (run_id, organization_id, created_at, run_day, state, queue, priority)
     select id, organization_id, created_at, (created_at at time zone 'UTC')::date, 'pending', queue, priority from made`,
    [ground.organizationId, n],
  );
}

async function costs(): Promise<Costs> {
  const [pool] = pools;
  if (!pool) throw new Error('there is no pool');
  const worker = await ground.worker();
  const claims = await Promise.all(
    pools.map((each, i) =>
      costsOf(each, (explaining) => claimIfLive(explaining, worker, i % 2 === 0 ? ['long'] : ['*'], BATCH)),
    ),
  );
  const runs = Array.from({ length: BATCH }, () => ground.newRun({ queue: 'elsewhere' }));
  const [submit] = await costsOf(pool, (explaining) => submitIfNew(explaining, runs));
  if (!submit) throw new Error('nothing was submitted');
  const lists: number[] = [];
  for (const filter of [{}, { states: ['failed'] }, { states: ['pending', 'running'] }] as const) {
    const before = await pagesRead(pool);
    const { items } = await listRuns(pool, {
      organizationId: ground.organizationId,
      filter,
      after: undefined,
      limit: 50,
    });
    lists.push((await pagesRead(pool)) - before);
    expect(items.length).toBeLessThanOrEqual(50);
  }
  return { claims: claims.flat(), submit, lists };
}

async function pagesRead(pool: Pool): Promise<number> {
  await pool.run((sql) => sql`select pg_stat_force_next_flush()`);
  const [row] = await pool.run<{ pages: number }[]>(
    (sql) => sql`
    select sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0))::integer as pages
    from pg_statio_user_tables where relname in ('runs', 'ended_runs', 'live_runs')`,
  );
  return row?.pages ?? Number.NaN;
}

const most = (claims: readonly Cost[]) => Math.max(...claims.map(({ blocks }) => blocks));

it('F014 five claimers at once go by the index of claims, sort no more than they take, and touch as few pages as ever', () => {
  const claims = [...unknown.claims, ...old.claims];
  expect(claims).toHaveLength(2 * CLAIMERS);
  for (const { indexes, scanned, sorted } of claims) {
    expect(indexes).toContain('live_runs_order');
    expect(scanned.filter((table) => table === 'live_runs' || table === 'runs')).toEqual([]);
    expect(sorted).toBeLessThanOrEqual(1_000);
  }
  expect(most(claims), `once ${most(young.claims)}`).toBeLessThan(2 * most(young.claims) + 10 * BATCH);
});

it('F014 a submit touches as few pages as ever', () => {
  expect(old.submit.scanned.filter((table) => table !== 'organizations')).toEqual([]);
  expect(old.submit.blocks, `once ${young.submit.blocks}`).toBeLessThan(2 * young.submit.blocks + 10 * BATCH);
});

it('F014 F142 the first page of a list touches a few pages for each of its runs', () => {
  for (const pages of old.lists) expect(pages, `of ${old.lists}, once ${young.lists}`).toBeLessThan(1_000);
});
