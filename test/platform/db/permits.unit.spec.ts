/** Who goes next, and who is told that it is too much. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { isTransient } from '../../../src/platform/db/db.js';
import { Overloaded, Permits } from '../../../src/platform/db/permits.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function rig(maxWaiting = 3) {
  const permits = new Permits({ size: 1, maxWaiting, maxWaitMs: 1_000 });
  const went: string[] = [];
  const enter = (name: string) =>
    permits.wait().then(
      () => went.push(name),
      (error: unknown) => went.push(`${name}: ${error instanceof Overloaded && isTransient(error)}`),
    );
  return { permits, went, enter };
}

it('a permit that is free is had at once, and no more than there are', () => {
  const { permits } = rig();
  expect([permits.tryTake(), permits.tryTake()]).toEqual([true, false]);
  permits.give();
  expect([permits.tryTake(), permits.tryTake()]).toEqual([true, false]);
});

it('who waits is let in by the order of coming, and nobody slips in between', async () => {
  const { permits, went, enter } = rig();
  permits.tryTake();
  const entered = ['a', 'b', 'c'].map(enter);
  for (let i = 0; i < 3; i += 1) {
    permits.give();
    expect(permits.tryTake()).toBe(false);
  }
  await Promise.all(entered);
  expect(went).toEqual(['a', 'b', 'c']);
  permits.give();
  expect(permits.tryTake()).toBe(true);
});

it('more than so many in line are refused', async () => {
  const { permits, went, enter } = rig(2);
  permits.tryTake();
  void enter('a');
  void enter('b');
  await enter('c');
  expect(went).toEqual(['c: true']);
  expect(permits.waiting).toBe(2);
});

it('who waited for too long is told so, and takes no permit of those behind', async () => {
  const { permits, went, enter } = rig();
  permits.tryTake();
  const first = enter('a');
  await vi.advanceTimersByTimeAsync(999);
  const second = enter('b');
  await vi.advanceTimersByTimeAsync(1);
  await first;
  expect(went).toEqual(['a: true']);
  permits.give();
  await second;
  expect(went).toEqual(['a: true', 'b']);
});
