/**
 * Server-sent events over as many connections as it takes. Invariant: a new connection goes on behind the last event that
 * was taken, so each is handed out once and none is left out.
 */
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { NoConnection, UnexpectedAnswer } from './errors.js';
import { pauseBeforeRetry } from './retry.rules.js';
import type { Transport, TransportRequest } from './transport.js';

export type SentEvent = EventSourceMessage;

/** Goes with every request for events: what compresses waits for more to compress. */
export const EVENT_HEADERS: Readonly<Record<string, string>> = Object.freeze({
  accept: 'text/event-stream, application/problem+json',
  'accept-encoding': 'identity',
  'cache-control': 'no-cache',
});

/** The server is heard every 15 s at least; one that is silent for so long is gone without a word. */
const SILENCE_MS = 45_000;
/** Long enough for a failover or a restart of whatever stands in between: the run goes on meanwhile. */
const PATIENCE_MS = 5 * 60_000;
/** A connection that lived so long was a good one, whatever it brought. */
const GOOD_LIFE_MS = 10_000;
/** A message holds a chunk of output or a whole run; both are far smaller. */
const MESSAGE_LIMIT_CHARS = 16 * 1024 * 1024;

/**
 * Events without an end: whoever reads them knows the last one, and stops. `request` is asked for each connection, with
 * the id of the event behind which it begins. Throws the last trouble when it didn't pass.
 */
export async function* resumedEvents(
  transport: Transport,
  what: string,
  request: (lastId: string | undefined) => TransportRequest,
): AsyncGenerator<SentEvent> {
  const { timing } = transport;
  let lastId: string | undefined;
  let tries = 0;
  let goodUntilMs = timing.monotonicMs();
  for (;;) {
    const asked = { patienceMs: PATIENCE_MS, ...request(lastId) };
    const response = await transport.open(asked);
    const openedMs = timing.monotonicMs();
    for await (const event of eventsOf(transport, response, asked.signal)) {
      yield event;
      if (event.id === undefined) continue;
      lastId = event.id;
      tries = 0;
      goodUntilMs = timing.monotonicMs();
    }
    const nowMs = timing.monotonicMs();
    if (nowMs - openedMs >= GOOD_LIFE_MS) [tries, goodUntilMs] = [0, nowMs];
    tries += 1;
    const trouble = { tries, elapsedMs: nowMs - goodUntilMs, retryAfterMs: undefined, reached: true };
    const pauseMs = pauseBeforeRetry({ ...trouble, patienceMs: asked.patienceMs }, timing.random());
    if (pauseMs === undefined)
      throw new NoConnection(`${what} breaks off each time before it brings anything`, 'BREAK');
    await timing.delay(pauseMs, asked.signal);
    asked.signal?.throwIfAborted();
  }
}

/** The events of one connection, until it is closed, breaks off or falls silent. */
export async function* eventsOf(
  transport: Transport,
  response: Response,
  signal: AbortSignal | undefined,
): AsyncGenerator<SentEvent> {
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
  if (!isStream || response.body === null) throw new UnexpectedAnswer('the stream is not one of events');
  const reader = response.body.getReader();
  const text = new TextDecoder();
  const ready: SentEvent[] = [];
  let isTooLong = false;
  const parser = createParser({
    onEvent: (event) => ready.push(event),
    onError: ({ type }) => {
      isTooLong ||= type === 'max-buffer-size-exceeded';
    },
    maxBufferSize: MESSAGE_LIMIT_CHARS,
  });
  try {
    for (;;) {
      const chunk = await nextChunk(reader, transport, signal);
      signal?.throwIfAborted();
      if (chunk === undefined) return;
      parser.feed(text.decode(chunk, { stream: true }));
      if (isTooLong) throw new UnexpectedAnswer('a message of the stream has no end');
      yield* ready.splice(0);
    }
  } catch (error) {
    if (signal?.aborted || transport.brokenOff(error) === undefined) throw error;
  } finally {
    // Not waited for: a connection that is half open never says that it was closed.
    void reader.cancel().catch(() => undefined);
  }
}

/**
 * `undefined` when there is no more, nothing came for too long or the signal aborted. Time in which nobody reads doesn't
 * count.
 */
async function nextChunk(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  { timing }: Transport,
  signal: AbortSignal | undefined,
): Promise<Uint8Array | undefined> {
  const heard = new AbortController();
  const stop = () => heard.abort();
  signal?.addEventListener('abort', stop, { once: true });
  if (signal?.aborted) stop();
  const silence = timing.delay(SILENCE_MS, heard.signal).then(() => undefined);
  try {
    return (await Promise.race([reader.read(), silence]))?.value;
  } finally {
    signal?.removeEventListener('abort', stop);
    heard.abort();
  }
}
