/**
 * Sends what tools wrote to the replica. Invariant: large frames use memory again; made anew for each, they leave a
 * heap of tens of MiB behind a chatty tool.
 */
import { OUTPUT_OVERHEAD_BYTES, type OutputChunk, outputFrame } from './frames.js';
import { READ_BYTES } from './output.js';

/** Output below this is framed in memory of its own. */
const LARGE_BYTES = 4096;
const SPARE_FRAMES = 16;

export class OutputSender {
  readonly #send: (frame: Buffer, onSent?: () => void) => void;
  readonly #spareFrames: Buffer[] = [];
  #discards = false;

  constructor(send: (frame: Buffer, onSent?: () => void) => void) {
    this.#send = send;
  }

  /** Nobody wants output any more. */
  get discards(): boolean {
    return this.#discards;
  }

  discard(): void {
    this.#discards = true;
  }

  /** The bytes are copied. */
  send(chunk: OutputChunk): void {
    if (this.#discards) return;
    if (chunk.bytes.length < LARGE_BYTES) {
      this.#send(outputFrame(chunk));
      return;
    }
    const space = this.#spareFrames.pop() ?? Buffer.allocUnsafeSlow(READ_BYTES + OUTPUT_OVERHEAD_BYTES);
    this.#send(outputFrame(chunk, space), () => {
      if (this.#spareFrames.length < SPARE_FRAMES) this.#spareFrames.push(space);
    });
  }
}
