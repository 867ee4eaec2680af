/** A viewer of a run: server-sent events over a connection of its own, as they come. */
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { createParser } from 'eventsource-parser';

export interface Seen {
  readonly event: string;
  readonly id: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: what a message holds is what the test is about
  readonly data: any;
}

export interface StreamOptions {
  readonly base: string;
  readonly token: string;
  /** Path and query. */
  readonly path: string;
  readonly lastEventId?: string | undefined;
  /** Called with each message before the next is looked at. */
  readonly onMessage?: (seen: Seen) => void;
}

export class StreamClient {
  readonly seen: Seen[] = [];
  /** The id to go on behind. */
  lastId: string | undefined;
  comments = 0;
  retryMs: number | undefined;
  bytes = 0;
  /** Resolves when the connection is closed, by whichever side. */
  readonly closed: Promise<void>;
  private isClosed = false;

  private constructor(
    private readonly sent: ClientRequest,
    readonly answer: IncomingMessage,
    { lastEventId, onMessage }: StreamOptions,
  ) {
    this.lastId = lastEventId;
    const parser = createParser({
      onEvent: ({ event = 'message', id, data }) => {
        // What was read before the connection was dropped still counts, what comes after doesn't.
        if (this.isClosed) return;
        const seen = { event, id, data: JSON.parse(data) };
        this.seen.push(seen);
        if (id !== undefined) this.lastId = id;
        onMessage?.(seen);
      },
      onComment: () => {
        this.comments += 1;
      },
      onRetry: (ms) => {
        this.retryMs = ms;
      },
    });
    const text = new TextDecoder();
    answer.on('data', (part: Buffer) => {
      this.bytes += part.length;
      parser.feed(text.decode(part, { stream: true }));
    });
    answer.on('error', () => undefined);
    this.closed = new Promise((resolve) => answer.on('close', resolve));
  }

  /** Resolves with the head of the answer; the messages follow. */
  static open(options: StreamOptions): Promise<StreamClient> {
    const { base, token, path, lastEventId } = options;
    const { hostname, port } = new URL(base);
    const headers = {
      authorization: `Bearer ${token}`,
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    };
    return new Promise((resolve, reject) => {
      const sent = request({ hostname, port, path, headers, agent: false }, (answer) =>
        resolve(new StreamClient(sent, answer, options)),
      );
      sent.on('error', reject);
      sent.end();
    });
  }

  get status(): number {
    return this.answer.statusCode ?? 0;
  }

  /** All output so far. */
  output(stream?: 'stdout' | 'stderr'): Buffer {
    return outputOf(this.seen, stream);
  }

  of(event: string): Seen[] {
    return this.seen.filter((seen) => seen.event === event);
  }

  get end(): Seen['data'] {
    return this.of('end')[0]?.data;
  }

  pause(): void {
    this.answer.pause();
  }

  resume(): void {
    this.answer.resume();
  }

  /** Drops the connection with a reset. */
  reset(): void {
    this.isClosed = true;
    this.sent.socket?.resetAndDestroy();
  }
}

export function outputOf(seen: readonly Seen[], stream?: 'stdout' | 'stderr'): Buffer {
  const chunks = seen.filter(({ event, data }) => event === 'output' && (!stream || data.stream === stream));
  return Buffer.concat(chunks.map(({ data }) => Buffer.from(data.data, 'base64')));
}
