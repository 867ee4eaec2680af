/** Group commit: what goes out together, what is tried again, and who gets an error. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StatementTimeout } from '../../../src/platform/db/db.js';
import { Lane, type LaneOptions } from '../../../src/platform/db/lane.js';
import { Overloaded } from '../../../src/platform/db/permits.js';
import type { Timing } from '../../../src/platform/time.js';

/** A flush that waits until the test answers it. */
class Gate {
  readonly flushes: { readonly items: readonly string[]; resolve(): void; reject(error: unknown): void }[] = [];
  readonly flush = (items: readonly string[]) =>
    new Promise<string[]>((resolve, reject) => {
      this.flushes.push({ items, resolve: () => resolve(items.map((item) => item.toUpperCase())), reject });
    });
  get sizes(): number[] {
    return this.flushes.map((flush) => flush.items.length);
  }
}

class FakeTiming implements Timing {
  nowMs = 0;
  readonly delays: number[] = [];
  monotonicMs = () => this.nowMs;
  random = () => 0.5;
  delay = (ms: number) => {
    this.delays.push(ms);
    this.nowMs += ms;
    return Promise.resolve(undefined);
  };
}

const transient = Object.assign(new Error('connection lost'), { code: '08006' });
const fault = (item: string) => Object.assign(new Error(`${item} is guilty`), { code: '22P05' });
/** As long as an item waits for others of the same breath. */
const breath = () => Promise.resolve();
const settle = () => new Promise((resolve) => setImmediate(resolve));

function laneOf(flush: LaneOptions<string, string>['flush'], over: Partial<LaneOptions<string, string>> = {}) {
  const timing = new FakeTiming();
  return { timing, lane: new Lane({ flush, maxItems: 4, retryForMs: 10_000, timing, ...over }) };
}

/** Pushes the first, and once it is in flight the others. */
async function pushed(
  lane: Lane<string, string>,
  [first = '', ...others]: readonly string[],
): Promise<Promise<string>[]> {
  const answer = lane.push(first);
  answer.catch(() => undefined);
  await breath();
  return [answer, ...others.map((item) => lane.push(item))];
}

describe('group commit', () => {
  it('a lone item goes out at once, alone', async () => {
    const gate = new Gate();
    void laneOf(gate.flush).lane.push('a');
    await breath();
    expect(gate.sizes).toEqual([1]);
  });

  it('what is pushed in one breath goes out together', async () => {
    const gate = new Gate();
    const { lane } = laneOf(gate.flush);
    for (const item of 'abc') void lane.push(item);
    await breath();
    expect(gate.sizes).toEqual([3]);
  });

  it('a lone item does not wait for company, the next one does, and a full flush does not', async () => {
    const { lane, timing } = laneOf((items) => Promise.resolve(items), { paceMs: 5 });
    await lane.push('a');
    expect(timing.delays).toEqual([]);
    timing.nowMs += 2;
    await lane.push('b');
    expect(timing.delays).toEqual([3]);
    await Promise.all([...'cdef'].map((item) => lane.push(item)));
    expect(timing.delays).toEqual([3]);
    timing.nowMs += 5;
    await lane.push('g');
    expect(timing.delays).toEqual([3]);
  });

  it('as many flushes as it may have are in flight at a time, and no more', async () => {
    const gate = new Gate();
    const { lane } = laneOf(gate.flush, { maxFlushes: 2 });
    const answers: Promise<string>[] = [];
    for (const item of 'abcd') {
      answers.push(lane.push(item));
      await settle();
    }
    expect(gate.sizes).toEqual([1, 1]);
    gate.flushes[1]?.resolve();
    await settle();
    expect(gate.sizes).toEqual([1, 1, 2]);
    for (const flush of gate.flushes) flush.resolve();
    expect(await Promise.all(answers)).toEqual([...'ABCD']);
  });

  it('what arrives while a flush is in flight goes out together in the next one, at most so many', async () => {
    const gate = new Gate();
    const { lane } = laneOf(gate.flush);
    const answers = await pushed(lane, [...'abcdefg']);
    expect(gate.sizes).toEqual([1]);
    for (const size of [
      [1, 4],
      [1, 4, 2],
    ]) {
      gate.flushes.at(-1)?.resolve();
      await settle();
      expect(gate.sizes).toEqual(size);
    }
    gate.flushes.at(-1)?.resolve();
    expect(await Promise.all(answers)).toEqual([...'ABCDEFG']);
  });

  it('a lane that was idle takes up work again', async () => {
    const { lane } = laneOf((items) => Promise.resolve(items.map((item) => item.toUpperCase())));
    expect(await lane.push('a')).toBe('A');
    expect(await lane.push('b')).toBe('B');
  });

  it('each caller gets the answer to its own item, however they came together', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(fc.string(), { maxLength: 9 }), { maxLength: 6 }), async (waves) => {
        const { lane } = laneOf(async (items) => {
          await settle();
          return items.map((item) => `<${item}>`);
        });
        const answers: Promise<string>[] = [];
        for (const wave of waves) {
          answers.push(...wave.map((item) => lane.push(item)));
          await settle();
        }
        expect(await Promise.all(answers)).toEqual(waves.flat().map((item) => `<${item}>`));
      }),
      { numRuns: 50 },
    );
  });

  it('tells how many went out and how long it took', async () => {
    const flushed: [number, number][] = [];
    const { lane, timing } = laneOf(
      (items) => {
        timing.nowMs += 7;
        return Promise.resolve(items);
      },
      { onFlush: (size, tookMs) => flushed.push([size, tookMs]) },
    );
    await lane.push('a');
    expect(flushed).toEqual([[1, 7]]);
  });
});

