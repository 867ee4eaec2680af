/**
 * Entry of the requester, the process that makes the requests of runs. It holds nothing but what is under way.
 *
 *   fd 3  channel to the supervisor; its end of file means that the supervisor is gone
 *
 * Invariant: it ends at once with its channel, and everything it has under way ends with it.
 */
import { Socket } from 'node:net';
import { Channel } from '../supervisor/channel.js';
import { FRAME_JSON, type Frame, FrameError, jsonFrame, MAX_COMMAND_BYTES, type Source } from '../supervisor/frames.js';
import { OutputSender } from '../supervisor/output-sender.js';
import type { HttpSettings } from '../supervisor/protocol.js';
import {
  decodeRequesterCommand,
  type MakeRequest,
  type RequesterCommand,
  type RequesterEvent,
} from '../supervisor/requester-protocol.js';
import { type AddressRule, addressRule } from './addresses.js';
import { systemLookup } from './connect.js';
import { Exchange } from './exchange.js';

const CHANNEL_FD = 3;

interface Working {
  readonly http: HttpSettings;
  readonly isAllowed: AddressRule;
}

let working: Working | null = null;
const exchanges = new Map<number, Exchange>();

const channel = new Channel(new Socket({ fd: CHANNEL_FD, readable: true, writable: true }), MAX_COMMAND_BYTES, {
  onFrame: (frame) => take(frame),
  onDrain: () => {
    for (const exchange of exchanges.values()) exchange.resume();
  },
  onClosed: (reason) => process.exit(reason === 'closed' ? 0 : 1),
});

const output = new OutputSender((frame, onSent) => channel.send(frame, onSent));

function take(frame: Frame): void {
  if (frame.type !== FRAME_JSON) throw new FrameError('unknown frame type');
  const command = decodeRequesterCommand(frame.payload);
  if (working !== null) {
    obey(command, working);
    return;
  }
  if (command.type !== 'hello') throw new FrameError('no hello');
  working = { http: command.http, isAllowed: addressRule(command.http.allow) };
  say({ type: 'ready' });
}

function obey(command: RequesterCommand, { http, isAllowed }: Working): void {
  switch (command.type) {
    case 'hello':
      throw new FrameError('a second hello');
    case 'request':
      if (exchanges.has(command.key)) throw new FrameError('a key that is in use');
      begin(command, { http, isAllowed });
      break;
    case 'credit':
      exchanges.get(command.key)?.grant(command.bytes);
      break;
    case 'abort':
      abort(command.key);
      break;
  }
}

function begin(request: MakeRequest, { http, isAllowed }: Working): void {
  const { key } = request;
  const send = (source: Source, bytes: Buffer) => output.send({ key, source, at: Date.now(), bytes });
  const exchange = new Exchange(request, {
    isAllowed,
    lookup: systemLookup,
    userAgent: http.userAgent,
    onBody: (bytes) => send(1, bytes),
    onResult: (result) => send(4, result),
    onDone: (verdict) => {
      exchanges.delete(key);
      say({ type: 'done', key, verdict });
    },
    mayRead: () => !channel.isCongested,
  });
  exchanges.set(key, exchange);
  exchange.start();
}

/** A key that is not known has been told as done. */
function abort(key: number): void {
  const exchange = exchanges.get(key);
  if (exchange === undefined) return;
  exchanges.delete(key);
  exchange.abort();
  say({ type: 'aborted', key });
}

function say(event: RequesterEvent): void {
  channel.send(jsonFrame(event));
}

// Signals are the supervisor's to send, and it sends the one that cannot be caught.
process.on('SIGTERM', () => {});
process.on('SIGINT', () => {});
process.on('SIGHUP', () => {});
