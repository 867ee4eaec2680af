/** The messages of a run's stream as server-sent events (WHATWG HTML §9.2). Pure; each is made once for all viewers. */
import { idOf, type Place } from './place.rules.js';
import type { Chunk, Step } from './tail.rules.js';

/** A message as it is sent, and the place of who has taken it. */
export interface Message {
  readonly place: Place;
  readonly bytes: Buffer;
  /** Of output. */
  readonly chunk?: Pick<Chunk, 'fence' | 'batch' | 'stream' | 'at'>;
}

/** Told first: how long to wait before a connection is made again. */
export const RETRY = Buffer.from('retry: 1000\n\n');
/** Keeps the connection from looking dead; readers ignore it. */
export const HEARTBEAT = Buffer.from(': still here\n\n');

const STREAM_NAMES = { 1: 'stdout', 2: 'stderr' } as const;
const DATA = ',"data":"';

export function messageOf(step: Step): Message {
  const { place } = step;
  if ('chunk' in step) {
    const { data, fence, batch, stream, at } = step.chunk;
    return outputMessage(place, { fence, batch, stream, at }, data);
  }
  if ('gap' in step) return { place, bytes: frame('cut', step.gap, idOf(place)) };
  // A claim has no id: by the next message that has one, it was told.
  const hasId = step.event.seq !== null || place.start === place.claim;
  return { place, bytes: frame('event', step.event, hasId ? idOf(place) : undefined) };
}

/** The last message: the run as it ended. */
export function endMessage(run: unknown): Buffer {
  return frame('end', run, undefined);
}

/** The same message without the first bytes of its data. */
export function withoutFirst(message: Message, bytes: number): Message {
  const { place, chunk } = message;
  if (!chunk) return message;
  const at = message.bytes.indexOf(DATA) + DATA.length;
  const data = Buffer.from(message.bytes.toString('latin1', at, message.bytes.indexOf('"', at)), 'base64');
  return outputMessage(place, chunk, data.subarray(bytes));
}

function outputMessage(place: Place, chunk: NonNullable<Message['chunk']>, data: Buffer): Message {
  const { fence, batch, stream, at } = chunk;
  const head = JSON.stringify({ fence, batch, stream: STREAM_NAMES[stream], at }).slice(0, -1);
  const text = `event: output\nid: ${idOf(place)}\ndata: ${head}${DATA}${data.toString('base64')}"}\n\n`;
  return { place, chunk, bytes: Buffer.from(text, 'latin1') };
}

function frame(event: string, data: unknown, id: string | undefined): Buffer {
  const idLine = id === undefined ? '' : `id: ${id}\n`;
  return Buffer.from(`event: ${event}\n${idLine}data: ${JSON.stringify(data)}\n\n`);
}
