/** The client's transport as commands use it: whatever it throws comes as a failure, with what to do next. */
import type { SentEvent } from '../client/events.js';
import { runEvents, type StreamPick } from '../client/stream.js';
import { type ReadAnswer, Transport } from '../client/transport.js';
import { type VerificationStep, verificationSteps } from '../client/verification.js';
import type { Timing } from '../platform/time.js';
import { failureOf, troubleOf } from './answers.js';
import type { Target } from './credentials.js';
import type { Failure } from './failure.js';

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** Below the server's URL, without a leading slash. */
  readonly path: string;
  readonly query?: URLSearchParams;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Makes one thing of however many tries. */
  readonly idempotencyKey?: string;
  /** Statuses that are wanted besides 2xx. */
  readonly wanted?: readonly number[];
  /** How long one try may take. */
  readonly tryMs?: number;
}

export class HttpClient {
  private readonly transport: Transport;

  constructor(
    private readonly target: Target,
    timing: Timing,
    /** Told once for each request that has to be sent again. */
    onRetry: (failure: Failure) => Promise<void>,
  ) {
    const { url, token } = target;
    this.transport = new Transport({ url, token, timing, onRetry: (error) => onRetry(troubleOf(error, target)) });
  }

  /** `request` is asked anew for each try. Fails with the last trouble when it didn't pass. */
  async send<T>(request: () => ApiRequest, read: ReadAnswer<T>): Promise<T> {
    const asked = () => {
      const { path, query, body, wanted, ...same } = request();
      return {
        ...same,
        path: query === undefined ? path : `${path}?${query}`,
        body: body === undefined ? undefined : JSON.stringify(body),
        isWanted: ({ status }: Response) => wanted?.includes(status) === true,
      };
    };
    return await this.transport.send(asked, read).catch((error) => Promise.reject(this.failure(error)));
  }

  /** The events of a run, over as many connections as it takes; the last one is `end`. */
  streamOf(runId: string, pick: StreamPick): AsyncGenerator<SentEvent> {
    return this.failing(runEvents(this.transport, runId, pick));
  }

  /** Up to the `result` of a verification. */
  verification(query: URLSearchParams): AsyncGenerator<VerificationStep> {
    return this.failing(verificationSteps(this.transport, query));
  }

  private async *failing<T>(items: AsyncGenerator<T>): AsyncGenerator<T> {
    try {
      yield* items;
    } catch (error) {
      throw this.failure(error);
    }
  }

  private failure(error: unknown): unknown {
    return failureOf(error, this.target);
  }
}
