import { describe, expect, it, vi } from 'vitest';
import type { StoreAnswer } from '../../src/execution/gatherer.js';
import { MAX_LINE_BYTES } from '../../src/execution/report.rules.js';
import { MAX_EVENTS_FILE_BYTES } from '../../src/execution/supervisor/protocol.js';
import { MAX_LINES, MAX_REFUSALS, MAX_REPORTS, ToolReports } from '../../src/execution/tool-reports.js';
import type { JsonValue } from '../../src/kernel/json.js';
import type { RunReport } from '../../src/runs/reports.sql.js';

interface Asked {
  readonly batch: number;
  readonly reports: readonly RunReport[];
  readonly progress: JsonValue | undefined;
  readonly answer: (answer: StoreAnswer) => Promise<void>;
}

/** Everything that can happen without time passing has happened. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A writer whose store answers when the test says so, or at once; time passes only when the test says so. */
function reporting({ isPrompt = false } = {}) {
  const asked: Asked[] = [];
  const sleepers: { wakeMs: number; wake: () => void }[] = [];
  let [nowMs, granted, lost] = [1_000_000, 0, 0];
  const reports = new ToolReports({
    store: (batch, events, progress) =>
      new Promise((resolve) => {
        const answer = (given: StoreAnswer) => {
          resolve(given);
          return settled();
        };
        asked.push({ batch, reports: events, progress, answer });
        if (isPrompt) resolve('stored');
      }),
    grantCredit: (bytes) => {
      granted += bytes;
    },
    onLost: () => {
      lost += 1;
    },
    timing: {
      monotonicMs: () => nowMs,
      delay: (ms, signal) =>
        new Promise((resolve) => {
          sleepers.push({ wakeMs: nowMs + ms, wake: resolve });
          signal?.addEventListener('abort', () => resolve());
        }),
    },
  });
  const push = (text: string | Buffer, source: 3 | 4 = 3, at = new Date(0)) => {
    reports.push(source, at, Buffer.from(text));
    return settled();
  };
  const pass = (ms: number) => {
    nowMs += ms;
    for (const { wakeMs, wake } of sleepers) if (wakeMs <= nowMs) wake();
    return settled();
  };
  const stored = () => asked.flatMap((one) => one.reports);
  return { reports, asked, push, pass, stored, granted: () => granted, lostCalls: () => lost };
}

const numbered = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => `{"n":${from + i}}\n`).join('');

describe('what a tool reports is stored', () => {
  it('in the order of its lines, with the time of its reading, in batches numbered from 1', async () => {
    const { reports, asked, push } = reporting({ isPrompt: true });
    await push('{"type":"step","n":1}\n{"n":2}\n', 3, new Date(5));
    await push('{"n":3}', 3, new Date(9));
    expect(await reports.drained()).toBeNull();
    expect(asked.map(({ batch, reports }) => [batch, reports])).toEqual([
      [
        1,
        [
          { type: 'step', at: '1970-01-01T00:00:00.005Z', data: { n: 1 } },
          { type: 'message', at: '1970-01-01T00:00:00.005Z', data: { n: 2 } },
        ],
      ],
      [2, [{ type: 'message', at: '1970-01-01T00:00:00.009Z', data: { n: 3 } }]],
    ]);
  });

  it('one batch at a time, gathered for at most 100 ms; the first ones at once', async () => {
    const { asked, push, pass } = reporting();
    await push(numbered(1, 1));
    await push(numbered(2, 1));
    await pass(10_000);
    expect(asked, 'a second batch was sent before the first was stored').toHaveLength(1);
    await asked[0]?.answer('stored');
    expect(asked).toHaveLength(2);
    await asked[1]?.answer('stored');
    await push(numbered(3, 1));
    await pass(99);
    await push(numbered(4, 1));
    expect(asked).toHaveLength(2);
    await pass(1);
    expect(asked[2]?.reports.map(({ data }) => data)).toEqual([{ n: 3 }, { n: 4 }]);
  });

  it('in batches of at most 500 events and 256 KiB; a larger event goes alone', async () => {
    const { reports, asked, push } = reporting({ isPrompt: true });
    await push(numbered(1, 1_201));
    for (let i = 0; i < 4; i += 1) await push(`"${'x'.repeat(100_000)}"\n`);
    await push(`"${'x'.repeat(MAX_LINE_BYTES - 2)}"\n`);
    await reports.drained();
    expect(asked.slice(0, 2).map((one) => one.reports.length)).toEqual([500, 500]);
    for (const one of asked) expect(JSON.stringify(one.reports).length).toBeLessThan(MAX_LINE_BYTES + 60_000);
    expect(asked.flatMap((one) => one.reports)).toHaveLength(1_206);
  });

  it('with the latest progress of each batch, and none where none was reported', async () => {
    const { reports, asked, push, pass } = reporting({ isPrompt: true });
    await push('{"type":"progress","percent":10}\n{"type":"progress","percent":20}\n{"n":1}\n');
    await pass(1_000);
    await push('{"n":2}\n');
    await reports.drained();
    expect(asked.map(({ progress }) => progress)).toEqual([{ percent: 20 }, undefined]);
  });
});

