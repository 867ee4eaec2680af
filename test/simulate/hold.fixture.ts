/** Histories of three replicas on the PostgreSQL of the tests: all laws hold over so many steps. */
import { expect, inject } from 'vitest';
import { TEMPLATE } from '../global-setup.js';
import { campaign, report, type Server } from './campaign.js';

const LANES = 3;
const SHRINK_FOR_MS = 40_000;

export const testServer = (): Server => ({ adminUrl: inject('postgresUrl'), template: TEMPLATE });

export async function expectToHold(seed: number, steps: number): Promise<void> {
  const options = { seed, replicas: 3, lanes: LANES, shrinkForMs: SHRINK_FOR_MS };
  const { failure, ...tally } = await campaign(testServer(), { ...options, isEnough: (done) => done.steps >= steps });
  if (failure) throw new Error(`after ${tally.steps} steps: ${report(failure)}`);
  expect(tally.steps).toBeGreaterThanOrEqual(steps);
}
