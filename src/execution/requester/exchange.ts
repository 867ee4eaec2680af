/**
 * One request of one run, from its first connection to its verdict, redirects included.
 * Invariants: every hop is judged anew, on a connection of its own; memory is bounded whatever the server sends, because
 * the body is read only as credit comes, and of it no more is kept than the result may hold.
 */
import { type ClientRequest, type IncomingMessage, request as openRequest } from 'node:http';
import { creditOf } from '../supervisor/frames.js';
import type { Verdict } from '../supervisor/plan.js';
import { INITIAL_CREDIT_BYTES } from '../supervisor/protocol.js';
import type { MakeRequest } from '../supervisor/requester-protocol.js';
import type { AddressRule } from './addresses.js';
import { AddressDenied, connect, type Lookup } from './connect.js';
import { firstHop, type Hop, nextHop } from './hops.rules.js';
import {
  headersOf,
  judgeDenied,
  judgeFault,
  judgeStatus,
  MAX_HEADER_BYTES,
  MAX_KEPT_BODY_BYTES,
  resultOf,
} from './result.rules.js';

export interface ExchangePorts {
  readonly isAllowed: AddressRule;
  readonly lookup: Lookup;
  readonly userAgent: string;
  /** A piece of the answer's body; valid during the call only. */
  onBody(bytes: Buffer): void;
  /** JSON, after what came of the body; none when nothing of an answer came. */
  onResult(result: Buffer): void;
  /** Last; not after `abort`. */
  onDone(verdict: Verdict): void;
  /** False while the supervisor does not take output; `resume` follows. */
  mayRead(): boolean;
}

/** What is under way on one connection. */
interface Attempt {
  readonly hop: Hop;
  readonly request: ClientRequest;
  response: IncomingMessage | null;
}

export class Exchange {
  readonly #request: MakeRequest;
  readonly #ports: ExchangePorts;
  readonly #connections = new AbortController();
  #attempt: Attempt | null = null;
  #redirectsLeft: number;
  #isSent = false;
  #isOver = false;
  readonly #kept: Buffer[] = [];
  #keptBytes = 0;
  #bodyBytes = 0;
  #credit = INITIAL_CREDIT_BYTES;
  /** What is left to tell, once there is credit for it. */
  #ending: { readonly result: Buffer | null; readonly verdict: Verdict } | null = null;

  constructor(request: MakeRequest, ports: ExchangePorts) {
    this.#request = request;
    this.#ports = ports;
    this.#redirectsLeft = request.http.followRedirects;
  }

  /** Once. */
  start(): void {
    this.#attemptTo(() => firstHop(this.#request, this.#ports.userAgent));
  }

