/**
 * Copies what a run wrote, from where the last copy ended. Invariant: each byte is written once and unchanged, however
 * often the connection breaks off.
 */
import { NO_CONNECTION } from './answers.js';
import { pathOf } from './api.js';
import { unexpected } from './decode.js';
import { Failure } from './failure.js';
import type { ApiRequest, HttpClient } from './http.js';

/** `undefined`: both in the order of their arrival. */
export type StreamName = 'stdout' | 'stderr' | undefined;

export interface OutputSink {
  write(data: Uint8Array): Promise<void>;
  /** The server dropped output before it was copied. */
  lost(): Promise<void>;
}

export class OutputCopy {
  /** Bytes of the stream that were written. */
  private position = 0;

  constructor(
    private readonly http: HttpClient,
    private readonly runId: string,
    private readonly stream: StreamName,
    private readonly sink: OutputSink,
  ) {}

  /** Copies all there is by now, and returns how many bytes that was. */
  async copyNew(): Promise<number> {
    const before = this.position;
    for (let isComplete = false; !isComplete; ) {
      const start = this.position;
      try {
        isComplete = await this.http.send(
          () => this.request(),
          (response, stopClock) => this.take(response, stopClock),
        );
      } catch (error) {
        // A transfer longer than the time for retries may break off and go on, as long as it gets anywhere.
        const isBroken = error instanceof Failure && error.problem.code === NO_CONNECTION;
        if (!isBroken || this.position === start) throw error;
      }
    }
    return this.position - before;
  }

  private request(): ApiRequest {
    const query = new URLSearchParams(this.stream === undefined ? {} : { stream: this.stream });
    const headers = {
      accept: 'text/plain, application/problem+json',
      // A compressed body would count other bytes.
      'accept-encoding': 'identity',
      ...(this.position === 0 ? undefined : { range: `bytes=${this.position}-` }),
    };
    return { method: 'GET', path: `${pathOf(this.runId)}/output`, query, headers, wanted: [416] };
  }

  /** Whether there was no more at the time of the answer. */
  private async take(response: Response, stopClock: () => void): Promise<boolean> {
    const range = rangeOf(response);
    if (response.status === 416) return this.outside(response, range.total);
    const isPart = response.status === 206;
    if (isPart && range.start !== this.position) throw unexpected('another range of the output than asked for');
    stopClock();
    // A server or proxy that doesn't know ranges sends everything again.
    const start = this.position;
    let skip = isPart ? 0 : start;
    for await (const chunk of response.body ?? []) {
      const fresh = chunk.subarray(Math.min(skip, chunk.length));
      skip -= chunk.length - fresh.length;
      if (fresh.length > 0) await this.sink.write(fresh);
      this.position += fresh.length;
    }
    return !isPart || range.total === undefined || this.position >= range.total || this.position === start;
  }

  /** Nothing behind our position: the usual case while a tool is silent. */
  private async outside(response: Response, total: number | undefined): Promise<true> {
    await response.body?.cancel();
    if (total !== undefined && total < this.position) {
      // The middle of a long output was cut out: what follows is counted from a shorter whole.
      await this.sink.lost();
      this.position = total;
    }
    return true;
  }
}

/** The numbers of `Content-Range: bytes 5-9/10` or of `bytes` and a star for the range. */
function rangeOf(response: Response): { start: number | undefined; total: number | undefined } {
  const match = /^bytes (?:(\d+)-\d+|\*)\/(\d+|\*)$/.exec(response.headers.get('content-range') ?? '');
  const [start, total] = [match?.[1], match?.[2]];
  return {
    start: start === undefined ? undefined : Number(start),
    total: total === undefined || total === '*' ? undefined : Number(total),
  };
}
