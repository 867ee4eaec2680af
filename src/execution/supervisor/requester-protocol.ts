/**
 * The messages between the supervisor and the process that makes the requests of runs, decoded once at either end.
 * Bodies and results go as frames of output, under the credit of their run. What is malformed ends the requester.
 */
import { FrameError } from './frames.js';
import type { HttpRequest, Verdict } from './plan.js';
import { type HttpSettings, httpRequest, httpSettings, verdict } from './protocol.js';
import { count, parseFields, text } from './wire.js';

/** A request under the key of its run's launch. */
export interface MakeRequest {
  readonly type: 'request';
  readonly key: number;
  readonly runId: string;
  readonly fence: number;
  readonly http: HttpRequest;
}

export type RequesterCommand =
  | { readonly type: 'hello'; readonly http: HttpSettings }
  | MakeRequest
  | { readonly type: 'credit'; readonly key: number; readonly bytes: number }
  | { readonly type: 'abort'; readonly key: number };

/** Each request gets exactly one of done and aborted, after all of its output. */
export type RequesterEvent =
  | { readonly type: 'ready' }
  | { readonly type: 'done'; readonly key: number; readonly verdict: Verdict }
  | { readonly type: 'aborted'; readonly key: number };

/** Throws FrameError. */
export function decodeRequesterCommand(payload: Buffer): RequesterCommand {
  const m = parseFields(payload);
  switch (m.type) {
    case 'hello':
      return { type: 'hello', http: httpSettings(m.http) };
    case 'request':
      return {
        type: 'request',
        key: count(m.key),
        runId: text(m.runId),
        fence: count(m.fence),
        http: httpRequest(m.http),
      };
    case 'credit':
      return { type: 'credit', key: count(m.key), bytes: count(m.bytes) };
    case 'abort':
      return { type: 'abort', key: count(m.key) };
    default:
      throw new FrameError('unknown command');
  }
}

/** Throws FrameError. */
export function decodeRequesterEvent(payload: Buffer): RequesterEvent {
  const m = parseFields(payload);
  switch (m.type) {
    case 'ready':
      return { type: 'ready' };
    case 'done':
      return { type: 'done', key: count(m.key), verdict: verdict(m.verdict) };
    case 'aborted':
      return { type: 'aborted', key: count(m.key) };
    default:
      throw new FrameError('unknown event');
  }
}