  /**
   * Nothing of the request is under way any more, and nothing more is told. What came of an answer is, before that, and
   * without credit: it is bounded, there is one for each request, and a stop cannot wait for who is slow to take output.
   */
  abort(): void {
    if (this.#isOver) return;
    const attempt = this.#attempt;
    const result = attempt === null ? (this.#ending?.result ?? null) : this.#partOf(attempt);
    this.#isOver = true;
    this.#disconnect();
    if (result !== null) this.#ports.onResult(result);
  }

  /** The replica has room for this many more bytes. */
  grant(bytes: number): void {
    this.#credit += bytes;
    this.resume();
  }

  resume(): void {
    if (!this.#canRead()) return;
    if (this.#ending === null) this.#attempt?.response?.resume();
    else this.#tell(this.#ending);
  }

  /** A spec that another version took may be one that cannot be sent; it must not end the requests of other runs. */
  #attemptTo(hop: () => Hop): void {
    try {
      this.#go(hop());
    } catch (error) {
      this.#end(null, judgeFault(codeOf(error), this.#isSent));
    }
  }

  #go(hop: Hop): void {
    const { isAllowed, lookup } = this.#ports;
    const { url, method, body } = hop;
    const { signal } = this.#connections;
    const request = openRequest({
      method,
      path: `${url.pathname}${url.search}`,
      maxHeaderSize: MAX_HEADER_BYTES,
      setHost: false,
      // Without an agent: no connection is kept or used again.
      createConnection: (_options, callback) => {
        connect(url, { isAllowed, lookup, signal }, callback);
        return undefined;
      },
    });
    const attempt: Attempt = { hop, request, response: null };
    this.#attempt = attempt;
    // Listened to before anything is set: what is refused there ends with an error of its own, too.
    request.once('socket', () => {
      this.#isSent = true;
    });
    request.once('response', (response) => this.#answer(attempt, response));
    request.on('error', (error) => {
      // The answer is whole, and its end follows: what breaks behind it (surplus bytes, a reset) takes nothing from it.
      if (attempt.response?.complete !== true) this.#failed(attempt, error);
    });
    request.once('close', () => {
      // An upgrade nobody asked for ends without an error. An answer that is there may still be read after the close.
      if (attempt.response === null) this.#failed(attempt, null);
    });
    request.setHeader('Host', url.host);
    for (const [name, value] of hop.headers) request.setHeader(name, value);
    // Node frames a body by itself, but not one of DELETE and OPTIONS.
    const hasBody = body !== null || ['POST', 'PUT', 'PATCH'].includes(method);
    if (hasBody) request.setHeader('Content-Length', Buffer.byteLength(body ?? ''));
    request.end(body ?? undefined);
  }

  #answer(attempt: Attempt, response: IncomingMessage): void {
    attempt.response = response;
    response.on('error', (error) => this.#failed(attempt, error));
    const next =
      this.#redirectsLeft === 0 ? null : nextHop(attempt.hop, response.statusCode ?? 0, response.headers.location);
    if (next === 'unfit') {
      this.#end(this.#resultOf(attempt, false), judgeFault('CAPSTAN_REDIRECT', true));
      return;
    }
    if (next !== null) {
      this.#redirectsLeft -= 1;
      this.#attempt = null;
      attempt.request.destroy();
      this.#attemptTo(() => next);
      return;
    }
    response.on('data', (chunk: Buffer) => this.#take(response, chunk));
    response.once('end', () => {
      if (response.complete) this.#answered(attempt);
      else this.#failed(attempt, null);
    });
  }

  #take(response: IncomingMessage, chunk: Buffer): void {
    if (this.#isOver) return;
    this.#bodyBytes += chunk.length;
    const room = MAX_KEPT_BODY_BYTES - this.#keptBytes;
    if (room > 0) {
      const piece = Buffer.from(chunk.subarray(0, room));
      this.#kept.push(piece);
      this.#keptBytes += piece.length;
    }
    this.#credit -= creditOf(chunk.length);
    this.#ports.onBody(chunk);
    if (!this.#canRead()) response.pause();
  }

  #canRead(): boolean {
    return this.#credit > 0 && this.#ports.mayRead();
  }

  #answered(attempt: Attempt): void {
    const status = attempt.response?.statusCode ?? 0;
    this.#end(this.#resultOf(attempt, true), judgeStatus(status, this.#request.http.expectedStatus));
  }

  /** Of several errors of one attempt the first counts; `null` is an end without a word. */
  #failed(attempt: Attempt, error: Error | null): void {
    if (attempt !== this.#attempt) return;
    if (attempt.response !== null) this.#takeRest(attempt.response);
    this.#end(
      this.#partOf(attempt),
      error instanceof AddressDenied ? judgeDenied(error) : judgeFault(codeOf(error), this.#isSent),
    );
  }

  /** What came before the fault and was not read yet: beyond the credit by as much as a stream buffers, and no more. */
  #takeRest(response: IncomingMessage): void {
    response.removeAllListeners('data');
    response.pause();
    const rest: Buffer | null = response.read();
    if (rest !== null) this.#take(response, rest);
  }

  #partOf(attempt: Attempt): Buffer | null {
    return attempt.response === null ? null : this.#resultOf(attempt, false);
  }

  #resultOf({ hop, response }: Attempt, isComplete: boolean): Buffer {
    const answer = {
      status: response?.statusCode ?? 0,
      headers: headersOf(response?.rawHeaders ?? []),
      url: hop.url.href,
      kept: Buffer.concat(this.#kept),
      bodyBytes: this.#bodyBytes,
      isComplete,
    };
    return Buffer.from(resultOf(answer));
  }

  #end(result: Buffer | null, verdict: Verdict): void {
    if (this.#isOver || this.#ending !== null) return;
    this.#ending = { result, verdict };
    this.#disconnect();
    if (this.#canRead()) this.#tell(this.#ending);
  }

  #tell({ result, verdict }: { readonly result: Buffer | null; readonly verdict: Verdict }): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (result !== null) this.#ports.onResult(result);
    this.#ports.onDone(verdict);
  }

  #disconnect(): void {
    const attempt = this.#attempt;
    this.#attempt = null;
    attempt?.request.destroy();
    this.#connections.abort();
  }
}

/** Errors by their code: their texts may hold what was sent or what came. */
function codeOf(error: unknown): string {
  if (error === null) return 'ECONNRESET';
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown error';
}
