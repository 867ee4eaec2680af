/**
 * What claims and pulses cost under a backlog, counted in index entries that they read: flat, whatever waits behind,
 * whatever was there before, and whoever keeps the database from forgetting it.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Pool } from '../../src/platform/db/db.js';
import { claimIfLive } from '../../src/runs/claim.sql.js';
import { Claimer } from '../../src/runs/claimer.js';
import { promoteDue, pulse } from '../../src/runs/pulse.sql.js';
import { Ground } from './ground.fixture.js';

const BATCH = 100;
const MAX_RUN_MS = 3_600_000;

let ground: Ground;
/** One connection, so that its counts can be asked of it. */
let pool: Pool;
let worker: string;
beforeAll(async () => {
  ground = await Ground.open();
  pool = ground.db.pool(1);
});
afterAll(() => ground.close());

/** Entries of the claim index that `work` read. */
async function entriesRead(work: () => Promise<unknown>): Promise<number> {
  const count = async () => {
    await pool.run((sql) => sql`select pg_stat_force_next_flush()`);
    const { rows } = await ground.sql.query(
      `select idx_tup_read::integer as n from pg_stat_user_indexes where indexrelname = 'live_runs_order'`,
    );
    return rows[0].n as number;
  };
  const before = await count();
  await work();
  return (await count()) - before;
}

/** Puts `n` runs into a queue, in the order of their positions. */
async function wait(queue: string, n: number, notBefore: string | null = null): Promise<void> {
  await ground.sql.query(
    `with made as (
       insert into runs (id, organization_id, kind, queue, priority, labels, spec, spec_digest, origin, principal,
                         root_id, created_at, not_before)
       select id, $1, 'noop', $2, 0, '{}', '{}', 'sha256:none', 'api', '{"id":"tok_test","name":"test"}', id, now(), $4
       from (select gen_random_uuid() as id from generate_series(1, $3)) as new
       returning id, organization_id, created_at, queue, priority, not_before
     )
     insert into live_runs (run_id, organization_id, created_at, run_day, state, queue, priority, not_before)
     select id, organization_id, created_at, (created_at at time zone 'UTC')::date, 'pending', queue, priority, not_before
     from made`,
    [ground.organizationId, queue, n, notBefore],
  );
}

/** The next claims of this life go by this clock. */
let nowMs: number;
beforeEach(async () => {
  nowMs = 0;
  worker = await ground.worker();
});
const claimerOf = (queues: readonly string[]) =>
  new Claimer(pool, { id: worker, queues }, { monotonicMs: () => nowMs });

async function claimBatches(claimer: Claimer, n: number): Promise<void> {
  for (let i = 0; i < n; i += 1) expect((await claimer.claim(BATCH)).runs).toHaveLength(BATCH);
}

describe('F014 F017 with a snapshot held open elsewhere', () => {
  it.each([['burst'], ['*']])(
    'a burst of claims out of %s never walks over what it has claimed before',
    async (served) => {
      await ground.sql.query(`delete from live_runs where queue = 'burst' and state = 'pending'`);
      await ground.sql.query('vacuum live_runs');
      const session = await ground.db.session();
      await session.query('begin isolation level repeatable read');
      await wait('burst', 12_000);
      await session.query('select count(*) from live_runs');
      const claimer = claimerOf([served]);
      await claimBatches(claimer, 50);
      // From the front, the fifty that follow would read what the fifty before have taken, each of them again.
      const read = await entriesRead(() => claimBatches(claimer, 50));
      expect(read).toBeGreaterThanOrEqual(50 * BATCH);
      expect(read).toBeLessThan(50 * (BATCH + 50));
      const fromTheFront = await entriesRead(() => claimIfLive(pool, worker, ['burst'], BATCH));
      expect(fromTheFront, 'the dead are still there').toBeGreaterThan(50 * BATCH);
      await session.query('rollback');
    },
  );
});

