/**
 * Copies what a run has written by now. Invariant: each byte is written once and unchanged, however often the
 * connection breaks off; where that can't be known any more, the copy fails.
 */
import type { StreamPick } from '../client/stream.js';
import { NO_CONNECTION, noConnection } from './answers.js';
import { pathOf } from './api.js';
import { unexpected } from './decode.js';
import { Failure } from './failure.js';
import { leftBehind } from './follow.js';
import type { ApiRequest, HttpClient } from './http.js';

/** How many bytes were dropped out of the text that is answered: with another number its offsets are others. */
const CUT_HEADER = 'capstan-output-cut';

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
  /** As it came with the first of them. */
  private cut: string | null = null;

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
    if (response.status === 416) return await this.concludeAt(response);
    this.keepCut(response);
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

  /** What was dropped meanwhile has moved all that stands behind it: the next bytes are no longer those at `position`. */
  private keepCut({ headers }: Response): void {
    const cut = headers.get(CUT_HEADER);
    if (this.position === 0) this.cut = cut;
    if (cut !== this.cut) throw movedOutput(this.id);
  }

  /** It broke off behind the last byte there was, unless there are fewer by now. */
  private async concludeAt({ headers, body }: Response): Promise<void> {
    await body?.cancel();
    const total = /^bytes \*\/(\d+)$/.exec(headers.get('content-range') ?? '')?.[1] ?? this.position;
    const isMoved = headers.has(CUT_HEADER) && headers.get(CUT_HEADER) !== this.cut;
    if (isMoved || Number(total) !== this.position) throw movedOutput(this.id);
  }
}

/** The first number of `Content-Range: bytes 5-9/10`. */
function startOf(response: Response): number {
  return Number(/^bytes (\d+)-/.exec(response.headers.get('content-range') ?? '')?.[1]);
}

/** Where the last lines begin may be another place by now. */
function brokenTail(): Failure {
  return noConnection('the connection broke off in the midst of the last lines', 'ask for them again');
}

function movedOutput(id: string): Failure {
  const detail =
    'the connection broke off, and more of the output was dropped before it could go on behind the same byte';
  const [follow] = leftBehind(id);
  return new Failure('unable', { title: 'output', detail, code: 'output_moved' }, [
    'what came so far is not all of it',
    `ask again: capstan logs ${id}`,
    follow,
  ]);
}
