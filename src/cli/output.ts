/**
 * Copies what a run has written by now. Invariant: each byte is written once and unchanged, however often the
 * connection breaks off.
 */
import { NO_CONNECTION } from './answers.js';
import { pathOf } from './api.js';
import { unexpected } from './decode.js';
import { Failure } from './failure.js';
import type { ApiRequest, HttpClient } from './http.js';
import type { StreamPick } from './stream.js';

export type WriteOutput = (data: Uint8Array) => Promise<void>;

export async function copyOutput(http: HttpClient, id: string, pick: StreamPick, write: WriteOutput): Promise<void> {
  const copy = new OutputCopy(id, pick, write);
  for (let isComplete = false; !isComplete; ) {
    const start = copy.position;
    try {
      await http.send(
        () => copy.request(),
        (response, stopClock) => copy.take(response, stopClock),
      );
      isComplete = true;
    } catch (error) {
      // A transfer longer than the time for retries may break off and go on, as long as it gets anywhere.
      const isBroken = error instanceof Failure && error.problem.code === NO_CONNECTION;
      if (!isBroken || copy.position === start) throw error;
    }
  }
}

class OutputCopy {
  /** Bytes that were written. */
  position = 0;

  constructor(
    private readonly id: string,
    private readonly pick: StreamPick,
    private readonly write: WriteOutput,
  ) {}

  request(): ApiRequest {
    const { stream, tail } = this.pick;
    if (tail !== undefined && this.position > 0) throw brokenTail();
    const query = new URLSearchParams();
    if (stream !== undefined) query.set('stream', stream);
    if (tail !== undefined) query.set('tail', String(tail));
    const headers = {
      accept: 'text/plain, application/problem+json',
      // A compressed body would count other bytes.
      'accept-encoding': 'identity',
      ...(this.position === 0 ? undefined : { range: `bytes=${this.position}-` }),
    };
    return { method: 'GET', path: `${pathOf(this.id)}/output`, query, headers, wanted: [416] };
  }

  async take(response: Response, stopClock: () => void): Promise<void> {
    // It broke off behind the last byte there was.
    if (response.status === 416) return await response.body?.cancel();
    const isPart = response.status === 206;
    if (isPart && startOf(response) !== this.position) throw unexpected('another range of the output than asked for');
    stopClock();
    // A server or proxy that doesn't know ranges sends everything again.
    let skip = isPart ? 0 : this.position;
    for await (const chunk of response.body ?? []) {
      const fresh = chunk.subarray(Math.min(skip, chunk.length));
      skip -= chunk.length - fresh.length;
      if (fresh.length > 0) await this.write(fresh);
      this.position += fresh.length;
    }
  }
}

/** The first number of `Content-Range: bytes 5-9/10`. */
function startOf(response: Response): number {
  return Number(/^bytes (\d+)-/.exec(response.headers.get('content-range') ?? '')?.[1]);
}

/** Where the last lines begin may be another place by now. */
function brokenTail(): Failure {
  const detail = 'the connection broke off in the midst of the last lines';
  return new Failure('unable', { title: 'no connection', detail, code: NO_CONNECTION }, ['ask for them again']);
}
