/**
 * One server over HTTP: sends a request until it is answered, as far as its trouble may pass and sending it again is
 * safe. Invariants: every POST carries an `Idempotency-Key`, the same in all its tries; nothing is followed to another
 * host, so the token goes nowhere else.
 */
import { type LostConnection, lostConnection } from './connection.js';
import { type CapstanProblem, NoConnection, problemOf, UnexpectedAnswer } from './errors.js';
import { isPassing, pauseBeforeRetry, retryAfter } from './retry.rules.js';
import { realTiming, type Timing } from './timing.js';

export interface TransportOptions {
  /** Ends in a slash. */
  readonly url: URL;
  readonly token?: string | undefined;
  readonly timing?: Timing | undefined;
  /** How long passing trouble is waited out, instead of 15 s. */
  readonly patienceMs?: number | undefined;
  /** Told once for each request that has to be sent again. */
  readonly onRetry?: ((error: CapstanProblem | NoConnection) => Promise<void>) | undefined;
}

export interface TransportRequest {
  readonly method: string;
  /** Below the server's URL, without a leading slash, with its query. */
  readonly path: string;
  /** In lower case. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** JSON. */
  readonly body?: string | undefined;
  /** Of a POST; none: one of our own. */
  readonly idempotencyKey?: string | undefined;
  /** Whether an answer is wanted that isn't 2xx. */
  readonly isWanted?: ((response: Response) => boolean) | undefined;
  /** How long one try may take. */
  readonly tryMs?: number | undefined;
  /** How long passing trouble is waited out, instead of the usual time. */
  readonly patienceMs?: number | undefined;
  /** Ends the request and every wait for another try at once, by throwing its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Reads a wanted answer. `stopClock` lifts the limit on the try's time, for an answer of any length. */
export type ReadAnswer<T> = (response: Response, stopClock: () => void) => Promise<T>;

interface Setback {
  readonly error: CapstanProblem | NoConnection;
  readonly isPassing: boolean;
  readonly reached: boolean;
  readonly retryAfterMs: number | undefined;
}

const TRY_MS = 10_000;

export class Transport {
  readonly origin: string;
  readonly timing: Timing;
  private hasReached = false;
  /** Hidden from whoever prints this object. */
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.origin = options.url.origin;
    this.timing = options.timing ?? realTiming;
    this.#options = options;
  }

  /** `request` is asked anew for each try. Throws the last trouble when it didn't pass. */
  async send<T>(request: () => TransportRequest, read: ReadAnswer<T>): Promise<T> {
    let begunMs = this.timing.monotonicMs();
    const ownKey = crypto.randomUUID();
    for (let tries = 1; ; tries++) {
      const asked = request();
      const { signal, patienceMs = this.#options.patienceMs } = asked;
      const attempt = await this.attempt(asked, ownKey, read);
      if ('value' in attempt) return attempt.value;
      this.hasReached ||= attempt.reached;
      const nowMs = this.timing.monotonicMs();
      // Work that may take longer than patience lasts was no trouble until its first try failed before its time.
      const { tryMs = TRY_MS } = asked;
      if (tries === 1 && tryMs > TRY_MS && nowMs - begunMs < tryMs) begunMs = nowMs;
      const elapsedMs = nowMs - begunMs;
      const { retryAfterMs } = attempt;
      const trouble = { tries, elapsedMs, retryAfterMs, reached: this.hasReached, patienceMs };
      // Where somebody has answered, a name that isn't found or a broken handshake is trouble of the network.
      const mayPass = attempt.isPassing || (this.hasReached && attempt.error instanceof NoConnection);
      const pauseMs = mayPass ? pauseBeforeRetry(trouble, this.timing.random()) : undefined;
      if (pauseMs === undefined) throw attempt.error;
      if (tries === 1 && this.hasReached) await this.#options.onRetry?.(attempt.error);
      await this.timing.delay(pauseMs, signal);
      signal?.throwIfAborted();
    }
  }

  /** The answer as soon as it begins; its body may take any time. A break of it is for the caller: see `brokenOff`. */
  open(request: TransportRequest): Promise<Response> {
    return this.send(
      () => request,
      async (response, stopClock) => {
        stopClock();
        return response;
      },
    );
  }

  /** What it means that reading a body failed so; `undefined`: nothing of the connection's. */
  brokenOff(error: unknown): LostConnection | undefined {
    return lostConnection(error, this.origin);
  }

  private async attempt<T>(
    request: TransportRequest,
    ownKey: string,
    read: ReadAnswer<T>,
  ): Promise<{ value: T } | Setback> {
    const { signal, tryMs = TRY_MS } = request;
    signal?.throwIfAborted();
    const clock = new AbortController();
    const timer = setTimeout(() => clock.abort(), tryMs);
    // Lasts as long as the body does, which may be read after this try.
    const ends = signal === undefined ? clock.signal : AbortSignal.any([signal, clock.signal]);
    try {
      const response = await fetch(this.urlOf(request), { ...this.initOf(request, ownKey), signal: ends });
      this.hasReached = true;
      if (!response.ok && !request.isWanted?.(response)) return await this.refusal(response);
      return { value: await read(response, () => clearTimeout(timer)) };
    } catch (error) {
      signal?.throwIfAborted();
      const lost = this.brokenOff(error);
      if (lost === undefined) throw error;
      return { ...lost, retryAfterMs: undefined };
    } finally {
      clearTimeout(timer);
    }
  }

  private async refusal(response: Response): Promise<Setback> {
    const error = await problemOf(response, this.origin);
    const retryAfterMs = retryAfter(response.headers.get('retry-after'), Date.now());
    return { error, isPassing: isPassing(response.status), reached: true, retryAfterMs };
  }

  /** A path can't lead to another host, whatever stands in it. */
  private urlOf({ path }: TransportRequest): string {
    return `${this.#options.url.href}${path}`;
  }

  private initOf(
    { method, headers, body, idempotencyKey }: TransportRequest,
    ownKey: string,
  ): RequestInit & { readonly headers: Record<string, string> } {
    const { token } = this.#options;
    return {
      method,
      redirect: 'manual',
      headers: {
        accept: 'application/json, application/problem+json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(method === 'POST' ? { 'idempotency-key': headerText(idempotencyKey ?? ownKey) } : {}),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
    };
  }
}

/** A header holds bytes: fetch takes each as one character. */
export function headerText(text: string): string {
  return Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('');
}

/** Throws `UnexpectedAnswer` when the body is something else. */
export async function readJson(response: Response): Promise<unknown> {
  return jsonIn(await response.text(), 'the body');
}

/** `what` is what the text is. Throws `UnexpectedAnswer`. */
export function jsonIn(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UnexpectedAnswer(`${what} is not JSON`);
  }
}
