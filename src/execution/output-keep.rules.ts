/**
 * Which bytes of a run's output are kept: the first half of the limit stays, behind it the oldest go in steps to make
 * room. Invariant: never more than the limit is kept, and what this remembers does not grow with the output.
 */
import type { OutputCut, OutputStream } from '../runs/output.js';

/** What goes at a time, unless the limit is small. */
const STEP_BYTES = 4 * 1024 * 1024;
const STEPS_PER_LIMIT = 8;

/** A batch as far as it takes room. */
export interface Sized {
  readonly stream: OutputStream;
  readonly bytes: number;
}

/** Number and position of a batch, as they are stored with it. */
export interface Place {
  readonly batch: number;
  readonly pos: number;
  readonly streamPos: number;
}

/** Batches that are dropped together. */
interface Segment {
  bytes: number;
  stdoutBytes: number;
  throughBatch: number;
}

export class OutputKeep {
  private readonly stepBytes: number;
  private readonly tail: Segment[] = [];
  private tailBytes = 0;
  /** Null while everything is in the half that stays. */
  private head: { readonly batch: number; readonly bytes: number; readonly stdoutBytes: number } | null = null;
  private dropped: Segment = { bytes: 0, stdoutBytes: 0, throughBatch: 0 };
  private batch = 0;
  private bytes = 0;
  private stdoutBytes = 0;

  constructor(private readonly limitBytes: number) {
    this.stepBytes = Math.min(STEP_BYTES, Math.floor(limitBytes / STEPS_PER_LIMIT));
  }

  /** What has to go before `bytes` more are stored; `undefined` when there is room. */
  makeRoom(bytes: number): OutputCut | undefined {
    if (this.head === null && this.bytes + bytes > this.limitBytes / 2) {
      this.head = { batch: this.batch, bytes: this.bytes, stdoutBytes: this.stdoutBytes };
    }
    if (this.head === null || this.head.bytes + this.tailBytes + bytes <= this.limitBytes) return undefined;
    while (this.tail.length > 0 && this.head.bytes + this.tailBytes + bytes > this.limitBytes) this.dropOldest();
    if (this.dropped.bytes === 0) return undefined;
    return {
      afterBatch: this.head.batch,
      throughBatch: this.dropped.throughBatch,
      pos: this.head.bytes,
      stdoutPos: this.head.stdoutBytes,
      bytes: this.dropped.bytes,
      stdoutBytes: this.dropped.stdoutBytes,
    };
  }

  /** Where these batches will stand, one behind the other. Nothing is counted in yet. */
  placesOf(batches: readonly Sized[]): Place[] {
    let { batch, bytes, stdoutBytes } = this;
    return batches.map(({ stream, bytes: size }) => {
      batch += 1;
      const place = { batch, pos: bytes, streamPos: stream === 1 ? stdoutBytes : bytes - stdoutBytes };
      bytes += size;
      if (stream === 1) stdoutBytes += size;
      return place;
    });
  }

  /** Counts them in: they are stored. */
  add(batches: readonly Sized[]): void {
    for (const { stream, bytes } of batches) {
      const stdoutBytes = stream === 1 ? bytes : 0;
      this.batch += 1;
      this.bytes += bytes;
      this.stdoutBytes += stdoutBytes;
      if (this.head !== null) this.addToTail({ bytes, stdoutBytes, throughBatch: this.batch });
    }
  }

  private addToTail(batch: Segment): void {
    this.tailBytes += batch.bytes;
    const last = this.tail.at(-1);
    if (last === undefined || last.bytes >= this.stepBytes) {
      this.tail.push(batch);
      return;
    }
    last.bytes += batch.bytes;
    last.stdoutBytes += batch.stdoutBytes;
    last.throughBatch = batch.throughBatch;
  }

  private dropOldest(): void {
    const oldest = this.tail.shift();
    if (oldest === undefined) return;
    this.tailBytes -= oldest.bytes;
    this.dropped = {
      bytes: this.dropped.bytes + oldest.bytes,
      stdoutBytes: this.dropped.stdoutBytes + oldest.stdoutBytes,
      throughBatch: oldest.throughBatch,
    };
  }
}