describe('a burst looks back', () => {
  const front = async (claimer: Claimer) => (await claimer.claim(1)).runs[0]?.runId;

  it('S4-05 F016 to a higher priority, a run that became due and one that was given back, once a second', async () => {
    const queue = 'looks-back';
    const soon = new Date(Date.now() + 3_600_000).toISOString();
    await wait(queue, 1, soon);
    await wait(queue, 500);
    const claimer = claimerOf([queue]);
    const [givenBack] = (await claimer.claim(1)).runs;
    if (!givenBack) throw new Error('nothing was claimed');
    await claimBatches(claimer, 2);
    await ground.sql.query(`update live_runs set not_before = now() where queue = $1 and not_before is not null`, [
      queue,
    ]);
    await promoteDue(pool, 10);
    await ground.sql.query(
      `update live_runs set state = 'pending', holder = null, claimed_at = null where run_id = $1`,
      [givenBack.runId],
    );
    const [urgent] = await ground.submit({ queue, priority: 5 });
    const { rows } = await ground.sql.query(
      `select run_id from live_runs where queue = $1 and state = 'pending' order by priority desc, position limit 3`,
      [queue],
    );
    const early = rows.map((row) => row.run_id as string);
    expect([early[0], early[2]]).toEqual([urgent?.id, givenBack.runId]);
    nowMs = 999;
    expect(early).not.toContain(await front(claimer));
    nowMs = 1_000;
    expect([await front(claimer), await front(claimer), await front(claimer)], 'one after another').toEqual(early);
  });

  it('when it gets fewer than it asked for, and only what the front says ends it', async () => {
    await wait('short', 150);
    const claimer = claimerOf(['short']);
    await claimBatches(claimer, 1);
    const [late] = await ground.submit({ queue: 'short', priority: 1 });
    expect(await claimer.claim(BATCH)).toMatchObject({ runs: { length: 50 }, mayBeMore: true });
    expect(await claimer.claim(BATCH)).toMatchObject({ runs: [{ runId: late?.id }], mayBeMore: false });
    expect(await claimer.claim(BATCH)).toEqual({ runs: [], mayBeMore: false });
  });

  it('to queues that it has not taken from yet', async () => {
    await wait('many-a', 300);
    const claimer = claimerOf(['many-a', 'many-b']);
    await claimBatches(claimer, 1);
    const [other] = await ground.submit({ queue: 'many-b', priority: 3 });
    expect(await front(claimer)).not.toBe(other?.id);
    nowMs = 1_000;
    expect(await front(claimer)).toBe(other?.id);
  });
});

describe('F014 the cost of a claim and of a pulse is flat', () => {
  beforeAll(async () => {
    await ground.sql.query(`delete from live_runs`);
    await wait('paused', 20_000);
    await wait('later', 20_000, '2100-01-01T00:00:00Z');
    await wait('waiting', 60_000);
    await ground.sql.query(
      `insert into paused_queues (name, at, by, by_name, reason) values ('paused', now(), 'tok_test', 'test', 'a test')`,
    );
    await ground.sql.query('vacuum analyze live_runs');
  });

  it.each([[['paused', 'later', 'waiting']], [['*']]])(
    'for who serves %j, whatever waits, is paused or not due',
    async (queues) => {
      const read = await entriesRead(async () => {
        const runs = await claimIfLive(pool, worker, queues, BATCH);
        expect(new Set(runs.map((run) => run.queue))).toEqual(new Set(['waiting']));
        expect(runs).toHaveLength(BATCH);
      });
      expect(read).toBeLessThan(BATCH + 400);
      const looked = await entriesRead(async () => {
        expect(await pulse(pool, worker, queues, MAX_RUN_MS)).toMatchObject({
          claimable: true,
          held: BATCH,
        });
      });
      expect(looked).toBeLessThan(400);
    },
  );

  it('a paused queue is left alone, and its runs are nothing to claim', async () => {
    for (const queues of [['paused'], ['paused', 'later']]) {
      expect(await claimIfLive(pool, worker, queues, BATCH)).toEqual([]);
      const read = await entriesRead(async () => {
        expect(await pulse(pool, worker, queues, MAX_RUN_MS)).toMatchObject({ claimable: false });
      });
      expect(read).toBeLessThan(10);
    }
    const marked = [{ queue: 'paused', priority: 0, position: 0 }];
    expect(await claimIfLive(pool, worker, ['paused'], BATCH, marked), 'nor behind a mark').toEqual([]);
    await ground.sql.query(`delete from paused_queues`);
    expect(await claimIfLive(pool, worker, ['paused'], BATCH)).toHaveLength(BATCH);
  });
});
