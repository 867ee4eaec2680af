/**
 * One end of the command channel: frames in, frames out in batches.
 * Invariant: a dead or broken peer is a call of `onClosed`, once, and never an exception in whoever sends.
 */
import type { Socket } from 'node:net';
import { type Frame, FrameError, FrameReader } from './frames.js';

/** Beyond this the peer is not reading; what can wait, waits. */
const CONGESTED_BYTES = 1024 * 1024;

export interface ChannelHandlers {
  /** May throw FrameError, which closes the channel as `malformed`. */
  onFrame(frame: Frame): void;
  onClosed(reason: 'closed' | 'malformed'): void;
  /** Everything sent has left; the channel is not congested any more. */
  onDrain?(): void;
}

export class Channel {
  readonly #socket: Socket;
  readonly #reader: FrameReader;
  readonly #handlers: ChannelHandlers;
  #isClosed = false;
  #isCorked = false;

  constructor(socket: Socket, maxFrameBytes: number, handlers: ChannelHandlers) {
    this.#socket = socket;
    this.#reader = new FrameReader(maxFrameBytes);
    this.#handlers = handlers;
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('end', () => this.#closed('closed'));
    socket.on('close', () => this.#closed('closed'));
    socket.on('drain', () => handlers.onDrain?.());
    // EPIPE and ECONNRESET; `close` follows.
    socket.on('error', () => {});
  }

  get isCongested(): boolean {
    return this.#socket.writableLength > CONGESTED_BYTES;
  }

  /** Takes no more frames until `resume`: the peer is held up once what is under way is full. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Frames of one turn of the event loop leave in one write. `onSent`: the frame's memory is free again. */
  send(frame: Buffer, onSent?: () => void): void {
    if (this.#socket.destroyed || this.#socket.writableEnded) return;
    if (!this.#isCorked) {
      this.#isCorked = true;
      this.#socket.cork();
      process.nextTick(() => {
        this.#isCorked = false;
        this.#socket.uncork();
      });
    }
    this.#socket.write(frame, onSent);
  }

  /** Sends what is under way, then closes; gives up after `limitMs` with a peer that does not read. */
  async close(limitMs: number): Promise<void> {
    if (this.#socket.destroyed) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, limitMs);
      const done = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#socket.once('close', done);
      this.#socket.end(done);
    });
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    if (this.#isClosed) return;
    try {
      for (const frame of this.#reader.read(chunk)) this.#handlers.onFrame(frame);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#closed('malformed');
      this.#socket.destroy();
    }
  }

  #closed(reason: 'closed' | 'malformed'): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#handlers.onClosed(reason);
  }
}
