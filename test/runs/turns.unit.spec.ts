import { expect, it } from 'vitest';
import type { Timing } from '../../src/platform/time.js';
import { Turns } from '../../src/runs/turns.js';

const MIB = 1024 * 1024;

/** Time that passes only where somebody waits. */
function passing(): Timing & { readonly delays: number[] } {
  const delays: number[] = [];
  let now = 0;
  const delay = async (ms: number) => {
    delays.push(ms);
    now += ms;
  };
  return { delays, delay, monotonicMs: () => now, random: () => 1 } as unknown as Timing & { delays: number[] };
}

const broken = () => Object.assign(new Error('gone'), { code: 'CONNECTION_CLOSED' });

it('one goes at a time, in the order of their coming', async () => {
  const turns = new Turns(passing());
  const log: string[] = [];
  const work = (name: string) =>
    turns.take(1, async () => {
      log.push(`${name} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      log.push(`${name} ends`);
      return name;
    });
  expect(await Promise.all(['a', 'b', 'c'].map(work))).toEqual(['a', 'b', 'c']);
  expect(log).toEqual(['a', 'b', 'c'].flatMap((name) => [`${name} begins`, `${name} ends`]));
});

it('what failed gives its turn on', async () => {
  const turns = new Turns(passing());
  const failing = turns.take(1, () => Promise.reject(new Error('no')));
  const next = turns.take(1, async () => 'yes');
  await expect(failing).rejects.toThrow('no');
  expect(await next).toBe('yes');
});

it('after a transient error it is done again, and nobody goes in between', async () => {
  const turns = new Turns(passing());
  const log: string[] = [];
  const shaky = turns.take(1, async () => {
    log.push('shaky');
    if (log.length < 3) throw broken();
    return 'done';
  });
  const next = turns.take(1, async () => log.push('next'));
  expect(await shaky).toBe('done');
  await next;
  expect(log).toEqual(['shaky', 'shaky', 'shaky', 'next']);
});

it('is not done again after another error, nor for longer than a caller waits', async () => {
  const timing = passing();
  const turns = new Turns(timing);
  let tries = 0;
  const once = turns.persist(async () => {
    tries += 1;
    throw Object.assign(new Error('taken'), { code: '23505' });
  });
  await expect(once).rejects.toThrow('taken');
  expect(tries).toBe(1);
  await expect(turns.persist(() => Promise.reject(broken()))).rejects.toThrow('gone');
  const waited = timing.delays.reduce((sum, ms) => sum + ms, 0);
  expect(waited).toBeGreaterThan(8_000);
  expect(waited).toBeLessThan(10_000);
});

it('more than may wait is refused, by number and by weight; what has left no longer counts', async () => {
  const turns = new Turns(passing());
  let release = () => {};
  const first = turns.take(40 * MIB, () => new Promise<void>((resolve) => (release = resolve)));
  const second = turns.take(40 * MIB, async () => 'second');
  const crowded = {
    code: 'unavailable',
    message: expect.stringContaining('other large requests are being carried out'),
  };
  await expect(turns.take(9 * MIB, async () => 'third')).rejects.toMatchObject(crowded);
  const many = Array.from({ length: 199 }, () => turns.take(1, async () => 'small'));
  await expect(turns.take(1, async () => 'one too many')).rejects.toMatchObject(crowded);
  release();
  await first;
  expect(await second).toBe('second');
  await Promise.all(many);
  expect(await turns.take(48 * MIB, async () => 'alone')).toBe('alone');
});
