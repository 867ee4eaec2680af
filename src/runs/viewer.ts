/**
 * One connection that follows a run. Its memory is one message: what comes behind stays in the store, or in the
 * database, until the connection has taken it. Who takes nothing for too long is cut off, and may come again.
 */
import type { Writable } from 'node:stream';
import type { Place } from './place.rules.js';
import type { RunTail } from './run-tail.js';
import { HEARTBEAT, type Message, RETRY, withoutFirst } from './stream-message.rules.js';

/** Written at once. A connection is alive if it takes one of these within the limit. */
const SLICE_BYTES = 64 * 1024;

export interface ViewerOptions {
  readonly from: Place;
  /** Output of this stream alone; events come all the same. */
  readonly stream: 1 | 2 | undefined;
  /** Bytes of the very first chunk to leave out. */
  readonly skipBytes: number;
  readonly heartbeatMs: number;
  /** A connection that takes nothing for so long is cut off. */
  readonly stallMs: number;
  readonly onSent: (bytes: number) => void;
}

export class Viewer {
  private place: Place;
  private skipBytes: number;
  private isSending = false;
  private isStopped = false;

  constructor(
    private readonly out: Writable,
    private readonly tail: Pick<RunTail, 'next' | 'endAt' | 'more' | 'isBroken'>,
    private readonly options: ViewerOptions,
  ) {
    this.place = options.from;
    this.skipBytes = options.skipBytes;
  }

  /** Resolves when the connection is at its end: the run has ended, it was closed by either side, or cut off. */
  async run(): Promise<void> {
    const beat = setInterval(() => this.beat(), this.options.heartbeatMs);
    try {
      if (!this.isOver) await this.send(RETRY);
      await this.follow();
    } finally {
      clearInterval(beat);
      this.out.end();
    }
  }

  /** Ends the connection behind the message that it is taking. */
  stop(): void {
    this.isStopped = true;
    if (!this.isSending) this.out.end();
  }

  private get isOver(): boolean {
    return this.isStopped || this.out.destroyed || this.tail.isBroken;
  }

  private async follow(): Promise<void> {
    while (!this.isOver) {
      const message = this.tail.next(this.place);
      if (message) {
        await this.give(message);
        continue;
      }
      const end = this.tail.endAt(this.place);
      if (end) return this.send(end);
      await this.tail.more(this.place);
    }
  }

  private async give(message: Message): Promise<void> {
    const { stream } = this.options;
    this.place = message.place;
    const { chunk } = message;
    if (chunk === undefined) return this.send(message.bytes);
    const skipBytes = this.skipBytes;
    this.skipBytes = 0;
    if (stream !== undefined && chunk.stream !== stream) return;
    return this.send(skipBytes > 0 ? withoutFirst(message, skipBytes).bytes : message.bytes);
  }

  private async send(bytes: Buffer): Promise<void> {
    this.isSending = true;
    for (let at = 0; at < bytes.length && !this.out.destroyed; at += SLICE_BYTES) {
      if (!this.out.write(bytes.subarray(at, at + SLICE_BYTES))) await this.drained();
    }
    this.isSending = false;
    this.options.onSent(bytes.length);
  }

  /** Resolves when the connection takes more, or is gone. */
  private drained(): Promise<void> {
    const { out } = this;
    if (out.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(() => out.destroy(), this.options.stallMs);
      const done = () => {
        clearTimeout(timer);
        out.off('drain', done);
        out.off('close', done);
        resolve();
      };
      out.once('drain', done);
      out.once('close', done);
    });
  }

  private beat(): void {
    // In the middle of a message it would become a part of it.
    if (!this.isSending && !this.isOver) this.out.write(HEARTBEAT);
  }
}
