/** How often the database is asked what waits, and how long a scrape waits for the answer. */
import { describe, expect, it } from 'vitest';
import { QueueStanding } from '../../src/runs/queue.metrics.js';
import type { QueueDepth } from '../../src/runs/queue-depth.sql.js';

const depth = (n: number): readonly QueueDepth[] => [
  { queue: 'default', depth: n, isEstimate: false, oldestSeconds: 0, oldestAt: null, paused: false, untold: 0 },
];

/** A standing whose clock and whose database go on when the test says so. */
function rig() {
  let now = 0;
  const asked: PromiseWithResolvers<readonly QueueDepth[]>[] = [];
  const delays: { readonly untilMs: number; readonly end: () => void }[] = [];
  const timing = {
    monotonicMs: () => now,
    random: () => 0,
    delay: (ms: number) => new Promise<void>((end) => delays.push({ untilMs: now + ms, end })),
  };
  const standing = new QueueStanding(() => {
    const answer = withResolvers<readonly QueueDepth[]>();
    asked.push(answer);
    return answer.promise;
  }, timing);
  const pass = (ms: number) => {
    now += ms;
    for (const { untilMs, end } of delays) if (untilMs <= now) end();
  };
  return { standing, asked, pass };
}

interface PromiseWithResolvers<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

function withResolvers<T>(): PromiseWithResolvers<T> {
  let resolve: (value: T) => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('the answer of the database', () => {
  it('is shared for a second by all who scrape', async () => {
    const { standing, asked, pass } = rig();
    const scrapes = [standing.now(), standing.now(), standing.now()];
    asked[0]?.resolve(depth(7));
    expect(await Promise.all(scrapes)).toEqual([depth(7), depth(7), depth(7)]);
    pass(999);
    expect(await standing.now()).toEqual(depth(7));
    expect(asked).toHaveLength(1);
    pass(1);
    const next = standing.now();
    asked[1]?.resolve(depth(8));
    expect(await next).toEqual(depth(8));
  });

  it('is shared for longer the longer it took', async () => {
    const { standing, asked, pass } = rig();
    const first = standing.now();
    pass(200);
    asked[0]?.resolve(depth(7));
    await first;
    await settle();
    pass(3_999);
    await standing.now();
    expect(asked).toHaveLength(1);
    pass(1);
    const second = standing.now();
    expect(asked).toHaveLength(2);
    pass(10_000);
    asked[1]?.resolve(depth(8));
    await second;
    pass(29_999);
    expect(await standing.now()).toEqual(depth(8));
    pass(1);
    void standing.now();
    expect(asked, 'but never for longer than 30 s').toHaveLength(3);
  });

  it('is not waited for any longer than 250 ms, and not asked for again while it is under way', async () => {
    const { standing, asked, pass } = rig();
    const first = standing.now();
    pass(249);
    const second = standing.now();
    pass(1);
    expect(await first).toEqual([]);
    pass(60_000);
    expect(await second).toEqual([]);
    const third = standing.now();
    expect(asked).toHaveLength(1);
    asked[0]?.resolve(depth(7));
    expect(await third).toEqual(depth(7));
  });

  it('that can not be had leaves a scrape without these lines, and is asked for again a second later', async () => {
    const { standing, asked, pass } = rig();
    const first = standing.now();
    pass(240);
    asked[0]?.reject(new Error('the database is away'));
    expect(await first).toEqual([]);
    pass(1_000);
    const second = standing.now();
    asked[1]?.resolve(depth(7));
    expect(await second).toEqual(depth(7));
  });
});