describe('credit', () => {
  it('comes back for what is stored, not before', async () => {
    const { asked, push, granted } = reporting();
    await push(numbered(1, 3));
    expect(granted()).toBe(0);
    await asked[0]?.answer('stored');
    expect(granted()).toBe(numbered(1, 3).length);
  });

  it('comes back at once for blank lines and for a part of a line, however long it grows, and for the output', async () => {
    const { asked, push, granted } = reporting();
    await push('\n\n \n');
    await push('{"half');
    expect(granted()).toBe(10);
    await push(Buffer.alloc(1_000_000, 'x'), 4);
    expect(granted()).toBe(1_000_010);
    for (let i = 0; i < 20; i += 1) await push(Buffer.alloc(60_000, 'x'));
    await asked[0]?.answer('stored');
    expect(granted()).toBe(2_200_010);
  });

  it('is given for every byte in the end, whatever was refused', async () => {
    const { reports, push, granted } = reporting({ isPrompt: true });
    const pieces = [numbered(1, 12_000), 'bad\n'.repeat(300), Buffer.alloc(300_000), '\n', numbered(1, 5)];
    for (const piece of pieces) await push(piece);
    await reports.drained();
    expect(granted()).toBe(pieces.reduce((sum, piece) => sum + piece.length, 0));
  });
});

describe('what cannot be taken is an event that says so', () => {
  it('with the number of its line and without its content', async () => {
    const { reports, push, stored } = reporting({ isPrompt: true });
    await push('{"n":1}\n\nsecret\n{"n":2}\n');
    await push('also secret');
    await reports.drained();
    expect(stored().map(({ type, data }) => [type, data])).toEqual([
      ['message', { n: 1 }],
      ['run.report_refused', { source: 'events', line: 3, reason: 'not valid JSON' }],
      ['message', { n: 2 }],
      ['run.report_refused', { source: 'events', line: 5, reason: 'not valid JSON' }],
    ]);
  });

  it('100 times; of further lines one more says that they are not listed, and what is sound still comes', async () => {
    const { reports, push, stored } = reporting({ isPrompt: true });
    await push('bad\n'.repeat(MAX_REFUSALS + 200));
    await push('{"n":1}\n');
    await reports.drained();
    expect(stored()).toHaveLength(MAX_REFUSALS + 2);
    expect(stored().at(-2)?.data).toMatchObject({ line: 101, reason: 'further lines that are refused are not listed' });
    expect(stored().at(-1)?.data).toEqual({ n: 1 });
  });

  it('once for all events beyond 10,000', async () => {
    const { reports, push, stored, asked } = reporting({ isPrompt: true });
    await push(numbered(1, MAX_REPORTS));
    await push(numbered(MAX_REPORTS + 1, 500));
    await push('{"type":"progress"}\nbad\n{"cut');
    await reports.drained();
    expect(stored()).toHaveLength(MAX_REPORTS + 1);
    expect(stored().at(-2)?.data).toEqual({ n: MAX_REPORTS });
    expect(stored().at(-1)).toMatchObject({
      type: 'run.report_refused',
      data: { source: 'events', line: MAX_REPORTS + 1 },
    });
    expect(asked.every(({ progress }) => progress === undefined)).toBe(true);
  });

  it('once for all lines beyond 10,000 that are events or refused, whichever they are', async () => {
    const { reports, push, stored } = reporting({ isPrompt: true });
    await push('x\n'.repeat(6_000));
    await push(numbered(1, 4_000));
    await push('\n\n');
    await push('x\n'.repeat(30_000));
    await push(numbered(1, 5));
    await reports.drained();
    expect(stored()).toHaveLength(MAX_REFUSALS + 1 + 4_000 + 1);
    expect(stored().at(-1)?.data).toEqual({
      source: 'events',
      line: MAX_REPORTS + 3,
      reason: 'more than 10000 events and refused lines: this line and what follows it was dropped',
    });
  });

  it('once for all lines beyond 100,000, blank ones too', async () => {
    const { reports, push, stored, granted } = reporting({ isPrompt: true });
    for (let i = 0; i < 3; i += 1) await push('\n'.repeat(50_000));
    await push('{"n":1}\n');
    await reports.drained();
    const reason = 'more than 100000 lines: this line and what follows it was dropped';
    expect(stored().map(({ data }) => data)).toEqual([{ source: 'events', line: MAX_LINES + 1, reason }]);
    expect(granted()).toBe(150_008);
  });

  it('and behind that no line is looked for: bytes are only counted away', async () => {
    const { reports, push, granted } = reporting({ isPrompt: true });
    await push('\n'.repeat(MAX_LINES + 1));
    await reports.drained();
    const looks = vi.spyOn(Buffer.prototype, 'indexOf');
    await push('\n'.repeat(1_000));
    await reports.drained();
    expect(looks).not.toHaveBeenCalled();
    looks.mockRestore();
    expect(granted()).toBe(MAX_LINES + 1 + 1_000);
  });

  it('once for all bytes beyond 16 MiB', async () => {
    const { reports, push, stored } = reporting({ isPrompt: true });
    const line = Buffer.concat([Buffer.from(`"${'x'.repeat(65_533)}"`), Buffer.from('\n')]);
    for (let i = 0; i < MAX_EVENTS_FILE_BYTES / line.length; i += 1) await push(line);
    await push('x');
    await push(numbered(1, 5));
    await reports.drained();
    expect(
      stored()
        .slice(256)
        .map(({ data }) => data),
    ).toEqual([{ source: 'events', reason: 'more than 16777216 bytes: the rest was not read' }]);
  });

  it.each([
    ['not_a_file', 'what stands in its place is not a regular file: nothing of it was read'],
    ['unreadable', 'the file could not be read'],
    ['cut', 'the file was not read to its end: the tool was told to stop, or its folder did not answer'],
  ] as const)('for a file that was not read (%s), without a line, behind what was read of it', async (why, reason) => {
    const { reports, push, stored } = reporting({ isPrompt: true });
    await push('{"n":1}\n{"n":');
    reports.unread(3, new Date(1), why);
    await push('2}\nbad');
    await push('{"a":1}', 4);
    reports.unread(4, new Date(2), why);
    expect(await reports.drained(), 'an output that was not read whole').toBeNull();
    expect(stored().map(({ at, data }) => [Date.parse(at), data])).toEqual([
      [0, { n: 1 }],
      [1, { source: 'events', reason }],
      [0, { n: 2 }],
      [2, { source: 'events', line: 3, reason: 'not valid JSON' }],
      [2, { source: 'output', reason }],
    ]);
  });

  it('never by a word of the tool itself: what the supervisor tells comes beside the bytes', async () => {
    const { reports, push, stored } = reporting({ isPrompt: true });
    await push(Buffer.from('\xffcut\n', 'latin1'));
    await push(Buffer.from('\xffcut\n', 'latin1'), 4);
    expect(await reports.drained()).toBeNull();
    expect(stored().map(({ data }) => data)).toEqual([
      { source: 'events', line: 1, reason: 'not valid UTF-8' },
      { source: 'output', reason: 'not valid UTF-8' },
    ]);
  });
});

