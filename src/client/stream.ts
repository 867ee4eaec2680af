/** What happens to a run, as it happens: its live stream as typed messages. */
import { UnexpectedAnswer } from './errors.js';
import { EVENT_HEADERS, resumedEvents, type SentEvent } from './events.js';
import type { Run, RunEvent } from './resources.js';
import { jsonIn, type Transport, type TransportRequest } from './transport.js';

export type StreamName = 'stdout' | 'stderr';

export type StreamMessage = OutputMessage | EventMessage | CutMessage | EndMessage;

interface Placed {
  /** Where the stream goes on behind this message: `follow(id, { after })`. */
  readonly id: string | undefined;
}

export interface OutputMessage extends Placed {
  readonly type: 'output';
  readonly stream: StreamName;
  /** The tool's bytes: a character may begin in one message and end in the next. */
  readonly data: Uint8Array;
  readonly at: string;
  readonly fence: number;
  readonly batch: number;
}

export interface EventMessage extends Placed {
  readonly type: 'event';
  readonly event: RunEvent;
}

/** Output that was dropped here, for it outgrew the limit. */
export interface CutMessage extends Placed {
  readonly type: 'cut';
  readonly fence: number;
  /** How many; null when nobody knows. */
  readonly bytes: number | null;
}

/** The last one. */
export interface EndMessage extends Placed {
  readonly type: 'end';
  readonly run: Run;
}

/** What of a stream is wanted. */
export interface StreamPick {
  /** None: both. */
  readonly stream?: StreamName | undefined;
  /** Of the output that is there already only the last so many lines. */
  readonly tail?: number | undefined;
  /** The id of the last message that was taken before. */
  readonly after?: string | undefined;
}

/** All messages up to `end`, over as many connections as it takes. */
export async function* messagesOf(
  transport: Transport,
  runId: string,
  pick: StreamPick,
  signal: AbortSignal | undefined,
): AsyncGenerator<StreamMessage, void, undefined> {
  for await (const event of runEvents(transport, runId, pick, signal)) {
    const message = decode(event);
    if (message !== undefined) yield message;
    if (message?.type === 'end') return;
  }
}

/** The events of a run's stream as they came; they have no end. */
export function runEvents(
  transport: Transport,
  runId: string,
  pick: StreamPick,
  signal?: AbortSignal,
): AsyncGenerator<SentEvent> {
  return resumedEvents(transport, `the stream of ${runId}`, (lastId) =>
    requestOf(runId, pick, lastId ?? pick.after, signal),
  );
}

function requestOf(
  runId: string,
  { stream, tail }: StreamPick,
  lastId: string | undefined,
  signal: AbortSignal | undefined,
): TransportRequest {
  const query = new URLSearchParams();
  if (stream !== undefined) query.set('stream', stream);
  // Behind a message the beginning is decided.
  if (tail !== undefined && lastId === undefined) query.set('tail', String(tail));
  const search = query.size === 0 ? '' : `?${query}`;
  const path = `v1/runs/${encodeURIComponent(runId)}/stream${search}`;
  const headers = { ...EVENT_HEADERS, ...(lastId === undefined ? {} : { 'last-event-id': lastId }) };
  return { method: 'GET', path, headers, signal };
}

/** `undefined` for what a later server may add. */
function decode({ event, data, id }: SentEvent): StreamMessage | undefined {
  if (event !== 'output' && event !== 'event' && event !== 'cut' && event !== 'end') return undefined;
  const members = jsonIn(data, 'a message of the stream');
  if (typeof members !== 'object' || members === null) throw new UnexpectedAnswer(`the ${event} is not an object`);
  // What the document says of each, as all answers are taken.
  if (event === 'event') return { type: event, id, event: members as RunEvent };
  if (event === 'end') return { type: event, id, run: members as Run };
  if (event === 'cut') return { ...(members as CutMessage), type: event, id };
  const chunk = members as Omit<OutputMessage, 'data'> & { readonly data: string };
  return { ...chunk, type: event, id, data: bytesOf(chunk.data) };
}

function bytesOf(base64: unknown): Uint8Array {
  try {
    return Uint8Array.from(atob(String(base64)), (char) => char.charCodeAt(0));
  } catch {
    throw new UnexpectedAnswer('output that is not in base64');
  }
}
