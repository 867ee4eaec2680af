/**
 * The reading end of a tool's stdout or stderr, with a hand on the tap.
 * Invariant: while anyone of the tool's group can write, the pipe is read to its end; afterwards only what it can
 * still hold is, so a process that left the group cannot hold up the end.
 */
import { type ConnectOpts, Socket, type SocketConstructorOpts } from 'node:net';

/** Once the group is empty: this long without a byte is the end … */
const QUIET_MS = 100;
/** … and a stranger who goes on writing is cut off here. A pipe holds at most 1 MiB of what the group wrote. */
const REST_BYTES = 1024 * 1024;
const REST_MS = 2_000;

export const READ_BYTES = 64 * 1024;

/** One for all pipes: a read is handed over and copied before the next one begins. */
const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);

export interface OutputPipeHandlers {
  /** The bytes are valid during the call only. Returns whether to go on reading now. */
  onBytes(bytes: Buffer): boolean;
  /** Nothing more will come. */
  onClosed(): void;
}

export class OutputPipe {
  readonly #socket: Socket;
  readonly #handlers: OutputPipeHandlers;
  #rest: { bytes: number; readonly untilMs: number } | null = null;
  #quietTimer: NodeJS.Timeout | null = null;

  /** Takes over `fd`, which must be non-blocking and have a writer already. */
  constructor(fd: number, handlers: OutputPipeHandlers) {
    this.#handlers = handlers;
    // `onread` is typed for connections only; the constructor takes it too (net.connect hands its options on to it).
    const options: SocketConstructorOpts & ConnectOpts = {
      fd,
      readable: true,
      writable: false,
      onread: { buffer: readBuffer, callback: (bytes) => this.#read(readBuffer.subarray(0, bytes)) },
    };
    this.#socket = new Socket(options);
    // `close` follows an error; either way nothing more comes from here.
    this.#socket.on('error', () => {});
    this.#socket.once('close', () => {
      if (this.#quietTimer !== null) clearTimeout(this.#quietTimer);
      handlers.onClosed();
    });
  }

  /** Goes on after `onBytes` returned false. */
  resume(): void {
    this.#socket.resume();
  }

  /** The group is empty: reads what is left, whatever `onBytes` returns, and closes. */
  readRest(): void {
    if (this.#rest !== null) return;
    this.#rest = { bytes: 0, untilMs: performance.now() + REST_MS };
    this.#socket.resume();
    this.#awaitQuiet(this.#rest);
  }

  #read(bytes: Buffer): boolean {
    const goOn = this.#handlers.onBytes(bytes);
    if (this.#rest === null) return goOn;
    this.#rest.bytes += bytes.length;
    if (this.#rest.bytes > REST_BYTES) this.#socket.destroy();
    return true;
  }

  #awaitQuiet(rest: { bytes: number; readonly untilMs: number }): void {
    const before = rest.bytes;
    this.#quietTimer = setTimeout(() => {
      // After a stall timers come before reads: what is waiting in the pipe gets one turn of the loop first.
      setImmediate(() => {
        if (this.#socket.destroyed) return;
        if (rest.bytes === before || performance.now() > rest.untilMs) this.#socket.destroy();
        else this.#awaitQuiet(rest);
      });
    }, QUIET_MS);
  }
}
