/** The cluster simulation over histories that nobody has seen: the seed is printed, and a failure is kept as a file. */
import { it } from 'vitest';
import { expectToHold } from './hold.fixture.js';

const MINUTES = 60_000;

it('S4-51 three replicas keep the laws over histories that are new in every run', {
  timeout: 10 * MINUTES,
}, async () => {
  const seed = Math.floor(Math.random() * 1_000_000_000);
  console.log(`cluster simulation: seed ${seed}`);
  await expectToHold(seed, 100_000);
});
