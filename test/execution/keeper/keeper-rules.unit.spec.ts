/** The keeper's decisions: when it renews and retries, and what it takes for a standstill, a silence or a clock's jump. */
import { describe, expect, it } from 'vitest';
import {
  backoffMs,
  isOutage,
  isSilent,
  isStalled,
  renewalsUntilOthersRenewed,
  SILENT_TICKS,
  type Standstill,
  standstillAfter,
  statementLimitMs,
  type Unacknowledged,
  unacknowledgedAfter,
  untilNextRenewalMs,
  untilToolsStoppedMs,
} from '../../../src/execution/keeper/keeper.rules.js';
import { clockShiftMs } from '../../../src/platform/db/clock.rules.js';

describe('times of a renewal', () => {
  it('S4-11 the next renewal is sent, and has time to arrive, before one interval has passed', () => {
    expect(untilNextRenewalMs(1_000, 1_000, 5_000)).toBe(4_750);
    expect(untilNextRenewalMs(1_000, 4_000, 5_000)).toBe(1_750);
    expect(untilNextRenewalMs(1_000, 9_000, 5_000)).toBe(0);
  });

  it('a statement is bounded by the interval, and by five seconds', () => {
    expect(statementLimitMs(2_000)).toBe(2_000);
    expect(statementLimitMs(60_000)).toBe(5_000);
  });

  it('retries start after 250 ms and are never more than a second apart', () => {
    expect([1, 2, 3, 4, 5, 1_000_000].map(backoffMs)).toEqual([250, 500, 1_000, 1_000, 1_000, 1_000]);
  });

  it('an outage is what can have cost others a renewal: from one and a half intervals on, or before the first', () => {
    expect(isOutage(undefined, 1_000, 5_000)).toBe(true);
    expect(isOutage(1_000, 8_500, 5_000)).toBe(false);
    expect(isOutage(1_000, 8_501, 5_000)).toBe(true);
  });

  it('F042 the wait for others to renew covers a try begun just before the database came back, the pause and the next', () => {
    for (const renewMs of [1_000, 2_000, 5_000, 10_000, 180_000]) {
      const waitMs = (renewalsUntilOthersRenewed(renewMs) - 1) * untilNextRenewalMs(0, 0, renewMs);
      const latestMs = statementLimitMs(renewMs) + backoffMs(1_000_000) + 1_000;
      expect(waitMs).toBeGreaterThanOrEqual(latestMs);
    }
    expect(renewalsUntilOthersRenewed(5_000)).toBe(3);
  });
});

describe('standstill of the main thread', () => {
  const watch = (counters: readonly bigint[]) =>
    counters.reduce<Standstill>((last, counter) => standstillAfter(last, counter), { counter: 0n, ticks: 0 });

  it('is a stall after as many ticks of the keeper as the limit has', () => {
    expect(isStalled(watch([1n, 1n, 1n]), 3_000, 1_000)).toBe(false);
    expect(isStalled(watch([1n, 1n, 1n, 1n]), 3_000, 1_000)).toBe(true);
  });

  it('starts again from zero whenever the counter moved', () => {
    expect(watch([1n, 1n, 1n, 2n])).toEqual({ counter: 2n, ticks: 0 });
  });

  it('a process that was stopped as a whole is not stalled, however long: the keeper counted no ticks either', () => {
    // Two hours pass between these two ticks; nothing in the judgement can see them.
    expect(isStalled(watch([7n, 7n, 8n]), 3_000, 1_000)).toBe(false);
    expect(isStalled(watch([7n, 7n]), 3_000, 1_000)).toBe(false);
  });

  it('one tick without movement is never a stall, even when the limit is a single tick', () => {
    expect(isStalled(watch([1n, 1n]), 1_000, 1_000)).toBe(false);
  });

  it('the process ends only after the last extension has had its deadline and the grace period', () => {
    const settings = { toolDeadlineMs: 18_000, graceMs: 10_000 };
    expect(untilToolsStoppedMs(100_000, 110_000, settings)).toBe(18_000);
    expect(untilToolsStoppedMs(100_000, 200_000, settings)).toBe(0);
    expect(untilToolsStoppedMs(undefined, 200_000, settings)).toBe(0);
  });
});

describe('silence of the supervisor', () => {
  interface Tick {
    readonly sent: number;
    readonly acknowledged: number;
  }
  const watch = (ticks: readonly Tick[]) =>
    ticks.reduce<Unacknowledged>((last, tick) => unacknowledgedAfter(last, tick.sent, tick.acknowledged), []);
  const repeat = (count: number, tick: Tick) => Array.from({ length: count }, () => tick);

  it('is an extension that stays unacknowledged for ten ticks, not for nine', () => {
    const unanswered = { sent: 1, acknowledged: 0 };
    expect(isSilent(watch(repeat(SILENT_TICKS, unanswered)))).toBe(false);
    expect(isSilent(watch(repeat(SILENT_TICKS + 1, unanswered)))).toBe(true);
  });

  it('is judged by the oldest extension: newer ones that go out meanwhile do not put it off', () => {
    const ticks = Array.from({ length: SILENT_TICKS + 1 }, (_, i) => ({ sent: 1 + i, acknowledged: 0 }));
    expect(isSilent(watch(ticks))).toBe(true);
  });

  it('a supervisor that is always one extension behind is not silent', () => {
    const ticks = Array.from({ length: 50 }, (_, i) => ({ sent: 2 + i, acknowledged: 1 + i }));
    expect(isSilent(watch(ticks))).toBe(false);
  });

  it('acknowledging an extension acknowledges all before it', () => {
    expect(
      watch([
        { sent: 1, acknowledged: 0 },
        { sent: 2, acknowledged: 0 },
        { sent: 3, acknowledged: 3 },
      ]),
    ).toEqual([]);
  });

  it('a main thread that stood still and finds the acknowledgements waiting does not take it for silence', () => {
    // Extensions 2 … 25 went out while it stood still: one tick sees them all, the next has taken in the answers.
    expect(isSilent(watch([...repeat(3, { sent: 1, acknowledged: 1 }), { sent: 25, acknowledged: 1 }]))).toBe(false);
    expect(
      watch([
        { sent: 25, acknowledged: 1 },
        { sent: 25, acknowledged: 25 },
      ]),
    ).toEqual([]);
  });

  it('nothing sent is nothing to wait for', () => {
    expect(isSilent(watch(repeat(100, { sent: 0, acknowledged: 0 })))).toBe(false);
  });
});

describe("movement of the database's clock", () => {
  const sample = (sentAtMs: number, receivedAtMs: number, databaseAtMs: number) => ({
    sentAtMs,
    receivedAtMs,
    databaseAtMs,
  });

  it('F009 is nothing when both clocks went on alike', () => {
    expect(clockShiftMs(sample(0, 2, 50_001), sample(5_000, 5_002, 55_001))).toEqual({ least: 0, most: 2 });
  });

  it('F009 is seen forwards and backwards, within what the round trips leave open', () => {
    expect(clockShiftMs(sample(0, 2, 50_001), sample(5_000, 5_002, 65_001))).toEqual({ least: 9_998, most: 10_002 });
    expect(clockShiftMs(sample(0, 2, 50_001), sample(5_000, 5_002, 45_001))).toEqual({ least: 9_998, most: 10_002 });
  });

  it('F009 a slow answer may hide a jump: the most says so, the least does not claim one', () => {
    const shift = clockShiftMs(sample(0, 0, 50_000), sample(5_000, 8_000, 55_000));
    expect(shift).toEqual({ least: 0, most: 3_000 });
  });
});
