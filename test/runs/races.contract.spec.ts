/**
 * Statements against each other. Where it matters who comes first, a session of the test holds a named row until the
 * others wait for it; where it must not matter, many pairs are let go at one moment.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { renewIfAlive } from '../../src/execution/keeper/renew.sql.js';
import { encodeId } from '../../src/kernel/ids.js';
import { cancelIfLive } from '../../src/runs/cancel.sql.js';
import { claimIfLive, releaseIfHeld, startIfHeld } from '../../src/runs/claim.sql.js';
import { findOwnEnds, finishIfHeld } from '../../src/runs/finish.sql.js';
import { appendOutputIfHeld } from '../../src/runs/output.sql.js';
import { findOrphans, settleIfOrphaned } from '../../src/runs/settle.sql.js';
import { leaveIfAlive, reapIfExpired } from '../../src/runs/worker.sql.js';
import { Ground, until } from './ground.fixture.js';
import { expectOneTruth, PAIRS, race } from './races.fixture.js';

let ground: Ground;
beforeAll(async () => {
  ground = await Ground.open(2 * PAIRS);
});
afterAll(() => ground.close());

const WORKER_ROW = 'select 1 from workers where id = $1 for update';
const LOST = `update workers set state = 'lost', ended_at = now() where id = $1`;
const DRAINED = `update workers set state = 'draining' where id = $1`;
const OVER = `update workers set lease_until = now() - interval '1 second' where id = $1`;

describe('a worker row that is changed while claim and start wait for it', () => {
  it.each([
    ['S4-18 was reaped', LOST],
    ['F006 was drained', DRAINED],
    ['S4-12 lost its lease', OVER],
  ])('nothing is claimed by a life that %s meanwhile', async (_, change) => {
    const worker = await ground.worker();
    const queue = `q${_.length}`;
    const id = await ground.runIn('pending', { queue });
    const before = await ground.look(id);
    const claimed = await ground.behind(
      [
        [WORKER_ROW, [worker]],
        [change, [worker]],
      ],
      1,
      () => claimIfLive(ground.pool, worker, [queue], 5),
      'commit',
    );
    expect(claimed).toEqual([]);
    expect(await ground.look(id)).toEqual(before);
  });

  it.each([
    ['S4-18 was reaped', LOST],
    ['F006 was drained', DRAINED],
    ['S4-12 lost its lease', OVER],
  ])('nothing is started by a life that %s meanwhile', async (_, change) => {
    const worker = await ground.worker();
    const id = await ground.runIn('claimed', { holder: worker });
    const before = await ground.look(id);
    const started = await ground.behind(
      [
        [WORKER_ROW, [worker]],
        [change, [worker]],
      ],
      1,
      () => startIfHeld(ground.pool, worker, [ground.hold(id)]),
      'commit',
    );
    expect(started).toEqual([]);
    expect(await ground.look(id)).toEqual(before);
  });

  it('a change that is rolled back leaves them to go on', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('claimed', { holder: worker });
    await ground.runIn('pending', { queue: 'rolled-back' });
    const [started, claimed] = await ground.behind(
      [
        [WORKER_ROW, [worker]],
        [LOST, [worker]],
      ],
      2,
      () =>
        Promise.all([
          startIfHeld(ground.pool, worker, [ground.hold(id)]),
          claimIfLive(ground.pool, worker, ['rolled-back'], 5),
        ]),
      'rollback',
    );
    expect(started).toHaveLength(1);
    expect(claimed).toHaveLength(1);
  });

  it('S4-12 a lease that ends while they wait is over, though nobody changed the row', async () => {
    const worker = await ground.worker({ leaseMs: 700 });
    const id = await ground.runIn('claimed', { holder: worker });
    await ground.runIn('pending', { queue: 'ends-meanwhile' });
    const session = await ground.db.session();
    await session.query('begin');
    await session.query(WORKER_ROW, [worker]);
    const both = Promise.all([
      startIfHeld(ground.pool, worker, [ground.hold(id)]),
      claimIfLive(ground.pool, worker, ['ends-meanwhile'], 5),
    ]);
    await ground.waiting(2);
    await until('the lease ends', async () => {
      const { rows } = await ground.sql.query(
        'select lease_until < clock_timestamp() as over from workers where id = $1',
        [worker],
      );
      return rows[0].over;
    });
    await session.query('rollback');
    expect(await both).toEqual([[], []]);
  });

  it('F006 a drain waits for a start in flight, so none is left behind it', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('claimed', { holder: worker });
    const session = await ground.db.session();
    await session.query('begin');
    await session.query('select 1 from live_runs where run_id = $1 for update', [id]);
    const started = startIfHeld(ground.pool, worker, [ground.hold(id)]);
    await ground.waiting(1);
    const entry = { chain: ground.installation, object: encodeId('wrk', worker) };
    const drained = leaveIfAlive(ground.pool, worker, 'draining', entry);
    await ground.waiting(2);
    await session.query('rollback');
    expect(await started).toHaveLength(1);
    expect(await drained).toBe(true);
  });
});

describe('a worker row that claim or start are looking at', () => {
  const held = ['select 1 from workers where id = $1 for key share', 1] as const;

  it('S4-12 is passed over by a reap, which takes it a step later', async () => {
    const worker = await ground.worker({ leaseMs: -1_000 });
    const reap = () =>
      reapIfExpired(ground.pool, ground.installation, [
        { id: worker, object: encodeId('wrk', worker), by: 'wrk_test', byName: 'test' },
      ]);
    const session = await ground.db.session();
    await session.query('begin');
    await session.query(held[0], [worker]);
    expect(await reap()).toEqual([]);
    await session.query('rollback');
    expect(await reap()).toEqual([{ id: worker }]);
  });

  it('S4-41 is renewed at once: a renewal never waits behind them', async () => {
    const worker = await ground.worker({ leaseMs: 5_000 });
    const session = await ground.db.session();
    await session.query('begin');
    await session.query(held[0], [worker]);
    const renewing = await ground.db.session();
    await renewing.query(`set lock_timeout = '100ms'`);
    const tx = {
      query: async (text: string, values: readonly unknown[]) => (await renewing.query(text, [...values])).rows,
    };
    expect(await renewIfAlive(tx, { incarnation: worker, ttlMs: 30_000, wallMs: Date.now() })).toMatchObject({
      state: 'live',
    });
    await session.query('rollback');
  });
});

describe('a live row that is changed while a statement waits for it', () => {
  const TAKEN_AWAY = 'update live_runs set holder = $2, fence = fence + 1 where run_id = $1';

  it.each([
    ['start', 'claimed', (id: string, w: string) => startIfHeld(ground.pool, w, [ground.hold(id)])],
    ['release', 'claimed', (id: string, w: string) => releaseIfHeld(ground.pool, w, [ground.release(id, w)])],
    ['finish', 'running', (id: string, w: string) => finishIfHeld(ground.pool, w, [ground.finish(id)])],
    ['settle', 'running', (id: string, w: string) => settleIfOrphaned(ground.pool, [ground.settle(id, w)])],
    ['settle', 'claimed', (id: string, w: string) => settleIfOrphaned(ground.pool, [ground.settle(id, w)])],
  ] as const)(
    'S4-18 %s of a %s run does nothing when the run was taken away meanwhile',
    async (what, standing, act) => {
      const other = await ground.worker();
      const worker = await ground.worker(what === 'settle' ? { state: 'lost', leaseMs: -1 } : {});
      const id = await ground.runIn(standing, { holder: worker });
      expect(
        await ground.behind([[TAKEN_AWAY, [id, other]]], 1, () => act(id, worker) as Promise<unknown[]>, 'commit'),
      ).toEqual([]);
      const { live, events, entries } = await ground.look(id);
      expect(live).toMatchObject({ state: standing, holder: other, fence: 4 });
      expect([...events, ...entries]).toEqual([]);
    },
  );

  it('S4-18 output of a run that was taken away meanwhile is not stored', async () => {
    const [worker, other] = [await ground.worker(), await ground.worker()];
    const id = await ground.runIn('running', { holder: worker });
    const batch = { batch: 1, stream: 1, at: new Date(), pos: 0, streamPos: 0, bytes: 1 } as const;
    const bytePool = ground.db.bytePool(1);
    // An update of the fence alone would not hold up whoever only locks the key: the row is locked as an end locks it.
    const locks = [
      ['select 1 from live_runs where run_id = $1 for update', [id]],
      [TAKEN_AWAY, [id, other]],
    ] as const;
    expect(
      await ground.behind(
        locks,
        1,
        () => appendOutputIfHeld(bytePool, worker, ground.hold(id), [batch], Buffer.from('x')),
        'commit',
      ),
    ).toBe(false);
  });

  it('S4-96 start does nothing when the run was canceled meanwhile', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('claimed', { holder: worker });
    const started = await ground.behind(
      [[`update live_runs set cancel_requested_at = now(), cancel_kind = 'requested' where run_id = $1`, [id]]],
      1,
      () => startIfHeld(ground.pool, worker, [ground.hold(id)]),
      'commit',
    );
    expect(started).toEqual([]);
    expect((await ground.look(id)).standing).toBe('claimed');
  });
});

describe('a cancel (each race of it with another statement: cancel-races.contract.spec)', () => {
  it('S4-96 a run that is claimed while its cancel waits for it is flagged, though the cancel began before the claim', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('pending', { fence: 0 });
    const canceled = await ground.behind(
      [
        [
          `update live_runs set state = 'claimed', holder = $2, claimed_at = now(), fence = 1 where run_id = $1`,
          [id, worker],
        ],
      ],
      1,
      () => cancelIfLive(ground.pool, [ground.cancel(id)]),
      'commit',
    );
    expect(canceled).toMatchObject([{ result: 'requested' }]);
    const { live } = await ground.look(id);
    expect(live).toMatchObject({ state: 'claimed', holder: worker, fence: 1, cancel_kind: 'requested' });
  });

  it('S4-96 many cancels of one run: the first writes, the others learn that it stands', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('running', { holder: worker });
    const results = await Promise.all(Array.from({ length: 20 }, () => cancelIfLive(ground.pool, [ground.cancel(id)])));
    expect(results.flat().filter((one) => one.result === 'requested')).toHaveLength(1);
    expect(results.flat().filter((one) => one.result === 'already')).toHaveLength(19);
    await expectOneTruth(ground, [id]);
  });
});

describe('a lost worker that still writes', () => {
  it('F001 its finish against settle: one end, whoever came first', async () => {
    const worker = await ground.worker({ state: 'lost', leaseMs: -1 });
    const ids = await ground.runsIn(PAIRS, 'running', { holder: worker });
    const answers = await race(
      ground,
      ids,
      (id) => finishIfHeld(ground.pool, worker, [ground.finish(id)]),
      (id) => settleIfOrphaned(ground.pool, [ground.settle(id, worker)]),
    );
    await expectOneTruth(ground, ids);
    for (const [finished, settled] of answers) expect(finished.length + settled.length).toBe(1);
  });

  it('F001 S4-16 its finish after settle writes nothing, and its own end is not found', async () => {
    const worker = await ground.worker({ state: 'lost', leaseMs: -1 });
    const id = await ground.runIn('running', { holder: worker });
    await settleIfOrphaned(ground.pool, [ground.settle(id, worker)]);
    const before = await ground.look(id);
    expect(await finishIfHeld(ground.pool, worker, [ground.finish(id)])).toEqual([]);
    expect(await ground.look(id)).toEqual(before);
    expect(before.standing).toBe('interrupted');
  });

  it('S4-13 S4-18 what was claimed runs elsewhere; the old holder can neither start, end nor give it back', async () => {
    const [stalled, other] = [await ground.worker({ leaseMs: -1_000 }), await ground.worker({ queues: ['moved'] })];
    const id = await ground.runIn('claimed', { holder: stalled, queue: 'moved' });
    const reap = { id: stalled, object: encodeId('wrk', stalled), by: 'wrk_test', byName: 'test' };
    expect(await reapIfExpired(ground.pool, ground.installation, [reap])).toEqual([{ id: stalled }]);
    expect(await settleIfOrphaned(ground.pool, [ground.settle(id, stalled)])).toEqual([
      { runId: id, result: 'requeued', ended: null },
    ]);
    expect(await claimIfLive(ground.pool, other, ['moved'], 1)).toMatchObject([{ runId: id, fence: 4 }]);
    const before = await ground.look(id);
    expect(await startIfHeld(ground.pool, stalled, [ground.hold(id)])).toEqual([]);
    expect(
      await finishIfHeld(ground.pool, stalled, [ground.finish(id, { state: 'failed', code: 'unavailable' })]),
    ).toEqual([]);
    expect(await releaseIfHeld(ground.pool, stalled, [ground.release(id, stalled)])).toEqual([]);
    expect(await settleIfOrphaned(ground.pool, [ground.settle(id, stalled)])).toEqual([]);
    expect(await ground.look(id)).toEqual(before);
    expect(await startIfHeld(ground.pool, other, [ground.hold(id, 4)])).toHaveLength(1);
  });

  it('S4-18 a worker that claims its old run again is not fooled by its own stale writes', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('claimed', { holder: worker, fence: 4 });
    const before = await ground.look(id);
    expect(await releaseIfHeld(ground.pool, worker, [ground.release(id, worker, 3)])).toEqual([]);
    expect(await startIfHeld(ground.pool, worker, [ground.hold(id, 3)])).toEqual([]);
    expect(await finishIfHeld(ground.pool, worker, [ground.finish(id, { state: 'failed' }, 3)])).toEqual([]);
    expect(await ground.look(id)).toEqual(before);
  });
});

describe('an answer lost after the commit', () => {
  it('S4-100 a finish sent again changes nothing, and finds its own end', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('running', { holder: worker });
    const finish = ground.finish(id, { state: 'failed', code: 'tool_failed', exitCode: 7 });
    expect(await finishIfHeld(ground.pool, worker, [finish])).toMatchObject([{ runId: id }]);
    const before = await ground.look(id);
    expect(await finishIfHeld(ground.pool, worker, [finish])).toEqual([]);
    expect(await findOwnEnds(ground.pool, worker, [finish])).toMatchObject([{ runId: id }]);
    expect(await ground.look(id)).toEqual(before);
  });

  it('the end that another life or another claim wrote is not taken for its own', async () => {
    const [worker, other] = [await ground.worker(), await ground.worker()];
    const id = await ground.runIn('running', { holder: worker });
    await finishIfHeld(ground.pool, worker, [ground.finish(id)]);
    expect(await findOwnEnds(ground.pool, other, [ground.hold(id)])).toEqual([]);
    expect(await findOwnEnds(ground.pool, worker, [ground.hold(id, 2)])).toEqual([]);
    const live = await ground.runIn('running', { holder: worker });
    expect(await findOwnEnds(ground.pool, worker, [ground.hold(live)])).toEqual([]);
  });

  it('S4-14 the end that a janitor wrote for it is not taken for its own either', async () => {
    const worker = await ground.worker({ state: 'lost', leaseMs: -1 });
    const id = await ground.runIn('running', { holder: worker });
    await settleIfOrphaned(ground.pool, [ground.settle(id, worker)]);
    expect((await ground.look(id)).run).toMatchObject({ worker_id: worker, fence: 3, state: 'interrupted' });
    expect(await finishIfHeld(ground.pool, worker, [ground.finish(id)])).toEqual([]);
    expect(await findOwnEnds(ground.pool, worker, [ground.hold(id)])).toEqual([]);
  });

  it('a start sent again succeeds again, and does not move the moment at which it started', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('claimed', { holder: worker });
    expect(await startIfHeld(ground.pool, worker, [ground.hold(id)])).toEqual([{ runId: id }]);
    const before = await ground.look(id);
    expect(await startIfHeld(ground.pool, worker, [ground.hold(id)])).toEqual([{ runId: id }]);
    expect(await ground.look(id)).toEqual(before);
  });
});

describe('several janitors', () => {
  it('S4-12 a lease that is over is reaped once, with one entry; one that holds is left alone', async () => {
    const [over, holds] = [await ground.worker({ leaseMs: -1_000 }), await ground.worker()];
    const reaps = [over, holds].map((id) => ({ id, object: encodeId('wrk', id), by: 'wrk_test', byName: 'test' }));
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => reapIfExpired(ground.pool, ground.installation, reaps)),
    );
    expect(answers.flat()).toEqual([{ id: over }]);
    const { rows } = await ground.sql.query(
      `select count(*)::integer as n from audit_entries where action = 'worker.lost' and claim like '%' || $1 || '%'`,
      [encodeId('wrk', over)],
    );
    expect(rows[0].n).toBe(1);
  });

  it('S4-09 S4-60 settle 500 orphans of one lost worker at once: each exactly once', { timeout: 60_000 }, async () => {
    const worker = await ground.worker({ state: 'lost', leaseMs: -1 });
    const running = await ground.runsIn(300, 'running', { holder: worker });
    const claimed = await ground.runsIn(150, 'claimed', { holder: worker });
    const flagged = await ground.runsIn(50, 'claimed', { holder: worker, flagged: true });
    const settled: string[] = [];
    const janitor = async () => {
      for (;;) {
        const orphans = (await findOrphans(ground.pool, 60)).filter((orphan) => orphan.holder === worker);
        if (orphans.length === 0) return;
        const done = await settleIfOrphaned(
          ground.pool,
          orphans.map((orphan) => ground.settle(orphan.runId, worker)),
        );
        settled.push(...done.map((one) => one.runId));
      }
    };
    await Promise.all([janitor(), janitor(), janitor(), janitor()]);
    expect(settled).toHaveLength(500);
    expect(new Set(settled)).toEqual(new Set([...running, ...claimed, ...flagged]));
    const { rows } = await ground.sql.query(
      `select action, coalesce((select state from runs where id = e.run_id), 'pending') as state, count(*)::integer as n
       from audit_entries e where run_id = any ($1::uuid[]) group by 1, 2 order by n desc`,
      [[...running, ...claimed, ...flagged]],
    );
    expect(rows).toEqual([
      { action: 'run.ended', state: 'interrupted', n: 300 },
      { action: 'run.requeued', state: 'pending', n: 150 },
      { action: 'run.ended', state: 'canceled', n: 50 },
    ]);
  });
});