describe('an error that is the fault of an item', () => {
  it('F155 splits the flush until the guilty ones stand alone: only their callers get it, the others commit', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(fc.string(), { minLength: 1, maxLength: 20 }), fc.nat(), async (items, seed) => {
        const guilty = new Set(items.filter((_, i) => ((seed >> (i % 20)) & 1) === 1));
        const committed: string[] = [];
        const { lane } = laneOf(
          (batch) => {
            const bad = batch.find((item) => guilty.has(item));
            if (bad !== undefined) return Promise.reject(fault(bad));
            committed.push(...batch);
            return Promise.resolve(batch);
          },
          { maxItems: 20 },
        );
        const answers = await Promise.allSettled(items.map((item) => lane.push(item)));
        for (const [i, answer] of answers.entries()) {
          const item = items[i] ?? '';
          if (guilty.has(item))
            expect(answer).toMatchObject({ status: 'rejected', reason: { message: `${item} is guilty` } });
          else expect(answer).toEqual({ status: 'fulfilled', value: item });
        }
        expect(committed.sort()).toEqual(items.filter((item) => !guilty.has(item)).sort());
      }),
      { numRuns: 100 },
    );
  });

  it('does not wait before it splits', async () => {
    const { lane, timing } = laneOf((items) =>
      items.includes('x') ? Promise.reject(fault('x')) : Promise.resolve(items),
    );
    await Promise.allSettled(['a', 'x', 'b'].map((item) => lane.push(item)));
    expect(timing.delays).toEqual([]);
  });
});

