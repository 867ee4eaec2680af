/**
 * One server over HTTP: sends a request until it is answered, as far as its trouble may pass. Nothing is followed to
 * another host, so the token goes nowhere else.
 */
import type { Timing } from '../platform/time.js';
import { lostConnection, NO_CONNECTION, refusal, type Setback } from './answers.js';
import type { Target } from './credentials.js';
import { unexpected } from './decode.js';
import { Failure } from './failure.js';
import { pauseBeforeRetry } from './retry.rules.js';

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** Below the server's URL, without a leading slash. */
  readonly path: string;
  readonly query?: URLSearchParams;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Statuses that are wanted besides 2xx. */
  readonly wanted?: readonly number[];
  /** How long one try may take. */
  readonly tryMs?: number;
  /** How long passing trouble is waited out, instead of the usual time. */
  readonly patienceMs?: number;
}

/** Reads a wanted answer. `stopClock` lifts the limit on the try's time, for an answer of any length. */
export type ReadAnswer<T> = (response: Response, stopClock: () => void) => Promise<T>;

const TRY_MS = 10_000;

export class HttpClient {
  private hasReached = false;

  constructor(
    private readonly target: Target,
    private readonly timing: Timing,
    /** Told once for each request that has to be sent again. */
    private readonly onRetry: (failure: Failure) => Promise<void>,
  ) {}

  /** `request` is asked anew for each try. Fails with the last trouble when it didn't pass. */
  async send<T>(request: () => ApiRequest, read: ReadAnswer<T>): Promise<T> {
    const begunMs = this.timing.monotonicMs();
    for (let tries = 1; ; tries++) {
      const asked = request();
      const attempt = await this.attempt(asked, read);
      if ('value' in attempt) return attempt.value;
      this.hasReached ||= attempt.reached;
      const elapsedMs = this.timing.monotonicMs() - begunMs;
      const { retryAfterMs } = attempt;
      const trouble = { tries, elapsedMs, retryAfterMs, reached: this.hasReached, patienceMs: asked.patienceMs };
      // Where somebody has answered, a name that isn't found or a broken handshake is trouble of the network.
      const mayPass = attempt.isPassing || (this.hasReached && attempt.failure.problem.code === NO_CONNECTION);
      const pauseMs = mayPass ? pauseBeforeRetry(trouble, this.timing.random()) : undefined;
      if (pauseMs === undefined) throw attempt.failure;
      if (tries === 1 && this.hasReached) await this.onRetry(attempt.failure);
      await this.timing.delay(pauseMs);
    }
  }

  /** The answer as soon as it begins; its body may take any time. A break of it is for the caller: see `setback`. */
  open(request: ApiRequest): Promise<Response> {
    return this.send(
      () => request,
      async (response, stopClock) => {
        stopClock();
        return response;
      },
    );
  }

  /** What it means that reading a body failed so; `undefined`: nothing of the connection's. */
  setback(error: unknown): Setback | undefined {
    return lostConnection(error, this.target);
  }

  private async attempt<T>(request: ApiRequest, read: ReadAnswer<T>): Promise<{ value: T } | Setback> {
    const clock = new AbortController();
    const timer = setTimeout(() => clock.abort(), request.tryMs ?? TRY_MS);
    try {
      const response = await fetch(this.urlOf(request), { ...this.initOf(request), signal: clock.signal });
      this.hasReached = true;
      if (!response.ok && !request.wanted?.includes(response.status)) {
        return await refusal(response, this.target, Date.now());
      }
      return { value: await read(response, () => clearTimeout(timer)) };
    } catch (error) {
      if (error instanceof Failure) throw error;
      const setback = lostConnection(error, this.target);
      if (setback === undefined) throw error;
      return setback;
    } finally {
      clearTimeout(timer);
    }
  }

  private urlOf({ path, query }: ApiRequest): URL {
    const url = new URL(path, this.target.url);
    if (query !== undefined) url.search = query.toString();
    return url;
  }

  private initOf({ method, headers, body }: ApiRequest): RequestInit {
    const { token } = this.target;
    return {
      method,
      redirect: 'manual',
      headers: {
        accept: 'application/json, application/problem+json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
  }
}

export async function readJson(response: Response): Promise<unknown> {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    throw unexpected('the body is not JSON');
  }
}