describe('the output', () => {
  it('is the value of the file, however it was cut', async () => {
    const { reports, push, stored } = reporting({ isPrompt: true });
    for (const byte of Buffer.from('{"answer":"ä",\n"n":42}\n')) await push(Buffer.from([byte]), 4);
    expect(await reports.drained()).toEqual({ answer: 'ä', n: 42 });
    expect(stored()).toEqual([]);
  });

  it('is null, and an event says why, when the file is not JSON or longer than 256 KiB', async () => {
    for (const [content, reason] of [
      ['done', 'not valid JSON'],
      [`"${'x'.repeat(600_000)}"`, 'longer than 262144 bytes'],
    ] as const) {
      const { reports, push, stored } = reporting({ isPrompt: true });
      await push(content, 4, new Date(7));
      expect(await reports.drained()).toBeNull();
      expect(stored()).toEqual([
        { type: 'run.report_refused', at: '1970-01-01T00:00:00.007Z', data: { source: 'output', reason } },
      ]);
    }
  });

  it('is answered only when all events are stored', async () => {
    const { reports, asked, push } = reporting();
    await push('{"n":1}\n');
    await push('7', 4);
    let output: unknown = 'not yet';
    void reports.drained().then((value) => {
      output = value;
    });
    await settled();
    expect(output).toBe('not yet');
    await asked[0]?.answer('stored');
    expect(output).toBe(7);
  });
});

describe('what the store will never take', () => {
  it('is passed over: what comes behind it is stored, credit comes back, the tool goes on', async () => {
    const { reports, asked, push, granted, lostCalls } = reporting();
    await push('{"n":1}\n');
    await asked[0]?.answer('refused');
    await push('{"n":2}\n');
    await push('7', 4);
    const drained = reports.drained();
    await settled();
    await asked[1]?.answer('stored');
    expect(await drained).toBe(7);
    expect(asked.map(({ batch }) => batch)).toEqual([1, 2]);
    expect([granted(), lostCalls()]).toEqual([17, 0]);
  });
});

describe('when the run is no longer ours', () => {
  it('the tool is stopped once, nothing more is stored, nobody waits', async () => {
    const { reports, asked, push, granted, lostCalls } = reporting();
    await push('{"n":1}\n');
    await push('{"n":2}\n');
    await push('7', 4);
    await asked[0]?.answer('lost');
    await push('{"n":3}\nbad\n{');
    expect(lostCalls()).toBe(1);
    expect(await reports.drained()).toBeNull();
    expect(asked).toHaveLength(1);
    expect(granted()).toBe(8 + 8 + 1 + 13);
    expect(lostCalls()).toBe(1);
  });
});
