/**
 * The lease as this process sees it: the clocks, and the pipe the keeper writes to.
 * Invariant: every judgement first reads what the keeper has written, so an extension that was written before a
 * command was sent is known when that command is decided, and one that waited in the pipe counts from when it was sent.
 */
import { readSync } from 'node:fs';
import { uptime } from 'node:os';
import {
  type ClockReading,
  extend,
  type Judgement,
  judge,
  type LeaseState,
  newLease,
  observe,
} from './deadline.rules.js';
import { decodeExtension, KEEPER_FRAME_BYTES } from './keeper-frame.js';

export interface LeaseOptions {
  readonly incarnation: string;
  readonly deadlineMs: number;
  /** Read end of the keeper's pipe, non-blocking. */
  readonly keeperFd: number;
  onExtension(seq: number): void;
}

export class Lease {
  readonly #options: LeaseOptions;
  readonly #buffer = Buffer.alloc(KEEPER_FRAME_BYTES * 64);
  #buffered = 0;
  #state: LeaseState = newLease(readClocks());

  constructor(options: LeaseOptions) {
    this.#options = options;
  }

  /** Looks at the clocks and the pipe, then decides. */
  judgeNow(): Judgement {
    const { deadlineMs } = this.#options;
    this.#state = observe(this.#state, readClocks(), deadlineMs);
    while (this.#readPipe()) this.#takeFrames();
    return judge(this.#state, this.#state.last.monotonicMs, deadlineMs);
  }

  #readPipe(): boolean {
    try {
      const room = this.#buffer.length - this.#buffered;
      const bytes = readSync(this.#options.keeperFd, this.#buffer, this.#buffered, room, null);
      this.#buffered += bytes;
      return bytes > 0;
    } catch {
      // EAGAIN: nothing more for now. Any other error leaves the deadline where it is, which is the safe side.
      return false;
    }
  }

  #takeFrames(): void {
    let offset = 0;
    for (; this.#buffered - offset >= KEEPER_FRAME_BYTES; offset += KEEPER_FRAME_BYTES) {
      const extension = decodeExtension(this.#buffer, offset);
      if (extension.incarnation === this.#options.incarnation) {
        this.#state = extend(this.#state, Number(extension.sentAtNs) / 1e6);
      }
      this.#options.onExtension(extension.seq);
    }
    this.#buffer.copy(this.#buffer, 0, offset, this.#buffered);
    this.#buffered -= offset;
  }
}

/** A process taken off the processor between two of these calls would see a gap that is none: read again then. */
function readClocks(): ClockReading {
  for (let tries = 0; ; tries += 1) {
    const before = monotonicMs();
    const reading = { monotonicMs: before, wallMs: Date.now(), uptimeMs: uptimeMs() };
    if (monotonicMs() - before < 20 || tries === 5) return reading;
  }
}

function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

// Elsewhere it is derived from the wall clock in whole seconds, which would look like a gap every second.
function uptimeMs(): number | null {
  if (process.platform !== 'linux') return null;
  try {
    return uptime() * 1000;
  } catch {
    return null;
  }
}
