/**
 * The live stream of a run as server-sent events, over as many connections as it takes. Invariant: a new connection goes
 * on behind the last message that was taken, so each is handed out once and none is left out.
 */
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import type { Timing } from '../platform/time.js';
import { noConnection } from './answers.js';
import { type Answer, pathOf } from './api.js';
import { type Cut, OutputCount } from './cut.rules.js';
import { type Fields, fieldsOf, numberOf, optional, textOf, unexpected } from './decode.js';
import { Failure } from './failure.js';
import type { ApiRequest, HttpClient } from './http.js';
import { decodeRun, decodeRunEvent, type Run, type RunEvent } from './resources.js';
import { pauseBeforeRetry } from './retry.rules.js';

export type StreamName = 'stdout' | 'stderr';

export type StreamMessage =
  | {
      readonly type: 'output';
      readonly document: Fields;
      readonly stream: StreamName;
      readonly data: Buffer;
    }
  | { readonly type: 'event'; readonly document: Fields; readonly event: RunEvent }
  /** Output that was dropped here. */
  | ({ readonly type: 'cut'; readonly document: Fields } & Cut)
  | { readonly type: 'end'; readonly document: Fields; readonly run: Answer<Run> };

export interface StreamPick {
  /** None: both. */
  readonly stream?: StreamName | undefined;
  /** Begin so many lines before the present end. */
  readonly tail?: number | undefined;
}

/** The server is heard every 15 s at least; one that is silent for so long is gone without a word. */
const SILENCE_MS = 45_000;
/** Long enough for a failover or a restart of whatever stands in between: the run goes on meanwhile. */
const PATIENCE_MS = 5 * 60_000;
/** A connection that lived so long was a good one, whatever it brought. */
const GOOD_LIFE_MS = 10_000;
/** A message holds a chunk of output or a whole run; both are far smaller. */
const MESSAGE_LIMIT_CHARS = 16 * 1024 * 1024;

/** All messages up to `end`. Fails with the last trouble when it didn't pass. */
export async function* messagesOf(
  http: HttpClient,
  timing: Timing,
  id: string,
  pick: StreamPick,
): AsyncGenerator<StreamMessage> {
  const count = new OutputCount(pick.stream === undefined && pick.tail === undefined);
  let lastId: string | undefined;
  let tries = 0;
  let goodUntilMs = timing.monotonicMs();
  for (;;) {
    const response = await http.open(requestOf(id, pick, lastId));
    const openedMs = timing.monotonicMs();
    for await (const raw of eventsOf(http, timing, response)) {
      const message = decode(raw, count);
      if (message !== undefined) yield message;
      if (message?.type === 'end') return;
      if (raw.id === undefined) continue;
      lastId = raw.id;
      tries = 0;
      goodUntilMs = timing.monotonicMs();
    }
    const nowMs = timing.monotonicMs();
    if (nowMs - openedMs >= GOOD_LIFE_MS) [tries, goodUntilMs] = [0, nowMs];
    tries += 1;
    const trouble = { tries, elapsedMs: nowMs - goodUntilMs, retryAfterMs: undefined, reached: true };
    const pauseMs = pauseBeforeRetry({ ...trouble, patienceMs: PATIENCE_MS }, timing.random());
    if (pauseMs === undefined) throw noConnection(`the stream of ${id} breaks off each time before it brings anything`);
    await timing.delay(pauseMs);
  }
}

function requestOf(id: string, { stream, tail }: StreamPick, lastId: string | undefined): ApiRequest {
  const query = new URLSearchParams();
  if (stream !== undefined) query.set('stream', stream);
  // Behind a message the beginning is decided.
  if (tail !== undefined && lastId === undefined) query.set('tail', String(tail));
  const headers = {
    accept: 'text/event-stream, application/problem+json',
    // What compresses waits for more to compress.
    'accept-encoding': 'identity',
    'cache-control': 'no-cache',
    ...(lastId === undefined ? {} : { 'last-event-id': lastId }),
  };
  return { method: 'GET', path: `${pathOf(id)}/stream`, query, headers, patienceMs: PATIENCE_MS };
}

/** The messages of one connection, until it is closed, breaks off or falls silent. */
export async function* eventsOf(
  http: HttpClient,
  timing: Timing,
  response: Response,
): AsyncGenerator<EventSourceMessage> {
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
  if (!isStream || response.body === null) throw unexpected('the stream is not one of events');
  const reader = response.body.getReader();
  const text = new TextDecoder();
  const ready: EventSourceMessage[] = [];
  let isTooLong = false;
  const parser = createParser({
    onEvent: (message) => ready.push(message),
    onError: ({ type }) => {
      isTooLong ||= type === 'max-buffer-size-exceeded';
    },
    maxBufferSize: MESSAGE_LIMIT_CHARS,
  });
  try {
    for (;;) {
      const chunk = await nextChunk(reader, timing);
      if (chunk === undefined) return;
      parser.feed(text.decode(chunk, { stream: true }));
      if (isTooLong) throw unexpected('a message of the stream has no end');
      yield* ready.splice(0);
    }
  } catch (error) {
    if (error instanceof Failure || http.setback(error) === undefined) throw error;
  } finally {
    // Not waited for: a connection that is half open never says that it was closed.
    void reader.cancel().catch(() => undefined);
  }
}

/** `undefined` when there is no more, or nothing came for too long. Time in which nobody reads doesn't count. */
async function nextChunk(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  timing: Timing,
): Promise<Uint8Array | undefined> {
  const heard = new AbortController();
  const silence = timing.delay(SILENCE_MS, heard.signal).then(() => undefined);
  try {
    return (await Promise.race([reader.read(), silence]))?.value;
  } finally {
    heard.abort();
  }
}

/** `undefined` for what a later server may add. */
function decode({ event, data }: EventSourceMessage, count: OutputCount): StreamMessage | undefined {
  if (event !== 'output' && event !== 'event' && event !== 'cut' && event !== 'end') return undefined;
  const document = fieldsOf(parsed(data), `the ${event} of the stream`);
  if (event === 'event') return { type: event, document, event: decodeRunEvent(document) };
  if (event === 'end') return { type: event, document, run: { document, value: decodeRun(document) } };
  const fence = numberOf(document, 'fence');
  if (event === 'cut') {
    const bytes = optional(document, 'bytes', numberOf);
    return { type: event, document, from: count.add(fence, bytes), bytes };
  }
  const stream = textOf(document, 'stream');
  if (stream !== 'stdout' && stream !== 'stderr') throw unexpected('output of neither stdout nor stderr');
  const bytes = Buffer.from(textOf(document, 'data'), 'base64');
  count.add(fence, bytes.length);
  return { type: event, document, stream, data: bytes };
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    throw unexpected('a message of the stream is not JSON');
  }
}
