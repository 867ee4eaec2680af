/** Why a run isn't taken, against the claim itself: it says nothing exactly where some worker's next claim takes the run. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WhyCode } from '../../src/runs/why.js';
import { WhyService } from '../../src/runs/why.service.js';
import { Ground } from './ground.fixture.js';
import { freeOf, settle, Trial, type World, type WorldRun, worlds } from './why-world.fixture.js';

let ground: Ground;
let trial: Trial;
beforeAll(async () => {
  ground = await Ground.open(2);
  trial = new Trial(ground);
});
afterAll(async () => {
  await trial.close();
  await ground.close();
});

const ask = (id: string) => new WhyService(ground.pool).ask({ organizationId: ground.organizationId }, id);

/** The codes as the plainest way to say them; `others_first` is the claim's to say. */
function expected(world: World, { state, queue, dueIn, isFlagged, holder }: WorldRun): WhyCode[] {
  const codes: [WhyCode, boolean][] = [
    ['not_pending', state !== 'pending'],
    ['cancel_requested', isFlagged],
  ];
  if (holder === null && state !== 'succeeded') {
    const connected = world.workers.filter(
      (one) => (one.state === 'live' || one.state === 'draining') && one.isLeased && one.slots > 0,
    );
    const serving = connected.filter(({ queues }) => queues.includes('*') || queues.includes(queue));
    const live = serving.filter((one) => one.state === 'live');
    codes.push(
      ['not_before', dueIn !== null],
      ['queue_paused', world.paused.includes(queue)],
      ['no_worker', connected.length === 0],
      ['not_served', connected.length > 0 && serving.length === 0],
      ['workers_draining', serving.length > 0 && live.length === 0],
      ['slots_busy', live.length > 0 && live.every((one) => freeOf(one, world) <= 0)],
    );
  }
  return codes.filter(([, holds]) => holds).map(([code]) => code);
}

describe('lists end somewhere, and say so:', () => {
  const nothing: World = { paused: [], workers: [], runs: [] };

  it('of workers, and of the runs of each', async () => {
    await settle(ground, nothing);
    for (let i = 0; i < 12; i += 1) {
      const holder = await ground.worker({ queues: ['a'] });
      await ground.runsIn(11, 'running', { holder, queue: 'a' });
    }
    const id = await ground.runIn('pending', { queue: 'a' });
    const { reasons } = await ask(id);
    expect(reasons).toMatchObject([{ code: 'slots_busy', detail: expect.stringMatching(/ and 2 more$/) }]);
    const workers = reasons[0]?.workers ?? [];
    expect(workers).toHaveLength(10);
    for (const worker of workers) expect(worker).toMatchObject({ held: 11, runs: { length: 10 } });
    await ground.sql.query(`update workers set state = 'draining'`);
    expect((await ask(id)).reasons).toMatchObject([
      { code: 'workers_draining', workers: { length: 10 }, detail: expect.stringMatching(/ and 2 more$/) },
    ]);
  });

  it('of queues', async () => {
    await settle(ground, nothing);
    await ground.worker({ queues: Array.from({ length: 25 }, (_, i) => `q${i}`) });
    expect((await ask(await ground.runIn('pending', { queue: 'a' }))).reasons).toMatchObject([
      { code: 'not_served', queues: { length: 20 }, detail: expect.stringMatching(/ and maybe others$/) },
    ]);
  });
});

describe('in any world of queues, workers and runs', () => {
  it('there are no reasons exactly where a claim takes the run, and each predicate that fails is named', async () => {
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(worlds, async (world) => {
        await settle(ground, world);
        const taken = await trial.taken(world);
        const answers = await Promise.all(world.runs.map(async (run) => ({ run, why: await ask(run.id) })));
        const claimable = answers.filter(({ why }) => why.reasons.length === 0).map(({ run }) => run.id);
        expect(claimable.sort()).toEqual(taken);
        for (const { run, why } of answers) {
          const codes = why.reasons.map(({ code }) => code);
          expect(why.isClaimable).toBe(codes.length === 0);
          expect(codes.filter((code) => code !== 'others_first')).toEqual(expected(world, run));
          for (const { ahead } of why.reasons) expect(ahead ?? 1).toBeGreaterThan(0);
          for (const code of [...codes, ...(codes.length === 0 ? ['taken'] : [])]) seen.add(code);
        }
      }),
      { numRuns: 300 },
    );
    expect(seen.size, 'every code, and a run without any, was met').toBe(10);
  }, 120_000);
});
