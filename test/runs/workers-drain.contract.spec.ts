/** A drain against whatever else touches a worker's row: what was answered holds, and each change has one entry. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeId, newId } from '../../src/kernel/ids.js';
import { claimIfLive, startIfHeld } from '../../src/runs/claim.sql.js';
import { putIfUnchanged, type WorkerChange } from '../../src/runs/drain.sql.js';
import { isDraining, pulse } from '../../src/runs/pulse.sql.js';
import type { WorkerState } from '../../src/runs/worker.js';
import { leaveIfAlive, reapIfExpired } from '../../src/runs/worker.sql.js';
import { Ground } from './ground.fixture.js';

const ROUNDS = 200;
/** Rounds that are under way at once. */
const ABREAST = 10;

let ground: Ground;
beforeAll(async () => {
  ground = await Ground.open(3 * ABREAST);
});
afterAll(() => ground.close());

const change = (worker: string, seen: number): WorkerChange => ({
  worker,
  seen,
  chain: ground.installation,
  object: encodeId('wrk', worker),
  by: 'tok_test',
  byName: 'test',
});
const entry = (worker: string) => ({ chain: ground.installation, object: encodeId('wrk', worker) });
const seen = async (worker: string): Promise<number> =>
  (await ground.pool.run<{ drains: number }[]>((sql) => sql`select drains from workers where id = ${worker}`))[0]
    ?.drains ?? 0;
const put = async (worker: string, to: 'draining' | 'live') =>
  putIfUnchanged(ground.pool, to, change(worker, await seen(worker)));
const drain = (worker: string) => put(worker, 'draining');
const undrain = (worker: string) => put(worker, 'live');
const stop = (worker: string) => leaveIfAlive(ground.pool, worker, 'draining', entry(worker));

const rowOf = async (worker: string) =>
  (
    await ground.pool.run<{ state: WorkerState; drainedBy: string | null }[]>(
      (sql) => sql`select state, drained_by from workers where id = ${worker}`,
    )
  )[0];
const actionsOf = async (worker: string): Promise<string[]> => {
  const rows = await ground.pool.run<{ action: string }[]>(
    (sql) => sql`
    select action from audit_entries
    where claim like ${`%${encodeId('wrk', worker)}%`}
    order by seq`,
  );
  return rows.map(({ action }) => action);
};
const heldBy = async (worker: string, state: string): Promise<string[]> => {
  const rows = await ground.pool.run<{ runId: string }[]>(
    (sql) => sql`select run_id from live_runs where holder = ${worker} and state = ${state} order by run_id`,
  );
  return rows.map(({ runId }) => runId);
};

/** What each round is about is made before the first begins; some are under way at a time. */
async function rounds<T>(make: () => Promise<T>, round: (made: T) => Promise<void>): Promise<void> {
  const made: T[] = [];
  for (let i = 0; i < ROUNDS; i += 1) made.push(await make());
  const lane = async () => {
    for (let next = made.pop(); next !== undefined; next = made.pop()) await round(next);
  };
  await Promise.all(Array.from({ length: ABREAST }, lane));
}

