import { describe, expect, it } from 'vitest';
import { type FileState, Growth } from '../../../src/execution/supervisor/growth.rules.js';

const state = (size: number, mtimeNs: number): FileState => ({ size: BigInt(size), mtimeNs: BigInt(mtimeNs) });

/** One of which ten bytes were read at the time 1. */
function readGrowth(): Growth {
  const growth = new Growth();
  growth.advance(10, state(10, 1));
  return growth;
}

describe('a file that was read so far', () => {
  it('is written anew when it is shorter than what was read of it', () => {
    expect(readGrowth().isAnew(state(9, 1), false)).toBe(true);
    expect(readGrowth().isAnew(state(0, 2), false)).toBe(true);
  });

  it('has grown when it is longer, whatever its mtime', () => {
    expect(readGrowth().isAnew(state(11, 1), true)).toBe(false);
    expect(readGrowth().isAnew(state(11, 2), true)).toBe(false);
  });

  it('is written anew when of two looks in a row each finds the same size and another mtime, also another each time', () => {
    for (const mtimeNs of [2, 3]) {
      const growth = readGrowth();
      expect([growth.isAnew(state(10, 2), false), growth.isAnew(state(10, mtimeNs), false)]).toEqual([false, true]);
    }
  });

  it('is that at once when no other look follows', () => {
    expect(readGrowth().isAnew(state(10, 2), true)).toBe(true);
    expect(readGrowth().isAnew(state(10, 1), true)).toBe(false);
  });

  it('is not that when a look met an append half way, however often', () => {
    const growth = readGrowth();
    for (let size = 10; size < 100; size += 1) {
      expect(growth.isAnew(state(size, size), false)).toBe(false);
      expect(growth.isAnew(state(size + 1, size), false)).toBe(false);
      growth.advance(1, state(size + 1, size));
    }
  });

  it('begins with nothing read and nothing suspected', () => {
    const growth = readGrowth();
    growth.isAnew(state(10, 2), false);
    growth.beginAnew();
    expect(growth.offset).toBe(0);
    expect(growth.isAnew(state(0, 3), true)).toBe(false);
    growth.advance(10, state(10, 3));
    expect(growth.isAnew(state(10, 4), false)).toBe(false);
    expect(growth.offset).toBe(10);
  });
});
