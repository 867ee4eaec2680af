/**
 * Which bytes of a run's output are kept: the first half of the limit stays, behind it the oldest go in steps to make
 * room. Invariant: never more than the limit is kept, in bytes and in rows, nothing dropped at once is large, and what this
 * remembers does not grow with the output.
 */
import type { OutputCut, OutputStream } from '../runs/output.js';

/** What a batch counts for besides its bytes: a tool that changes its stream with every letter makes many rows. */
export const BATCH_OVERHEAD_BYTES = 128;
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

/** What batches are together. */
interface Sum {
  /** What they count for: their bytes and overhead. */
  readonly charge: number;
  readonly bytes: number;
  readonly stdoutBytes: number;
}

/** Batches that are dropped together. */
interface Segment extends Sum {
  readonly throughBatch: number;
}

export class OutputKeep {
  private readonly stepCharge: number;
  private readonly tail: Segment[] = [];
  private tailCharge = 0;
  /** Null while everything is in the half that stays. */
  private head: (Sum & { readonly batch: number }) | null = null;
  private dropped: Segment = { charge: 0, bytes: 0, stdoutBytes: 0, throughBatch: 0 };
  private batch = 0;
  private written: Sum = { charge: 0, bytes: 0, stdoutBytes: 0 };

  constructor(private readonly limitBytes: number) {
    this.stepCharge = Math.min(STEP_BYTES, Math.floor(limitBytes / STEPS_PER_LIMIT));
  }

  /** The same batches, one of them in two when the end of the half that stays falls into it. */
  fitted<T extends Sized>(batches: readonly T[]): T[] {
    const front = this.frontOf(batches);
    const next = batches[front.count];
    const bytes = this.limitBytes / 2 - front.charge - BATCH_OVERHEAD_BYTES;
    if (this.head !== null || next === undefined || bytes < 1) return [...batches];
    const halves = [
      { ...next, bytes },
      { ...next, bytes: next.bytes - bytes },
    ];
    return [...batches.slice(0, front.count), ...halves, ...batches.slice(front.count + 1)];
  }

  /** What has to go before these (fitted) are stored; `undefined` when there is room. */
  makeRoom(batches: readonly Sized[]): OutputCut | undefined {
    const charge = batches.reduce((sum, { bytes }) => sum + chargeOf(bytes), 0);
    const { head } = this;
    if (head === null || head.charge + this.tailCharge + charge <= this.limitBytes) return undefined;
    while (this.tail.length > 0 && head.charge + this.tailCharge + charge > this.limitBytes) this.dropOldest();
    if (this.dropped.bytes === 0) return undefined;
    return {
      afterBatch: head.batch,
      throughBatch: this.dropped.throughBatch,
      pos: head.bytes,
      stdoutPos: head.stdoutBytes,
      bytes: this.dropped.bytes,
      stdoutBytes: this.dropped.stdoutBytes,
    };
  }

  /** Where these batches will stand, one behind the other. Nothing is counted in yet. */
  placesOf(batches: readonly Sized[]): Place[] {
    let { batch } = this;
    let { bytes, stdoutBytes } = this.written;
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
    const front = this.head === null ? this.frontOf(batches).count : 0;
    for (const [i, { stream, bytes }] of batches.entries()) {
      if (this.head === null && i === front) this.head = { batch: this.batch, ...this.written };
      const sum = { charge: chargeOf(bytes), bytes, stdoutBytes: stream === 1 ? bytes : 0 };
      this.batch += 1;
      this.written = plus(this.written, sum);
      if (this.head !== null) this.addToTail({ ...sum, throughBatch: this.batch });
    }
  }

  /** How many of the batches still go into the half that stays, and what that half counts for then. */
  private frontOf(batches: readonly Sized[]): { readonly count: number; readonly charge: number } {
    let { charge } = this.written;
    let count = 0;
    for (const { bytes } of batches) {
      if (charge + chargeOf(bytes) > this.limitBytes / 2) break;
      charge += chargeOf(bytes);
      count += 1;
    }
    return { count, charge };
  }

  private addToTail(batch: Segment): void {
    this.tailCharge += batch.charge;
    const last = this.tail.at(-1);
    if (last === undefined || last.charge >= this.stepCharge) this.tail.push(batch);
    else this.tail[this.tail.length - 1] = { ...plus(last, batch), throughBatch: batch.throughBatch };
  }

  private dropOldest(): void {
    const oldest = this.tail.shift();
    if (oldest === undefined) return;
    this.tailCharge -= oldest.charge;
    this.dropped = { ...plus(this.dropped, oldest), throughBatch: oldest.throughBatch };
  }
}

function chargeOf(bytes: number): number {
  return bytes + BATCH_OVERHEAD_BYTES;
}

function plus(a: Sum, b: Sum): Sum {
  return { charge: a.charge + b.charge, bytes: a.bytes + b.bytes, stdoutBytes: a.stdoutBytes + b.stdoutBytes };
}