describe('each alone', () => {
  const states: readonly WorkerState[] = ['live', 'draining', 'stopped', 'lost'];

  it.each(states)('a drain of a life that is %s writes exactly when it is live', async (state) => {
    const worker = await ground.worker({ state });
    const before = await rowOf(worker);
    const receipts = await drain(worker);
    expect(receipts).toHaveLength(state === 'live' ? 1 : 0);
    expect(await rowOf(worker)).toEqual(state === 'live' ? { state: 'draining', drainedBy: 'tok_test' } : before);
    expect(await actionsOf(worker)).toEqual(state === 'live' ? ['worker.draining'] : []);
  });

  it.each(states)('an undrain of a life that is %s by its own word writes nothing', async (state) => {
    const worker = await ground.worker({ state });
    const before = await rowOf(worker);
    expect(await undrain(worker)).toEqual([]);
    expect(await rowOf(worker)).toEqual(before);
    expect(await actionsOf(worker)).toEqual([]);
  });

  it.each(['stopped', 'lost'])(
    'an undrain of a life that was drained and is %s by now writes nothing',
    async (state) => {
      const worker = await ground.worker();
      await drain(worker);
      await ground.sql.query('update workers set state = $2, ended_at = now() where id = $1', [worker, state]);
      expect(await undrain(worker)).toEqual([]);
      expect(await rowOf(worker)).toMatchObject({ state });
    },
  );

  it('an undrain takes a drain back, each with its entry', async () => {
    const worker = await ground.worker();
    await drain(worker);
    await undrain(worker);
    expect(await rowOf(worker)).toEqual({ state: 'live', drainedBy: null });
    expect(await actionsOf(worker)).toEqual(['worker.draining', 'worker.undrained']);
  });

  it.each(['draining', 'live'] as const)(
    'F006 a statement that says %s and is carried out again, late, undoes nothing that was decided since',
    async (to) => {
      const worker = await ground.worker();
      if (to === 'live') await drain(worker);
      const late = change(worker, await seen(worker));
      expect(await putIfUnchanged(ground.pool, to, late)).toHaveLength(1);
      await put(worker, to === 'live' ? 'draining' : 'live');
      const [row, actions] = [await rowOf(worker), await actionsOf(worker)];
      expect(await putIfUnchanged(ground.pool, to, late)).toEqual([]);
      expect(await rowOf(worker)).toEqual(row);
      expect(await actionsOf(worker)).toEqual(actions);
    },
  );

  it('a process that stops takes the drain of a person over, once', async () => {
    const worker = await ground.worker();
    await drain(worker);
    expect(await stop(worker)).toBe(true);
    expect(await stop(worker)).toBe(true);
    expect(await rowOf(worker)).toEqual({ state: 'draining', drainedBy: null });
    expect(await undrain(worker)).toEqual([]);
    expect(await leaveIfAlive(ground.pool, worker, 'stopped', entry(worker))).toBe(true);
    expect(await actionsOf(worker)).toEqual(['worker.draining', 'worker.draining', 'worker.stopped']);
  });

  it('no drain and no undrain without its entry', async () => {
    const [live, drained] = [await ground.worker(), await ground.worker()];
    await drain(drained);
    const nowhere = { chain: 'ins_nowhere' };
    const fail = async (worker: string, to: 'draining' | 'live') => {
      const without = { ...change(worker, await seen(worker)), ...nowhere };
      await expect(putIfUnchanged(ground.pool, to, without)).rejects.toThrow('no chain');
    };
    await fail(live, 'draining');
    await fail(drained, 'live');
    expect(await rowOf(live)).toMatchObject({ state: 'live' });
    expect(await rowOf(drained)).toMatchObject({ state: 'draining' });
  });

  it('a pulse tells a life that it is out of service, and that it is back', async () => {
    const worker = await ground.worker();
    const said = async () => [
      (await pulse(ground.pool, worker, ['default'], 1_000_000)).draining,
      await isDraining(ground.pool, worker),
    ];
    expect(await said()).toEqual([false, false]);
    await drain(worker);
    expect(await said()).toEqual([true, true]);
    await undrain(worker);
    expect(await said()).toEqual([false, false]);
  });
});

describe('what is in flight', () => {
  it('F006 a start that committed before a drain is confirmed after it, when its answer was lost; no other is let', async () => {
    const worker = await ground.worker();
    const [started = '', claimed = ''] = await ground.runsIn(2, 'claimed', { holder: worker });
    await startIfHeld(ground.pool, worker, [ground.hold(started)]);
    await drain(worker);
    const before = await ground.look(started);
    const again = () => startIfHeld(ground.pool, worker, [ground.hold(started), ground.hold(claimed)]);
    expect(await again()).toEqual([{ runId: started }]);
    expect(await ground.look(started)).toEqual(before);
    expect(await heldBy(worker, 'claimed')).toEqual([claimed]);
    await stop(worker);
    expect(await again()).toEqual([{ runId: started }]);
    await ground.sql.query(`update workers set lease_until = now() - interval '1 ms' where id = $1`, [worker]);
    expect(await again(), 'its lease is over').toEqual([]);
  });

  it('F006 a drain waits for a start in flight, so that none commits behind its answer', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('claimed', { holder: worker });
    const [started, drained] = await ground.behind(
      [['select 1 from live_runs where run_id = $1 for update', [id]]],
      2,
      async () => {
        const started = startIfHeld(ground.pool, worker, [ground.hold(id)]);
        await ground.waiting(1);
        return Promise.all([started, drain(worker)]);
      },
      'rollback',
    );
    expect(started).toHaveLength(1);
    expect(drained).toHaveLength(1);
  });
});