describe('a transient error', () => {
  it.each([transient, new StatementTimeout('no answer'), Object.assign(new Error('deadlock'), { code: '40P01' })])(
    'F155 sends the same items again, unchanged: %s',
    async (error) => {
      const seen: (readonly string[])[] = [];
      const { lane, timing } = laneOf((items) => {
        seen.push(items);
        return seen.length < 4 ? Promise.reject(error) : Promise.resolve(items);
      });
      expect(await lane.push('a')).toBe('a');
      expect(seen).toEqual([['a'], ['a'], ['a'], ['a']]);
      expect(timing.delays).toEqual([37.5, 75, 150]);
    },
  );

  it('waits longer each time, at most a second', async () => {
    let tries = 0;
    const { lane, timing } = laneOf((items) => (++tries < 12 ? Promise.reject(transient) : Promise.resolve(items)), {
      retryForMs: Number.POSITIVE_INFINITY,
    });
    await lane.push('a');
    expect(Math.max(...timing.delays)).toBeLessThanOrEqual(1_000);
    expect(timing.delays).toEqual([...timing.delays].sort((a, b) => a - b));
  });

  it.each([new StatementTimeout('no answer'), Object.assign(new Error('too slow'), { code: '57014' })])(
    'a flush that took too long goes out again in halves, not whole: %s',
    async (error) => {
      const seen: string[] = [];
      const { lane, timing } = laneOf((items) => {
        seen.push(items.join(''));
        return items.length > 2 ? Promise.reject(error) : Promise.resolve(items);
      });
      const answers = await pushed(lane, [...'0abcd']);
      expect(await Promise.all(answers)).toEqual([...'0abcd']);
      expect(seen).toEqual(['0', 'abcd', 'ab', 'cd']);
      expect(timing.delays).toEqual([]);
    },
  );

  it('halves share the time for trying: a database that never answers in time keeps nobody for longer', async () => {
    const { lane, timing } = laneOf(
      (items) => {
        if (items[0] === '0') return Promise.resolve(items);
        timing.nowMs += 6_000;
        return Promise.reject(new StatementTimeout('no answer'));
      },
      { retryForMs: 8_000 },
    );
    const answers = await Promise.allSettled(await pushed(lane, [...'0abcd']));
    expect(answers.map((answer) => answer.status)).toEqual(['fulfilled', ...Array(4).fill('rejected')]);
    expect(timing.nowMs).toBe(18_000);
  });

  it('is given to every caller of the flush when the time for trying is over, without splitting', async () => {
    let tries = 0;
    const gate = new Gate();
    const { lane } = laneOf(
      (items) => {
        tries += items.length > 1 ? 1 : 0;
        return items.length > 1 ? Promise.reject(transient) : gate.flush(items);
      },
      { retryForMs: 100 },
    );
    const answers = await pushed(lane, ['a', 'b', 'c']);
    gate.flushes[0]?.resolve();
    const results = await Promise.allSettled(answers);
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'rejected']);
    expect(tries).toBe(3);
  });

  it('is not tried again after the lane was told to stop', async () => {
    let tries = 0;
    const { lane } = laneOf(
      () => {
        tries += 1;
        return Promise.reject(transient);
      },
      { retryForMs: Number.POSITIVE_INFINITY, onRetry: () => lane.stopRetrying() },
    );
    await expect(lane.push('a')).rejects.toBe(transient);
    expect(tries).toBe(2);
  });

  it('tells each time that it tries again', async () => {
    const told: number[] = [];
    let tries = 0;
    const { lane } = laneOf((items) => (++tries < 3 ? Promise.reject(transient) : Promise.resolve(items)), {
      onRetry: (_, attempt) => told.push(attempt),
    });
    await lane.push('a');
    expect(told).toEqual([1, 2]);
  });
});

describe('a lane that callers fill', () => {
  const load = { bytesOf: (item: string) => item.length, maxFlushBytes: 10, maxWaitingItems: 4, maxWaitingBytes: 25 };

  it('a flush is no heavier than it may be, but takes an item that is too heavy by itself', async () => {
    const gate = new Gate();
    const { lane } = laneOf(gate.flush, { load });
    const answers = await pushed(lane, ['0', 'x'.repeat(4), 'y'.repeat(6), 'z'.repeat(12), 'a']);
    for (let flush = 1; flush <= 4; flush += 1) {
      expect(gate.flushes).toHaveLength(flush);
      gate.flushes.at(-1)?.resolve();
      await settle();
    }
    await Promise.all(answers);
    expect(gate.flushes.map(({ items }) => items.map((item) => item.length))).toEqual([[1], [4, 6], [12], [1]]);
  });

  it.each([
    ['too many', ['a', 'b', 'c', 'd'], 'e'],
    ['too heavy', ['a'.repeat(10), 'b'.repeat(10)], 'c'.repeat(6)],
  ])('what would make more than this wait is refused: %s; what waits is carried out', async (_, waiting, refused) => {
    const gate = new Gate();
    const { lane } = laneOf(gate.flush, { load });
    const answers = await pushed(lane, ['0', ...waiting]);
    await expect(lane.push(refused)).rejects.toBeInstanceOf(Overloaded);
    for (let flush = 0; flush < gate.flushes.length; flush += 1) {
      gate.flushes[flush]?.resolve();
      await settle();
    }
    expect(await Promise.all(answers)).toEqual(['0', ...waiting].map((item) => item.toUpperCase()));
    const again = lane.push(refused);
    await breath();
    gate.flushes.at(-1)?.resolve();
    expect(await again).toBe(refused.toUpperCase());
  });
});
