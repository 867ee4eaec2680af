import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { StoreAnswer } from '../../src/execution/gatherer.js';
import { OutputWriter } from '../../src/execution/output-writer.js';
import { creditOf } from '../../src/execution/supervisor/frames.js';
import type { OutputBatch, OutputCut, OutputStream } from '../../src/runs/output.js';

/** Time that passes only when the test says so. */
class SteppedTiming {
  nowMs = 1_000_000;
  private sleepers: { readonly wakeMs: number; readonly wake: () => void }[] = [];

  monotonicMs(): number {
    return this.nowMs;
  }

  delay(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.sleepers.push({ wakeMs: this.nowMs + ms, wake: resolve });
      signal?.addEventListener('abort', () => resolve());
    });
  }

  async pass(ms: number): Promise<void> {
    this.nowMs += ms;
    for (const { wakeMs, wake } of this.sleepers) if (wakeMs <= this.nowMs) wake();
    await settled();
  }
}

/** Everything that can happen without time passing has happened. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

interface Asked {
  readonly batches: readonly (OutputBatch & { readonly text: string })[];
  readonly text: string;
  readonly answer: (stored: StoreAnswer) => Promise<void>;
  readonly fail: (error: Error) => Promise<void>;
}

/** A writer on a store that answers when, and as, the test says; `isPrompt` answers yes at once. */
function writing({ isPrompt = false, limitBytes = 64 * 1024 * 1024 } = {}) {
  const timing = new SteppedTiming();
  const asked: Asked[] = [];
  const credits: number[] = [];
  const cuts: OutputCut[] = [];
  let lost = 0;
  const writer = new OutputWriter({
    store: (places, data) =>
      new Promise((resolve, reject) => {
        const answer = (stored: StoreAnswer) => {
          resolve(stored);
          return settled();
        };
        const fail = (error: Error) => {
          reject(error);
          return settled();
        };
        let from = 0;
        const batches = places.map((place) => {
          from += place.bytes;
          return { ...place, text: data.toString('utf8', from - place.bytes, from) };
        });
        const text = data.toString();
        asked.push({ batches, text, answer, fail });
        if (isPrompt) resolve('stored');
      }),
    drop: async (cut) => {
      cuts.push(cut);
      return 'stored';
    },
    limitBytes,
    grantCredit: (bytes) => credits.push(bytes),
    onLost: () => {
      lost += 1;
    },
    timing,
  });
  const push = async (text: string, stream: OutputStream = 1, at = new Date(0)) => {
    writer.push(stream, at, Buffer.from(text));
    await settled();
  };
  const texts = () => asked.map(({ text }) => text);
  return { writer, timing, asked, credits, cuts, push, texts, lostCalls: () => lost };
}

