/** When a life claims, looks and compares: nothing that it was told is lost, and starts that fail make it pause. */
import { expect, it } from 'vitest';
import { WorkLoop } from '../../src/replica/work.loop.js';
import type { Claimed } from '../../src/runs/claimer.js';
import type { Pulse } from '../../src/runs/pulse.sql.js';
import type { ClaimedRun } from '../../src/runs/run.js';

const QUIET: Pulse = {
  draining: false,
  claimable: false,
  held: 0,
  dueInMs: null,
  canceled: [],
  leaseOver: false,
  orphaned: false,
  overdue: false,
  writable: true,
};

/** A loop that finds nothing to do; `onClaim` happens while a claim is under way. */
function rig(onClaim: (loop: WorkLoop, claims: number) => boolean, taken: readonly ClaimedRun[] = []) {
  let claims = 0;
  let nowMs = 0;
  let reconciled = 0;
  const looked: boolean[] = [];
  const waits: number[] = [];
  const held = { inMemory: 0, inDatabase: 0 };
  /** Batches of runs whose instant has come. */
  const due: { batches: number; inMs: number | null } = { batches: 0, inMs: null };
  const warned: object[] = [];
  const loop = new WorkLoop({
    holder: {
      claim: async (limit): Promise<Claimed> => {
        claims += 1;
        return { runs: taken.slice(0, limit), mayBeMore: onClaim(loop, claims) };
      },
      pulse: async (looksForRuns) => {
        looked.push(looksForRuns);
        return { ...QUIET, held: held.inDatabase, dueInMs: due.batches > 0 ? 0 : due.inMs };
      },
    },
    executor: {
      get free() {
        return Math.max(0, 8 - held.inMemory);
      },
      get size() {
        return held.inMemory;
      },
      accept: () => undefined,
      cancel: () => undefined,
      reconcile: async () => {
        reconciled += 1;
      },
    },
    janitor: {
      promoteDue: async () => {
        due.batches -= 1;
        return 1_000;
      },
    },
    log: { warn: (about: object) => void warned.push(about) },
    timing: { monotonicMs: () => nowMs, delay: async (ms) => void waits.push(ms), random: () => 0 },
    pollIntervalMs: 1_000,
    mayClaim: () => true,
    onPulse: () => undefined,
  });
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { loop, claims: () => claims, reconciled: () => reconciled, looked, waits, held, due, warned, pass };
}

it('under a backlog a slot that became free alone waits a moment for others, and otherwise not at all', async () => {
  const many = Array.from({ length: 8 }, () => ({}) as ClaimedRun);
  const { loop, held, waits, claims } = rig(() => true, many);
  await loop.step();
  expect({ claims: claims(), waits }, 'all slots are free').toEqual({ claims: 1, waits: [] });
  held.inMemory = 4;
  await loop.step();
  expect({ claims: claims(), waits }, 'half of them are').toEqual({ claims: 2, waits: [] });
  held.inMemory = 7;
  await loop.step();
  expect(waits).toEqual([5]);
  const idle = rig(() => true);
  idle.held.inMemory = 7;
  await idle.loop.step();
  await idle.loop.step();
  expect(idle.waits, 'no backlog').toEqual([]);
});

it('an idle life claims once and then waits to be told', async () => {
  const { loop, claims } = rig(() => false);
  expect([await loop.step(), await loop.step()]).toEqual(['idle', 'idle']);
  expect(claims()).toBe(1);
  loop.noteClaimable();
  await loop.step();
  expect(claims()).toBe(2);
});

it('a life that is told of work while it claims looks once more', async () => {
  const { loop, claims } = rig((loop, claims) => {
    if (claims === 1) loop.noteClaimable();
    return false;
  });
  expect([await loop.step(), await loop.step()]).toEqual(['more', 'idle']);
  expect(claims()).toBe(2);
});

it('a claim that got few claims again as long as there may be more, and meanwhile the pulse asks for no runs', async () => {
  const { loop, claims, looked, pass } = rig((_, claims) => claims < 3);
  expect([await loop.step(), await loop.step()]).toEqual(['more', 'more']);
  pass(1_700);
  expect(await loop.step()).toBe('idle');
  expect(claims()).toBe(3);
  expect(looked, 'at first, and after the last claim').toEqual([false, true]);
});

it.each([
  ['nothing that it could be wrong about', { inMemory: 0, inDatabase: 0 }, 0],
  ['runs in memory', { inMemory: 1, inDatabase: 0 }, 1],
  ['runs in the database', { inMemory: 0, inDatabase: 1 }, 1],
])('a life with %s compares both after 15 s', async (_, holds, times) => {
  const { loop, reconciled, held, pass } = rig(() => false);
  Object.assign(held, holds);
  for (let second = 0; second < 16; second += 1) {
    expect(reconciled()).toBe(0);
    await loop.step();
    pass(1_000);
  }
  expect(reconciled()).toBe(times);
});

it('a life promotes all that is due at once, batch by batch, and claims in between', async () => {
  const { loop, claims, due } = rig(() => false);
  due.batches = 3;
  const results = [];
  for (let step = 0; step < 4; step += 1) results.push(await loop.step());
  expect(results).toEqual(['more', 'more', 'more', 'idle']);
  expect(due.batches).toBe(0);
  expect(claims()).toBe(4);
});

it('a life that holds something looks every second, and one that holds nothing every 1.7 s', async () => {
  const { loop, looked, held, pass } = rig(() => false);
  const pulsesIn = async (seconds: number) => {
    const before = looked.length;
    for (let ms = 0; ms < seconds * 1_000; ms += 100) {
      pass(100);
      await loop.step();
    }
    return looked.length - before;
  };
  await loop.step();
  expect(await pulsesIn(17)).toBe(10);
  held.inMemory = 1;
  expect(await pulsesIn(17)).toBe(17);
});

it('a life that knows when the next run becomes due looks then, and five times a second at most', async () => {
  const { loop, looked, due, pass } = rig(() => false);
  due.inMs = 700;
  await loop.step();
  expect(loop.intervalMs()).toBe(700);
  pass(699);
  await loop.step();
  expect(looked).toHaveLength(1);
  due.inMs = 50;
  pass(1);
  await loop.step();
  expect(looked).toHaveLength(2);
  expect(loop.intervalMs()).toBe(200);
  due.inMs = null;
  pass(200);
  await loop.step();
  expect([looked.length, loop.intervalMs()]).toEqual([3, 1_700]);
});

it('a life in doubt compares at once, although it holds nothing', async () => {
  const { loop, reconciled } = rig(() => false);
  loop.noteDoubt();
  await loop.step();
  expect(reconciled()).toBe(1);
});

it('a claim that failed is made again', async () => {
  const { loop, claims } = rig((_, claims) => {
    if (claims === 1) throw new Error('no database');
    return false;
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
  const life = rig(() => false);
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
