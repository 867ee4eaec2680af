/**
 * Three workers hold running runs, renew their leases and drain runs as they come, while a session elsewhere keeps a
 * snapshot open, so that nothing dead can be vacuumed. What it costs is counted in pages, rows and updates.
 */
import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { renewIfAlive } from '../../src/execution/keeper/renew.sql.js';
import type { Pool } from '../../src/platform/db/db.js';
import { claimIfLive, startIfHeld } from '../../src/runs/claim.sql.js';
import { Claimer } from '../../src/runs/claimer.js';
import { finishIfHeld } from '../../src/runs/finish.sql.js';
import { type Cost, costsOf } from './explain.fixture.js';
import { Ground } from './ground.fixture.js';

const WORKERS = 3;
const HELD_EACH = 33;
const SECONDS = 60;
/** Runs that each takes in a second. */
const EACH = 7;

let ground: Ground;
let pool: Pool;
let holder: pg.Client;
const workers: string[] = [];
beforeAll(async () => {
  ground = await Ground.open();
  pool = ground.db.pool(1);
  while (workers.length < WORKERS) workers.push(await ground.worker({ queues: ['steady'] }));
  for (const worker of workers) await ground.runsIn(HELD_EACH, 'running', { holder: worker, queue: 'steady' });
  await ground.sql.query('vacuum analyze live_runs');
  holder = await ground.db.session();
  await holder.query('begin isolation level repeatable read');
  await holder.query('select count(*) from live_runs');
}, 120_000);
afterAll(() => ground.close());

interface Counted {
  readonly updates: number;
  readonly hot: number;
  readonly dead: number;
}

async function counted(table: string): Promise<Counted> {
  await pool.run((sql) => sql`select pg_stat_force_next_flush()`);
  await ground.sql.query('select pg_stat_force_next_flush()');
  const { rows } = await ground.sql.query<Counted>(
    `select n_tup_upd::integer as updates, n_tup_hot_upd::integer as hot, n_dead_tup::integer as dead
     from pg_stat_user_tables where relname = $1`,
    [table],
  );
  const [row] = rows;
  if (!row) throw new Error(`nothing is counted of ${table}`);
  return row;
}

interface ClaimCosts {
  readonly front: Cost;
  readonly marked: Cost;
}

/** What it costs to claim one run of three: from the front, and behind the run before it, as in a burst. */
async function claimCosts(): Promise<ClaimCosts> {
  await ground.submit({ queue: 'steady' }, { queue: 'steady' }, { queue: 'steady' });
  const [worker = ''] = workers;
  const { rows: marks } = await ground.sql.query(
    `select queue, priority, position from live_runs where queue = 'steady' and state = 'pending'
     order by position limit 1`,
  );
  const [front] = await costsOf(pool, (explaining) => claimIfLive(explaining, worker, ['steady'], 1));
  const [marked] = await costsOf(pool, (explaining) => claimIfLive(explaining, worker, ['steady'], 1, marks));
  if (!front || !marked) throw new Error('nothing was claimed');
  return { front, marked };
}

/** A second of these workers: runs come, each takes its share and ends it, and one lease in five is renewed. */
async function second(n: number, claimers: readonly Claimer[]): Promise<void> {
  await ground.submit(...Array.from({ length: WORKERS * EACH }, () => ({ queue: 'steady' })));
  for (const [i, worker] of workers.entries()) {
    if ((n + i) % 5 === 0) await renew(worker);
    const holds = ((await claimers[i]?.claim(EACH))?.runs ?? []).map(({ runId, fence }) => ({ runId, fence }));
    expect(holds).toHaveLength(EACH);
    await startIfHeld(pool, worker, holds);
    const ends = holds.map(({ runId, fence }) => ground.finish(runId, {}, fence));
    expect(await finishIfHeld(pool, worker, ends)).toHaveLength(EACH);
  }
}

async function renew(incarnation: string): Promise<void> {
  const query = async (text: string, values: readonly unknown[]) => (await ground.sql.query(text, [...values])).rows;
  expect(await renewIfAlive({ query }, { incarnation, ttlMs: 30_000, wallMs: Date.now() })).toBeDefined();
}

it('F017 workers that hold 99 runs and drain 21 a second claim no dearer in a burst, and renew in place, while a snapshot is held', async () => {
  let nowMs = 0;
  const claimers = workers.map((id) => new Claimer(pool, { id, queues: ['steady'] }, { monotonicMs: () => nowMs }));
  for (let n = 0; n < 5; n += 1) await second(n, claimers);
  const early = await claimCosts();
  for (let n = 0; n < SECONDS; n += 1) {
    nowMs += 1_000;
    await second(n, claimers);
  }
  const late = await claimCosts();
  const drained = SECONDS * WORKERS * EACH;
  expect(late.marked.blocks, `${early.marked.blocks} at first`).toBeLessThan(1.5 * early.marked.blocks);
  // From the front, which is looked at once a second in a burst, it walks over what was taken: page by page.
  expect(late.front.blocks, `${early.front.blocks} at first`).toBeLessThan(early.front.blocks + drained / 10);
  const renewals = await counted('workers');
  expect(renewals.updates).toBeGreaterThan(SECONDS / 2);
  expect(renewals.hot / renewals.updates).toBeGreaterThan(0.9);
  expect(renewals.dead, 'of the workers, a version for each renewal').toBeLessThanOrEqual(renewals.updates);
  expect((await counted('live_runs')).dead, 'of a run, its pending, claimed and running version').toBeLessThan(
    4 * drained,
  );
  await holder.query('commit');
  await ground.sql.query('vacuum live_runs, workers');
  expect((await claimCosts()).front.blocks, 'once the snapshot is gone').toBeLessThan(1.5 * early.front.blocks);
}, 90_000);