describe(`raced ${ROUNDS} times`, () => {
  it('F006 against claims: what is claimed when the drain is answered is all that ever is', async () => {
    let claims = 0;
    const make = async () => {
      const queue = `q-${newId()}`;
      await ground.runsIn(2, 'pending', { queue });
      return { worker: await ground.worker(), queue };
    };
    await rounds(make, async ({ worker, queue }) => {
      const claim = () => claimIfLive(ground.pool, worker, [queue], 1);
      const first = claim();
      const answered = drain(worker).then(() => heldBy(worker, 'claimed'));
      const claimed = (await Promise.all([first, claim()])).flat();
      const atAnswer = await answered;
      expect(claimed.map(({ runId }) => runId).sort()).toEqual(atAnswer);
      expect(await claim()).toEqual([]);
      expect(await heldBy(worker, 'claimed')).toEqual(atAnswer);
      expect(await actionsOf(worker)).toEqual(['worker.draining']);
      claims += claimed.length;
    });
    expect(claims, 'no claim ever came first: nothing was raced').toBeGreaterThan(0);
  });

  it('F006 against starts: what runs when the drain is answered is all that ever does', async () => {
    let starts = 0;
    const make = async () => {
      const worker = await ground.worker();
      return { worker, ids: await ground.runsIn(2, 'claimed', { holder: worker }) };
    };
    await rounds(make, async ({ worker, ids }) => {
      const starting = ids.map((id) => startIfHeld(ground.pool, worker, [ground.hold(id)]));
      const answered = drain(worker).then(() => heldBy(worker, 'running'));
      const started = (await Promise.all(starting)).flat().map(({ runId }) => runId);
      const atAnswer = await answered;
      expect(started.sort()).toEqual(atAnswer);
      expect(await heldBy(worker, 'running')).toEqual(atAnswer);
      starts += started.length;
    });
    expect(starts, 'no start ever came first: nothing was raced').toBeGreaterThan(0);
  });

  it('against a reap: the life is lost, with one entry for each thing that happened to it', async () => {
    const make = () => ground.worker({ leaseMs: -1_000 });
    await rounds(make, async (worker) => {
      const reap = () =>
        reapIfExpired(ground.pool, ground.installation, [
          { id: worker, object: encodeId('wrk', worker), by: 'wrk_t', byName: 't' },
        ]);
      const [drained, reaped] = await Promise.all([drain(worker), reap()]);
      // A reap passes over what others hold; the next one takes it.
      if (reaped.length === 0) await reap();
      expect(await rowOf(worker)).toMatchObject({ state: 'lost' });
      expect(await actionsOf(worker)).toEqual(
        drained.length === 1 ? ['worker.draining', 'worker.lost'] : ['worker.lost'],
      );
    });
  });

  it('against a stop: the process has the last word, and no undrain moves it', async () => {
    const make = () => ground.worker();
    await rounds(make, async (worker) => {
      const [drained, said, back] = await Promise.all([drain(worker), stop(worker), undrain(worker)]);
      expect(said).toBe(true);
      expect(await rowOf(worker)).toEqual({ state: 'draining', drainedBy: null });
      expect(await undrain(worker)).toEqual([]);
      expect(await actionsOf(worker)).toHaveLength(1 + drained.length + back.length);
    });
  });

  it('against itself: of many who say it at once one is written, and of those who take it back one', async () => {
    const make = () => ground.worker();
    await rounds(make, async (worker) => {
      const drained = await Promise.all([drain(worker), drain(worker), drain(worker)]);
      expect(drained.flat()).toHaveLength(1);
      const back = await Promise.all([undrain(worker), undrain(worker), undrain(worker)]);
      expect(back.flat()).toHaveLength(1);
      expect(await actionsOf(worker)).toEqual(['worker.draining', 'worker.undrained']);
    });
  });
});
