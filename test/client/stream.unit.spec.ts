/** The stream of a run as an async iterator: each message once, over however many connections. */
import { describe, expect, it } from 'vitest';
import { Capstan, CapstanProblem, type StreamMessage, UnexpectedAnswer } from '../../src/client/client.js';
import { onStage } from '../cli/stage.fixture.js';
import { endedJson, problem, RUN_ID, runJson } from '../cli/stand-in.fixture.js';
import { against, refusalOf, SILENT, TOKEN } from './client.fixture.js';

const ENDED = endedJson('succeeded', { exitCode: 0 });

function told(message: StreamMessage): string {
  if (message.type === 'output') return `${message.stream} ${Buffer.from(message.data).toString()}`;
  if (message.type === 'event') return message.event.type;
  return message.type === 'cut' ? `cut ${message.bytes}` : message.run.state;
}

async function all(messages: AsyncIterable<StreamMessage>, onMessage: (taken: number) => void = () => undefined) {
  const list: string[] = [];
  for await (const message of messages) {
    list.push(told(message));
    onMessage(list.length);
  }
  return list;
}

describe('the messages of a run', () => {
  it('are output in bytes, events, cuts and the end, in their order', async () => {
    await onStage(async (stage, _call, { url }) => {
      stage.event('run.started', {}, 1);
      stage.write('stdout', 'one\n');
      stage.cut(4_096);
      stage.write('stderr', Buffer.from([0xff, 0x00]));
      stage.end(ENDED);
      const messages: StreamMessage[] = [];
      for await (const message of new Capstan({ url, token: TOKEN }).follow(RUN_ID)) messages.push(message);
      expect(messages.map(told).slice(0, 3)).toEqual(['run.started', 'stdout one\n', 'cut 4096']);
      expect(messages[3]).toMatchObject({
        type: 'output',
        stream: 'stderr',
        data: Uint8Array.of(0xff, 0x00),
        fence: 1,
      });
      expect(messages[4]).toMatchObject({ type: 'end', run: ENDED });
      expect(messages).toHaveLength(5);
    });
  });

  it('go on behind the last one after the connection broke, and after refusals that pass', async () => {
    await onStage(async (stage, _call, { url, asked }) => {
      stage.write('stdout', '1');
      stage.write('stdout', '2');
      const capstan = new Capstan({ url, token: TOKEN });
      const list = await all(capstan.follow(RUN_ID), (taken) => {
        if (taken === 2) {
          stage.mishaps.push({ ...problem(503, 'unavailable'), headers: { 'retry-after': '0' } }, { hangUp: true });
          stage.breakOff();
          stage.write('stdout', '3');
        }
        if (taken === 3) stage.end(ENDED);
      });
      expect(list).toEqual(['stdout 1', 'stdout 2', 'stdout 3', 'succeeded']);
      expect(asked.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, '1.1.2', '1.1.2', '1.1.2']);
    });
  });

  it('go on behind one that was taken before, by another process maybe', async () => {
    await onStage(async (stage, _call, { url }) => {
      for (const text of ['1', '2', '3']) stage.write('stdout', text);
      stage.end(ENDED);
      const capstan = new Capstan({ url, token: TOKEN });
      expect(await all(capstan.follow(RUN_ID, { after: '1.1.2', tail: 1 }))).toEqual(['stdout 3', 'succeeded']);
    });
  });

  it('end where their reader leaves: the connection is closed', async () => {
    await onStage(async (stage, _call, { url }) => {
      stage.write('stdout', '1');
      for await (const message of new Capstan({ url, token: TOKEN }).follow(RUN_ID)) {
        expect(told(message)).toBe('stdout 1');
        break;
      }
      await expect.poll(() => stage.viewers.size).toBe(0);
    });
  });

  it('that can’t be read are an UnexpectedAnswer', async () => {
    for (const raw of ['event: output\ndata: {"stream\n\n', 'event: end\ndata: 7\n\n']) {
      const reply = { ...SILENT, live: (body: { write(text: string): void }) => body.write(raw) };
      await against(
        () => reply,
        async (capstan) => expect(await refusalOf(all(capstan.follow(RUN_ID)))).toBeInstanceOf(UnexpectedAnswer),
      );
    }
    await against(
      () => ({ body: runJson() }),
      async (capstan) => expect(await refusalOf(capstan.wait(RUN_ID))).toBeInstanceOf(UnexpectedAnswer),
    );
  });

  it('of a run that isn’t there are a problem', async () => {
    await against(
      () => problem(404, 'not_found'),
      async (capstan) => {
        const error = await refusalOf(capstan.wait(RUN_ID));
        expect(error).toBeInstanceOf(CapstanProblem);
        expect(error).toMatchObject({ code: 'not_found' });
      },
    );
  });
});

describe('a signal', () => {
  it.each([
    ['while nothing comes', setImmediate],
    ['between two messages', (abort: () => void) => abort()],
  ])('ends a stream, at its reader and at the server, %s', async (_when, soon) => {
    await onStage(async (stage, _call, { url }) => {
      const aborter = new AbortController();
      stage.write('stdout', '1');
      const { signal } = aborter;
      const capstan = new Capstan({ url, token: TOKEN });
      const reading = all(capstan.follow(RUN_ID, { signal }), () => void soon(() => aborter.abort()));
      expect(await refusalOf(reading)).toBe(signal.reason);
      await expect.poll(() => stage.viewers.size).toBe(0);
    });
  });

  it('ends a wait that has just begun', async () => {
    const aborter = new AbortController();
    const answer = () => {
      setImmediate(() => aborter.abort());
      return SILENT;
    };
    await against(answer, async (capstan) => {
      const { signal } = aborter;
      expect(await refusalOf(capstan.wait(RUN_ID, { signal }))).toBe(signal.reason);
    });
  });

  it('ends a wait between two connections', async () => {
    const aborter = new AbortController();
    const answer = () => {
      setImmediate(() => aborter.abort());
      // Longer than this test may take, shorter than the patience for a stream.
      return { ...problem(503, 'unavailable'), headers: { 'retry-after': '120' } };
    };
    await against(answer, async (capstan) => {
      const { signal } = aborter;
      expect(await refusalOf(capstan.wait(RUN_ID, { signal }))).toBe(signal.reason);
    });
  });
});
