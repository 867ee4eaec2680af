/**
 * The cluster simulation: histories that are the same in every run of the tests. How long they take depends on the machine,
 * what they do doesn't: they are counted in steps.
 */
import { readdir, readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { Arena, type Kept } from './campaign.js';
import { expectToHold, testServer } from './hold.fixture.js';

const MINUTES = 60_000;
const SEEDS = new URL('./seeds/', import.meta.url);

it('every history that once broke a law keeps all of them', { timeout: 10 * MINUTES }, async () => {
  for (const file of await readdir(SEEDS)) {
    if (!file.endsWith('.json')) continue;
    const kept = JSON.parse(await readFile(new URL(file, SEEDS), 'utf8')) as Kept;
    const arena = new Arena(testServer(), kept.replicas);
    const { broken, trace } = await arena.run(kept.steps, true);
    await arena.close();
    expect(broken?.message, `${file}\n${trace.join('\n')}`).toBeUndefined();
  }
});

it('S4-05 S4-51 S3-14 three replicas keep the laws over histories of faults that are always the same', {
  timeout: 10 * MINUTES,
}, async () => {
  await expectToHold(1, 100_000);
});
