/**
 * Frames of the command channel: u32 length (big endian, of what follows) · u8 type · payload.
 * Invariant: a length beyond the bound is refused before a byte of it is stored.
 */

export const FRAME_JSON = 1;
export const FRAME_OUTPUT = 2;

/** A plan may carry a script and its files. */
export const MAX_COMMAND_BYTES = 16 * 1024 * 1024;
/** One read of a pipe, or one control message. */
export const MAX_EVENT_BYTES = 1024 * 1024;

/** Room for a frame of output; plans may be larger. */
const SPARE_BYTES = 128 * 1024;

const CHUNK_OVERHEAD_BYTES = 64;

const OUTPUT_HEADER_BYTES = 17;
/** What a frame of output is longer than its bytes. */
export const OUTPUT_OVERHEAD_BYTES = 5 + OUTPUT_HEADER_BYTES;

/** The peer broke the framing; nothing it sends can be trusted any more. */
export class FrameError extends Error {}

/** A frame without its length: `type` and what follows it. */
export interface Frame {
  readonly type: number;
  readonly payload: Buffer;
}

/** Cuts a byte stream into frames, however it was split on the way. */
export class FrameReader {
  readonly #maxBytes: number;
  readonly #length = Buffer.alloc(4);
  #lengthFilled = 0;
  #body: Buffer | null = null;
  #bodyFilled = 0;
  /** Used again: made anew for each, frames of output leave a heap of tens of MiB behind. */
  #spare: Buffer | null = null;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The frames completed by `chunk`. A payload is valid until the next frame is asked for. Throws FrameError. */
  *read(chunk: Buffer): Generator<Frame> {
    let offset = 0;
    while (offset < chunk.length) {
      if (this.#body === null && this.#lengthFilled < 4) {
        const taken = chunk.copy(this.#length, this.#lengthFilled, offset);
        this.#lengthFilled += taken;
        offset += taken;
        continue;
      }
      const bytes = this.#checkedLength();
      if (this.#body === null && chunk.length - offset >= bytes) {
        this.#lengthFilled = 0;
        yield frameOf(chunk.subarray(offset, offset + bytes));
        offset += bytes;
        continue;
      }
      this.#body ??= this.#memoryFor(bytes);
      const taken = chunk.copy(this.#body, this.#bodyFilled, offset);
      this.#bodyFilled += taken;
      offset += taken;
      if (this.#bodyFilled === bytes) {
        const body = this.#body;
        this.#body = null;
        this.#bodyFilled = 0;
        this.#lengthFilled = 0;
        yield frameOf(body);
      }
    }
    // A length that is refused must not wait for the next chunk.
    if (this.#lengthFilled === 4) this.#checkedLength();
  }

  #memoryFor(bytes: number): Buffer {
    if (bytes > SPARE_BYTES) return Buffer.allocUnsafe(bytes);
    this.#spare ??= Buffer.allocUnsafeSlow(SPARE_BYTES);
    return this.#spare.subarray(0, bytes);
  }

  #checkedLength(): number {
    const bytes = this.#length.readUInt32BE(0);
    if (bytes < 1 || bytes > this.#maxBytes) throw new FrameError(`frame of ${bytes} bytes`);
    return bytes;
  }
}

function frameOf(body: Buffer): Frame {
  return { type: body.readUInt8(0), payload: body.subarray(1) };
}

/** A control message. */
export function jsonFrame(message: object): Buffer {
  const text = JSON.stringify(message);
  const bytes = Buffer.byteLength(text);
  const frame = Buffer.allocUnsafe(5 + bytes);
  frame.writeUInt32BE(1 + bytes, 0);
  frame.writeUInt8(FRAME_JSON, 4);
  frame.write(text, 5);
  return frame;
}

/**
 * Where bytes of a tool come from: 1 stdout, 2 stderr, 3 the file it reports events in, 4 the file it leaves its output
 * in. All of them are under one credit.
 */
export type Source = 1 | 2 | 3 | 4;

/**
 * What a chunk takes of its tool's credit. Its book-keeping counts too: a tool that writes letter by letter would else
 * have a hundred thousand chunks under way.
 */
export function creditOf(bytes: number): number {
  return bytes + CHUNK_OVERHEAD_BYTES;
}

/** What a tool wrote: the bytes as they came, never decoded on the way. */
export interface OutputChunk {
  readonly key: number;
  readonly source: Source;
  /** Milliseconds of the epoch when the supervisor read it. */
  readonly at: number;
  readonly bytes: Buffer;
}

/** Copies the bytes, into `space` when they fit. */
export function outputFrame(chunk: OutputChunk, space?: Buffer): Buffer {
  const bytes = OUTPUT_OVERHEAD_BYTES + chunk.bytes.length;
  const frame = space === undefined || space.length < bytes ? Buffer.allocUnsafe(bytes) : space.subarray(0, bytes);
  frame.writeUInt32BE(bytes - 4, 0);
  frame.writeUInt8(FRAME_OUTPUT, 4);
  frame.writeDoubleBE(chunk.key, 5);
  frame.writeUInt8(chunk.source, 13);
  frame.writeDoubleBE(chunk.at, 14);
  chunk.bytes.copy(frame, OUTPUT_OVERHEAD_BYTES);
  return frame;
}

/** Throws FrameError. The bytes share the payload's memory. */
export function decodeOutput(payload: Buffer): OutputChunk {
  if (payload.length < OUTPUT_HEADER_BYTES) throw new FrameError('short output frame');
  const source = payload.readUInt8(8);
  if (!isSource(source)) throw new FrameError('output of an unknown source');
  return {
    key: payload.readDoubleBE(0),
    source,
    at: payload.readDoubleBE(9),
    bytes: payload.subarray(OUTPUT_HEADER_BYTES),
  };
}

function isSource(value: number): value is Source {
  return value >= 1 && value <= 4;
}
