import { describe, expect, it } from 'vitest';
import { Slices } from '../../src/execution/slices.js';

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Slices whose every look at the clock takes a millisecond, and what was done so far. */
function sliced() {
  let nowMs = 0;
  const done: string[] = [];
  const slices = new Slices({
    monotonicMs: () => {
      nowMs += 1;
      return nowMs;
    },
  });
  const add = (name: string, steps: number) => {
    function* job() {
      for (let i = 1; i <= steps; i += 1) {
        done.push(`${name}${i}`);
        yield;
      }
    }
    slices.add(job());
  };
  return { slices, add, done };
}

describe('work of which a tool chooses the amount', () => {
  it('begins when the caller has gone, and lets everything else have its turn after each slice', async () => {
    const { slices, add, done } = sliced();
    add('a', 5);
    expect(done).toEqual([]);
    await turn();
    expect(done).toEqual(['a1', 'a2']);
    await turn();
    expect(done).toEqual(['a1', 'a2', 'a3', 'a4']);
    await slices.done();
    expect(done).toHaveLength(5);
  });

  it('is done in its order, also what comes while it goes on', async () => {
    const { slices, add, done } = sliced();
    add('a', 3);
    add('b', 0);
    await turn();
    add('c', 2);
    await slices.done();
    expect(done).toEqual(['a1', 'a2', 'a3', 'c1', 'c2']);
    add('d', 1);
    await slices.done();
    expect(done.at(-1)).toBe('d1');
    await slices.done();
  });
});