function digestOf(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

describe('what a tool writes is stored', () => {
  it('in order of arrival, each batch of one stream, numbered from 1, with the time of its first chunk', async () => {
    const { writer, asked, push } = writing();
    const [first, second, third] = [new Date(1), new Date(2), new Date(3)];
    await push('a', 1, first);
    await push('b', 1, second);
    await push('c', 1, third);
    await push('d', 2, third);
    await push('e', 1, third);
    const drained = writer.drained();
    for (let i = 0; i < 2; i += 1) await asked[i]?.answer('stored');
    expect(await drained).toBe(digestOf('abcde'));
    expect(
      asked.map(({ batches }) =>
        batches.map(({ batch, stream, at, pos, streamPos, text }) => [batch, stream, at, pos, streamPos, text]),
      ),
    ).toEqual([
      [[1, 1, first, 0, 0, 'a']],
      [
        [2, 1, second, 1, 1, 'bc'],
        [3, 2, third, 3, 0, 'd'],
        [4, 1, third, 4, 3, 'e'],
      ],
    ]);
  });

  it('one batch at a time, however long the store takes, and credit comes back only after it', async () => {
    const { timing, asked, credits, push, texts } = writing();
    await push('first');
    await push('second');
    await timing.pass(10_000);
    expect(texts(), 'a second batch was sent before the first was stored').toEqual(['first']);
    expect(credits, 'credit for what is not stored').toEqual([]);
    await asked[0]?.answer('stored');
    expect(credits).toEqual([creditOf(5)]);
    expect(texts()).toEqual(['first', 'second']);
    await asked[1]?.answer('stored');
    expect(credits).toEqual([creditOf(5), creditOf(6)]);
  });

  it('at most 128 KiB at a time, whatever the sizes in which it came', async () => {
    const { writer, asked, push, texts } = writing({ isPrompt: true });
    const sizes = [1, 65_536, 65_536, 1, 200_000, 1];
    for (const [i, size] of sizes.entries()) writer.push(1, new Date(i), Buffer.alloc(size, String(i)));
    await push('');
    await writer.drained();
    expect(Math.max(...asked.map(({ text }) => text.length))).toBe(128 * 1024);
    expect(asked).toHaveLength(4);
    expect(texts().join('')).toBe(sizes.map((size, i) => String(i).repeat(size)).join(''));
  });
});

describe('what a tool writes is gathered', () => {
  it('never when the tool was quiet: its first words are stored at once', async () => {
    const { timing, push, texts } = writing({ isPrompt: true });
    await push('hello');
    expect(texts()).toEqual(['hello']);
    await timing.pass(60_000);
    await push('again');
    expect(texts()).toEqual(['hello', 'again']);
  });

  it('while it goes on talking: a line every 10 ms for a second is about ten batches, none older than 100 ms', async () => {
    const { writer, timing, texts, push } = writing({ isPrompt: true });
    let pushed = '';
    for (let i = 0; i < 100; i += 1) {
      await push(`${i}\n`);
      pushed += `${i}\n`;
      await timing.pass(10);
      const late = pushed.split('\n').length - texts().join('').split('\n').length;
      expect(late, 'lines that are held back').toBeLessThanOrEqual(10);
    }
    await writer.drained();
    expect(texts().join('')).toBe(pushed);
    expect(texts().length).toBeGreaterThanOrEqual(10);
    expect(texts().length).toBeLessThanOrEqual(12);
  });

  it('no longer than 100 ms, also when both streams take turns: their batches go out in one statement', async () => {
    const { timing, asked, push, texts } = writing({ isPrompt: true });
    await push('first');
    for (const stream of [1, 2, 1, 2] as const) await push('x', stream);
    await timing.pass(99);
    expect(texts()).toEqual(['first']);
    await timing.pass(1);
    expect(texts()).toEqual(['first', 'xxxx']);
    expect(asked[1]?.batches.map(({ batch, stream }) => [batch, stream])).toEqual([
      [2, 1],
      [3, 2],
      [4, 1],
      [5, 2],
    ]);
  });

  it('not once 128 KiB wait: a tool that writes a lot is never held up', async () => {
    const { push, texts, credits } = writing({ isPrompt: true });
    await push('first');
    await push('x'.repeat(131_071));
    expect(texts()).toEqual(['first']);
    await push('y');
    expect(texts().slice(1)).toEqual([`${'x'.repeat(131_071)}y`]);
    expect(credits).toEqual([creditOf(5), creditOf(131_071) + creditOf(1)]);
  });

  it('not once the tool has ended: the end of the run does not wait for company', async () => {
    const { writer, push, texts } = writing({ isPrompt: true });
    await push('first');
    await push('last words');
    expect(texts()).toEqual(['first']);
    expect(await writer.drained()).toBe(digestOf('firstlast words'));
    expect(texts()).toEqual(['first', 'last words']);
  });
});

describe('the digest', () => {
  it('is null when the tool wrote nothing', async () => {
    expect(await writing().writer.drained()).toBeNull();
  });
});

describe('over the limit', () => {
  it('the first half stays and of the rest the oldest goes before more is stored: never more than the limit', async () => {
    const limitBytes = 1024 * 1024;
    const { writer, asked, cuts, push } = writing({ isPrompt: true, limitBytes });
    const all: string[] = [];
    for (let i = 0; i < 100; i += 1) {
      all.push(String.fromCharCode(33 + (i % 90)).repeat(60_000));
      await push(all.at(-1) ?? '', i % 3 ? 1 : 2);
    }
    expect(await writer.drained(), 'the digest is of all that was written').toBe(digestOf(all.join('')));
    const stored = asked.flatMap(({ batches }) => batches);
    expect(stored.map(({ batch }) => batch)).toEqual(stored.map((_, i) => i + 1));
    for (const cut of cuts) {
      const gone = stored.filter(({ batch }) => batch > cut.afterBatch && batch <= cut.throughBatch);
      const bytesOf = (batches: typeof gone) => batches.reduce((sum, { bytes }) => sum + bytes, 0);
      const before = stored.filter(({ batch }) => batch <= cut.afterBatch);
      expect(cut).toMatchObject({
        pos: bytesOf(before),
        stdoutPos: bytesOf(before.filter(({ stream }) => stream === 1)),
        bytes: bytesOf(gone),
        stdoutBytes: bytesOf(gone.filter(({ stream }) => stream === 1)),
      });
      expect(cut.pos).toBeLessThanOrEqual(limitBytes / 2);
      expect(cut.pos).toBeGreaterThan(limitBytes / 2 - 128 * 1024);
    }
    const kept = stored.filter(
      ({ batch }) => batch <= (cuts[0]?.afterBatch ?? 0) || batch > (cuts.at(-1)?.throughBatch ?? 0),
    );
    const bytes = kept.reduce((sum, batch) => sum + batch.bytes, 0);
    expect(bytes).toBeLessThanOrEqual(limitBytes);
    expect(bytes).toBeGreaterThan(limitBytes * 0.7);
    expect(cuts.length, 'steps, not one drop per batch').toBeLessThan(60);
  });
});

describe('what the store will never take', () => {
  it('is missing with a line that says so; numbers and places go on behind it', async () => {
    const { writer, asked, push, lostCalls } = writing();
    await push('one');
    await asked[0]?.answer('refused');
    await asked[1]?.answer('stored');
    await push('two');
    const drained = writer.drained();
    await settled();
    await asked[2]?.answer('stored');
    expect(await drained, 'the digest is of all that was written').toBe(digestOf('onetwo'));
    const line = '\n[capstan: 3 bytes of the output were refused by the database]\n';
    expect(asked.map(({ text }) => text)).toEqual(['one', line, 'two']);
    expect(asked[1]?.batches).toMatchObject([{ batch: 1, pos: 0, streamPos: 0 }]);
    expect(asked[2]?.batches).toMatchObject([{ batch: 2, pos: line.length, streamPos: line.length }]);
    expect(lostCalls()).toBe(0);
  });

  it('not even that line, holds nobody up', async () => {
    const { writer, asked, push, credits } = writing();
    await push('one');
    const drained = writer.drained();
    await asked[0]?.answer('refused');
    await asked[1]?.answer('refused');
    expect(await drained).toBe(digestOf('one'));
    expect(credits).toEqual([creditOf(3)]);
  });
});

describe('when the run is no longer ours', () => {
  it('the tool is stopped, once, nothing more is stored, and what it goes on writing holds nobody up', async () => {
    const { writer, asked, credits, push, lostCalls } = writing();
    await push('refused');
    await push('more');
    await asked[0]?.answer('lost');
    expect(lostCalls()).toBe(1);
    await push('and more');
    expect(asked).toHaveLength(1);
    expect(credits).toEqual([creditOf(7), creditOf(4), creditOf(8)]);
    expect(await writer.drained(), 'a digest of what is not stored').toBeNull();
    expect(lostCalls()).toBe(1);
  });
});
