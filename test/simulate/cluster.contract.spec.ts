/**
 * The cluster simulation, as much of it as belongs into every run of the tests. How long it takes depends on the machine,
 * what it does doesn't: histories are counted in steps.
 */
import { readdir, readFile } from 'node:fs/promises';
import { expect, inject, it } from 'vitest';
import { TEMPLATE } from '../global-setup.js';
import { Arena, campaign, type Kept, report, type Server } from './campaign.js';

const MINUTES = 60_000;
const SEEDS = new URL('./seeds/', import.meta.url);
const LANES = 3;
const SHRINK_FOR_MS = 40_000;

const server = (): Server => ({ adminUrl: inject('postgresUrl'), template: TEMPLATE });

async function expectToHold(seed: number, steps: number): Promise<void> {
  const options = { seed, replicas: 3, lanes: LANES, shrinkForMs: SHRINK_FOR_MS };
  const { failure, ...tally } = await campaign(server(), { ...options, isEnough: (done) => done.steps >= steps });
  if (failure) throw new Error(`after ${tally.steps} steps: ${report(failure)}`);
  expect(tally.steps).toBeGreaterThanOrEqual(steps);
}

it('every history that once broke a law keeps all of them', { timeout: 10 * MINUTES }, async () => {
  for (const file of await readdir(SEEDS)) {
    if (!file.endsWith('.json')) continue;
    const kept = JSON.parse(await readFile(new URL(file, SEEDS), 'utf8')) as Kept;
    const arena = new Arena(server(), kept.replicas);
    const { broken, trace } = await arena.run(kept.steps, true);
    await arena.close();
    expect(broken?.message, `${file}\n${trace.join('\n')}`).toBeUndefined();
  }
});

it('S4-05 S4-51 S3-14 three replicas keep the laws over histories of faults that are always the same', {
  timeout: 10 * MINUTES,
}, async () => {
  await expectToHold(1, 60_000);
});

it('three replicas keep the laws over histories that nobody has seen', { timeout: 10 * MINUTES }, async () => {
  const seed = Math.floor(Math.random() * 1_000_000_000);
  console.log(`cluster simulation: seed ${seed}`);
  await expectToHold(seed, 15_000);
});
