import { describe, expect, it } from 'vitest';
import {
  type ClockReading,
  extend,
  judge,
  type LeaseState,
  newLease,
  observe,
} from '../../../src/execution/supervisor/deadline.rules.js';

const DEADLINE_MS = 18_000;
const START: ClockReading = { monotonicMs: 1_000_000, wallMs: 1_800_000_000_000, uptimeMs: 5_000_000 };

/** All three clocks `byMs` further, and then the wall clock and the uptime by as much again as is said. */
function later(from: ClockReading, byMs: number, gap: { wallMs?: number; uptimeMs?: number } = {}): ClockReading {
  return {
    monotonicMs: from.monotonicMs + byMs,
    wallMs: from.wallMs + byMs + (gap.wallMs ?? 0),
    uptimeMs: from.uptimeMs === null ? null : from.uptimeMs + byMs + (gap.uptimeMs ?? 0),
  };
}

function renewed(): LeaseState {
  return extend(newLease(START), START.monotonicMs);
}

/** Judges after a tick of 250 ms in which the clocks made the given gap. */
function afterGap(gap: { wallMs?: number; uptimeMs?: number }, state = renewed()) {
  const reading = later(state.last, 250, gap);
  return judge(observe(state, reading, DEADLINE_MS), reading.monotonicMs, DEADLINE_MS);
}

describe('the deadline of an incarnation', () => {
  it('has passed while no extension was ever seen', () => {
    expect(judge(newLease(START), START.monotonicMs, DEADLINE_MS).isExpired).toBe(true);
  });

  it('is counted from when the renewal was sent, to the millisecond', () => {
    const state = extend(newLease(START), START.monotonicMs - 3_000);
    expect(judge(state, START.monotonicMs + 14_999, DEADLINE_MS).isExpired).toBe(false);
    expect(judge(state, START.monotonicMs + 15_000, DEADLINE_MS)).toEqual({ isExpired: true, overdueMs: 0 });
    expect(judge(state, START.monotonicMs + 19_000, DEADLINE_MS)).toEqual({ isExpired: true, overdueMs: 4_000 });
  });

  it('only moves forward, and never beyond the present', () => {
    const older = extend(renewed(), START.monotonicMs - 10_000);
    expect(judge(older, START.monotonicMs + 17_999, DEADLINE_MS).isExpired).toBe(false);
    const future = extend(renewed(), START.monotonicMs + 3_600_000);
    expect(judge(future, START.monotonicMs + 18_000, DEADLINE_MS).isExpired).toBe(true);
  });
});

describe('a gap between the clocks', () => {
  it('of a suspended machine (uptime goes on, the monotonic clock stood still) is the deadline', () => {
    expect(afterGap({ uptimeMs: 60_000, wallMs: 60_000 })).toEqual({ isExpired: true, overdueMs: 42_250 });
  });

  it('of a paused machine whose wall clock was set right afterwards is the deadline', () => {
    expect(afterGap({ wallMs: 30_000 }).isExpired).toBe(true);
  });

  it('above 2 s is the deadline even when the time it shows would not reach it; the grace period is left whole', () => {
    expect(afterGap({ wallMs: 2_001 })).toEqual({ isExpired: true, overdueMs: 0 });
  });

  it('up to 2 s only brings the deadline nearer by as much', () => {
    const reading = later(START, 250, { wallMs: 2_000 });
    const state = observe(renewed(), reading, DEADLINE_MS);
    expect(judge(state, reading.monotonicMs, DEADLINE_MS).isExpired).toBe(false);
    expect(judge(state, START.monotonicMs + 15_999, DEADLINE_MS).isExpired).toBe(false);
    expect(judge(state, START.monotonicMs + 16_000, DEADLINE_MS).isExpired).toBe(true);
  });

  it('of many small pauses adds up', () => {
    let state = renewed();
    for (let pause = 0; pause < 9; pause += 1) {
      state = observe(state, later(state.last, 250, { uptimeMs: 1_900 }), DEADLINE_MS);
    }
    expect(judge(state, state.last.monotonicMs, DEADLINE_MS).isExpired).toBe(true);
  });

  it('of slewing, at the fastest a clock is slewed, is nothing', () => {
    let state = renewed();
    for (let tick = 0; tick < 71; tick += 1) {
      state = observe(state, later(state.last, 250, { wallMs: 25 }), DEADLINE_MS);
    }
    expect(judge(state, state.last.monotonicMs, DEADLINE_MS).isExpired).toBe(false);
  });

  it('backwards is nothing', () => {
    expect(afterGap({ wallMs: -3_600_000 }).isExpired).toBe(false);
  });

  it('does not touch an extension that was sent after it, and voids one that was sent before and arrives after', () => {
    const jumped = observe(renewed(), later(START, 250, { wallMs: 60_000 }), DEADLINE_MS);
    const stale = extend(jumped, START.monotonicMs + 100);
    expect(judge(stale, jumped.last.monotonicMs, DEADLINE_MS).isExpired).toBe(true);
    const fresh = extend(jumped, jumped.last.monotonicMs);
    expect(judge(fresh, jumped.last.monotonicMs, DEADLINE_MS).isExpired).toBe(false);
  });

  it('is found by the wall clock alone where no uptime goes on in a suspend', () => {
    const state = extend(newLease({ ...START, uptimeMs: null }), START.monotonicMs);
    expect(afterGap({}, state).isExpired).toBe(false);
    expect(afterGap({ wallMs: 60_000 }, state).isExpired).toBe(true);
  });

  it('is none when the process itself stood still: all clocks went on, and the deadline counts by itself', () => {
    const reading = later(START, 17_000);
    const state = observe(renewed(), reading, DEADLINE_MS);
    expect(judge(state, reading.monotonicMs, DEADLINE_MS).isExpired).toBe(false);
  });
});
