/** The live stream of a run, each message read as far as it is printed or decided on. */
import type { SentEvent } from '../client/events.js';
import type { StreamName, StreamPick } from '../client/stream.js';
import type { Answer } from './api.js';
import { type Cut, OutputCount } from './cut.rules.js';
import { type Fields, fieldsOf, numberOf, optional, textOf, unexpected } from './decode.js';
import type { HttpClient } from './http.js';
import { decodeRun, decodeRunEvent, type Run, type RunEvent } from './resources.js';

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

/** All messages up to `end`. Fails with the last trouble when it didn't pass. */
export async function* messagesOf(http: HttpClient, id: string, pick: StreamPick): AsyncGenerator<StreamMessage> {
  const count = new OutputCount(pick.stream === undefined && pick.tail === undefined);
  for await (const event of http.streamOf(id, pick)) {
    const message = decode(event, count);
    if (message !== undefined) yield message;
    if (message?.type === 'end') return;
  }
}

/** `undefined` for what a later server may add. */
function decode({ event, data }: SentEvent, count: OutputCount): StreamMessage | undefined {
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
