/** When a life claims: nothing that it was told is lost with a claim's answer, and starts that fail make it pause. */
import { expect, it } from 'vitest';
import { WorkLoop } from '../../src/replica/work.loop.js';
import type { Pulse } from '../../src/runs/pulse.sql.js';
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
  let nowMs = 0;
  const warned: object[] = [];
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
    log: { warn: (about: object) => void warned.push(about) },
    timing: { monotonicMs: () => nowMs, delay: async () => undefined, random: () => 0 },
    pollIntervalMs: 1_000,
    mayClaim: () => true,
    onPulse: () => undefined,
  });
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { loop, claims: () => claims, warned, pass };
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

/** How long nothing is claimed although it is wanted, to the second. */
async function pauseOf({ loop, claims, pass }: ReturnType<typeof rig>): Promise<number> {
  const before = claims();
  for (let seconds = 0; seconds < 100; seconds += 1) {
    loop.noteClaimable();
    await loop.step();
    if (claims() > before) return seconds;
    pass(1_000);
  }
  throw new Error('it never claimed again');
}

it('after starts that failed it claims again only after a pause, longer each time up to 30 s, and says so once', async () => {
  const life = rig(() => undefined);
  const pauses: number[] = [];
  for (let i = 0; i < 7; i += 1) {
    for (let run = 0; run < 4; run += 1) life.loop.noteStartFailed(new Error('no such column'));
    pauses.push(await pauseOf(life));
    if (i === 4) expect(life.warned).toMatchObject([{ code: 'run_start_failed', err: { message: 'no such column' } }]);
  }
  expect(pauses).toEqual([1, 2, 4, 8, 16, 30, 30]);

  life.loop.noteStarted();
  expect(await pauseOf(life)).toBe(0);
  life.loop.noteStartFailed(new Error('no such column'));
  expect(await pauseOf(life)).toBe(1);
});
