/** When a life claims: what it was told while a claim was under way is not lost with that claim's answer. */
import { expect, it } from 'vitest';
import { WorkLoop } from '../../src/replica/work.loop.js';
import type { Pulse } from '../../src/runs/claim.sql.js';
import type { ClaimedRun } from '../../src/runs/run.js';

const QUIET: Pulse = {
  draining: false,
  claimable: false,
  due: false,
  canceled: [],
  leaseOver: false,
  orphaned: false,
  overdue: false,
};

/** A loop that finds nothing to do; `onClaim` happens while a claim is under way. */
function rig(onClaim: (loop: WorkLoop, claims: number) => void) {
  let claims = 0;
  const loop = new WorkLoop({
    holder: {
      claim: async (): Promise<ClaimedRun[]> => {
        claims += 1;
        onClaim(loop, claims);
        return [];
      },
      pulse: async () => QUIET,
    },
    executor: { free: 4, size: 0, accept: () => undefined, cancel: () => undefined, reconcile: async () => undefined },
    janitor: { promoteDue: async () => 0 },
    timing: { monotonicMs: () => 0, delay: async () => undefined, random: () => 0 },
    pollIntervalMs: 1_000,
    mayClaim: () => true,
    onPulse: () => undefined,
  });
  return { loop, claims: () => claims };
}

it('an idle life claims once and then waits to be told', async () => {
  const { loop, claims } = rig(() => undefined);
  expect([await loop.step(), await loop.step()]).toEqual(['idle', 'idle']);
  expect(claims()).toBe(1);
  loop.noteClaimable();
  await loop.step();
  expect(claims()).toBe(2);
});

it('a life that is told of work while it claims looks once more', async () => {
  const { loop, claims } = rig((loop, claims) => {
    if (claims === 1) loop.noteClaimable();
  });
  expect([await loop.step(), await loop.step()]).toEqual(['more', 'idle']);
  expect(claims()).toBe(2);
});

it('a claim that failed is made again', async () => {
  const { loop, claims } = rig((_, claims) => {
    if (claims === 1) throw new Error('no database');
  });
  await expect(loop.step()).rejects.toThrow('no database');
  await loop.step();
  expect(claims()).toBe(2);
});
