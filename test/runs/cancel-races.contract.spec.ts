/** A cancel against whatever else may happen to its run at the same moment, a thousand times each. */
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { encodeId } from '../../src/kernel/ids.js';
import { cancelIfLive } from '../../src/runs/cancel.sql.js';
import { claimIfLive, releaseIfHeld, startIfHeld } from '../../src/runs/claim.sql.js';
import { finishIfHeld } from '../../src/runs/finish.sql.js';
import { settleIfOrphaned } from '../../src/runs/settle.sql.js';
import { reapIfExpired } from '../../src/runs/worker.sql.js';
import { Ground } from './ground.fixture.js';
import { expectOneTruth, fatesOf, PAIRS, race } from './races.fixture.js';

const RACES = 1_000;

/** Each takes a few seconds where nothing else runs. */
vi.setConfig({ testTimeout: 120_000 });

let ground: Ground;
beforeAll(async () => {
  ground = await Ground.open(2 * PAIRS);
});
afterAll(() => ground.close());

const cancel = (id: string) => cancelIfLive(ground.pool, [ground.cancel(id)]);
const lost = () => ground.worker({ state: 'lost', leaseMs: -1 });

it('S4-96 against claim: canceled in place, or claimed with the flag, never both', async () => {
  const worker = await ground.worker();
  const ids = await ground.runsIn(RACES, 'pending', { queue: 'cancel-or-claim' });
  const claims: string[] = [];
  // No barrier: a claim passes over a row that is locked. It takes the oldest, which are those that are canceled then.
  const waiting = ids.entries();
  const answers = new Map<number, Awaited<ReturnType<typeof cancel>>>();
  const racer = async () => {
    for (const [i, id] of waiting) {
      const canceled = cancel(id);
      for (const { runId } of await claimIfLive(ground.pool, worker, ['cancel-or-claim'], 1)) claims.push(runId);
      answers.set(i, await canceled);
    }
  };
  await Promise.all(Array.from({ length: PAIRS }, racer));
  const standings = await expectOneTruth(ground, ids);
  const fates = await fatesOf(ground, ids);
  expect(answers.size).toBe(RACES);
  for (const [i, [canceled]] of answers) {
    expect(canceled?.result, 'a cancel that came to nothing').toBe(fates[i]?.isLive ? 'requested' : 'ended');
    expect(fates[i]).toMatchObject(
      fates[i]?.isLive ? { standing: 'claimed', isFlagged: true } : { standing: 'canceled' },
    );
  }
  expect(new Set(claims).size, 'a run was claimed twice').toBe(claims.length);
  expect(claims).toHaveLength(standings.get('claimed') ?? 0);
});

it('S4-96 against claim: a run that was not due when the cancel was sent is flagged behind its claim', async () => {
  const worker = await ground.worker();
  const id = await ground.runIn('pending', { notBefore: new Date(Date.now() + 60_000) });
  const claimed = `update live_runs set state = 'claimed', not_before = null, holder = $2, fence = 1, claimed_at = now()
                   where run_id = $1`;
  const [canceled] = await ground.behind([[claimed, [id, worker]]], 1, () => cancel(id), 'commit');
  expect(canceled?.result).toBe('requested');
  await expectOneTruth(ground, [id]);
});

it('S4-96 against start: the run is flagged, and started or not', async () => {
  const worker = await ground.worker();
  const ids = await ground.runsIn(RACES, 'claimed', { holder: worker });
  const answers = await race(ground, ids, cancel, (id) => startIfHeld(ground.pool, worker, [ground.hold(id)]));
  await expectOneTruth(ground, ids);
  const fates = await fatesOf(ground, ids);
  for (const [i, [canceled, started]] of answers.entries()) {
    expect(canceled).toMatchObject([{ result: 'requested' }]);
    expect(fates[i]).toMatchObject({ standing: started.length === 1 ? 'running' : 'claimed', isFlagged: true });
  }
});

it('S4-96 against finish: the end that was first stands', async () => {
  const worker = await ground.worker();
  const ids = await ground.runsIn(RACES, 'running', { holder: worker });
  const finish = (id: string) => finishIfHeld(ground.pool, worker, [ground.finish(id)]);
  const answers = await race(ground, ids, cancel, finish);
  expect(await expectOneTruth(ground, ids)).toEqual(new Map([['succeeded', RACES]]));
  for (const [canceled, finished] of answers) {
    expect(finished).toHaveLength(1);
    expect(canceled.length === 0 || canceled[0]?.result === 'requested').toBe(true);
  }
});

it('S4-96 against release: given back and then canceled, or canceled by the release', async () => {
  const worker = await ground.worker();
  const ids = await ground.runsIn(RACES, 'claimed', { holder: worker });
  await race(ground, ids, cancel, (id) => releaseIfHeld(ground.pool, worker, [ground.release(id, worker)]));
  expect(await expectOneTruth(ground, ids)).toEqual(new Map([['canceled', RACES]]));
});

it('S4-96 against the requeue of a lost worker’s claimed run: canceled before it or behind it', async () => {
  const worker = await lost();
  const ids = await ground.runsIn(RACES, 'claimed', { holder: worker });
  await race(ground, ids, cancel, (id) => settleIfOrphaned(ground.pool, [ground.settle(id, worker)]));
  expect(await expectOneTruth(ground, ids)).toEqual(new Map([['canceled', RACES]]));
});

it('S4-96 against the reap of its worker and its settlement: what was running ends interrupted', async () => {
  const ids: string[] = [];
  const holders = new Map<string, string>();
  for (let i = 0; i < RACES; i += 1) {
    const worker = await ground.worker({ leaseMs: -1_000 });
    const id = await ground.runIn('running', { holder: worker });
    holders.set(id, worker);
    ids.push(id);
  }
  await race(ground, ids, cancel, async (id) => {
    const worker = holders.get(id) ?? '';
    const reap = { id: worker, object: encodeId('wrk', worker), by: 'wrk_test', byName: 'test' };
    expect(await reapIfExpired(ground.pool, ground.installation, [reap])).toEqual([{ id: worker }]);
    return settleIfOrphaned(ground.pool, [ground.settle(id, worker)]);
  });
  expect(await expectOneTruth(ground, ids)).toEqual(new Map([['interrupted', RACES]]));
});
