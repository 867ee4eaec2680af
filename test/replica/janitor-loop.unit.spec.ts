import { describe, expect, it } from 'vitest';
import type { ClockSample } from '../../src/platform/db/clock.rules.js';
import { JanitorLoop } from '../../src/replica/janitor.loop.js';
import type { Pulse } from '../../src/runs/pulse.sql.js';

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
const TTL_MS = 30_000;

/** The loop with a janitor that only writes down what it was asked for. */
function rig(settles: number[] = []) {
  const asked: string[] = [];
  const keeper = { clock: undefined as ClockSample | undefined, stats: { renewalsSinceOutage: 3 } };
  let now = 0;
  let found: ClockSample | undefined;
  const janitor = {
    reap: async (isSteady: (clock: ClockSample) => boolean) => {
      asked.push('reap');
      return found && !isSteady(found) ? [] : ['w'];
    },
    settle: async () => {
      asked.push('settle');
      return Array.from({ length: settles.shift() ?? 0 }, () => ({
        runId: 'r',
        result: 'requeued' as const,
        ended: null,
      }));
    },
    cancelOverdue: async () => {
      asked.push('cancelOverdue');
      return 1;
    },
  };
  const timing = { monotonicMs: () => now, delay: async () => undefined, random: () => 0 };
  const loop = new JanitorLoop(janitor, keeper, { leaseTtlMs: TTL_MS, leaseRenewMs: 5_000 }, timing);
  return {
    loop,
    asked,
    keeper,
    pass: (ms: number) => (now += ms),
    /** The look at the clock that finds expired leases. */
    find: (clock: ClockSample) => {
      found = clock;
    },
  };
}

/** The database's clock, `aheadMs` before this machine's, looked at in no time. */
const clockAt = (monotonicMs: number, aheadMs: number): ClockSample => ({
  sentAtMs: monotonicMs,
  receivedAtMs: monotonicMs,
  databaseAtMs: monotonicMs + aheadMs,
});

describe('the janitor', () => {
  it('asks the database nothing while the pulse saw nothing', async () => {
    const { loop, asked } = rig();
    loop.notePulse(QUIET);
    expect(await loop.step()).toBe('idle');
    expect(asked).toEqual([]);
  });

  it('reaps, and settles batch after batch until nothing is left', async () => {
    const { loop, asked } = rig([200, 3, 0]);
    loop.notePulse({ ...QUIET, leaseOver: true });
    expect(await loop.step()).toBe('more');
    expect(await loop.step()).toBe('more');
    expect(await loop.step()).toBe('idle');
    expect(asked).toEqual(['reap', 'settle', 'settle', 'settle']);
  });

  it('settles what an earlier janitor left behind, without reaping', async () => {
    const { loop, asked } = rig([1, 0]);
    loop.notePulse({ ...QUIET, orphaned: true });
    await loop.step();
    expect(asked).toEqual(['settle']);
  });

  it('does not reap before its own keeper has renewed so often that those who found the database later have too', async () => {
    const { loop, asked, keeper } = rig([0]);
    keeper.stats.renewalsSinceOutage = 2;
    loop.notePulse({ ...QUIET, leaseOver: true });
    await loop.step();
    expect(asked).toEqual([]);
    keeper.stats.renewalsSinceOutage = 3;
    loop.notePulse({ ...QUIET, leaseOver: true });
    await loop.step();
    expect(asked).toEqual(['reap', 'settle']);
  });

  it("does not reap for one lease time after the database's clock jumped", async () => {
    const { loop, asked, keeper, pass } = rig([0]);
    keeper.clock = clockAt(0, 0);
    await loop.step();
    pass(5_000);
    keeper.clock = clockAt(5_000, 1_500);
    loop.notePulse({ ...QUIET, leaseOver: true });
    await loop.step();
    pass(TTL_MS - 1);
    loop.notePulse({ ...QUIET, leaseOver: true });
    await loop.step();
    expect(asked).toEqual([]);
    pass(1);
    loop.notePulse({ ...QUIET, leaseOver: true });
    await loop.step();
    expect(asked).toEqual(['reap', 'settle']);
  });

  it('notices a jump between looks of the keeper that came while it stood still itself', async () => {
    const { loop, asked, keeper, pass } = rig([0]);
    loop.noteClock(clockAt(0, 0));
    pass(5_000);
    loop.noteClock(clockAt(5_000, 45_000));
    keeper.clock = clockAt(5_000, 45_000);
    loop.notePulse({ ...QUIET, leaseOver: true });
    await loop.step();
    expect(asked).toEqual([]);
  });

  it("does not reap by a clock that jumped since the keeper's last look", async () => {
    const { loop, asked, keeper, find, pass } = rig([0]);
    keeper.clock = clockAt(0, 0);
    await loop.step();
    find(clockAt(10, 60_000));
    loop.notePulse({ ...QUIET, leaseOver: true });
    await loop.step();
    expect(asked).toEqual(['reap']);
    pass(TTL_MS - 1);
    loop.notePulse({ ...QUIET, leaseOver: true });
    await loop.step();
    expect(asked).toEqual(['reap']);
  });

  it('does not reap by a look at the clock that took long, but by the next one that did not', async () => {
    const { loop, asked, keeper, find } = rig([0]);
    keeper.clock = clockAt(0, 0);
    await loop.step();
    find({ sentAtMs: 0, receivedAtMs: 900, databaseAtMs: 450 });
    loop.notePulse({ ...QUIET, leaseOver: true });
    await loop.step();
    expect(asked).toEqual(['reap']);
    find(clockAt(1_000, 0));
    loop.notePulse({ ...QUIET, leaseOver: true });
    await loop.step();
    expect(asked).toEqual(['reap', 'reap', 'settle']);
  });

  it('asks for the end of runs that take too long', async () => {
    const { loop, asked } = rig();
    loop.notePulse({ ...QUIET, overdue: true });
    await loop.step();
    expect(asked).toEqual(['cancelOverdue']);
  });
});
