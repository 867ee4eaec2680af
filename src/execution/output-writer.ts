/**
 * Carries one tool's output into the store: in order of arrival, one statement in flight at a time, and no more of it than
 * is to be kept. Credit goes back only for what is stored, so a slow database slows the tool and not the memory.
 *
 * A tool that was quiet has its first words stored at once; while it goes on talking, what it writes is gathered, so
 * that a loop that prints lines costs about ten commits a second and not one per line, whichever streams it prints to.
 */

import { createHash } from 'node:crypto';
import type { Timing } from '../platform/time.js';
import type { OutputBatch, OutputCut, OutputStream } from '../runs/output.js';
import { OutputKeep } from './output-keep.rules.js';

/** What waits is stored together up to this size; so much is never waited with. */
const TOGETHER_BYTES = 128 * 1024;
/** Most tools say little: the first slab is a small one. */
const FIRST_BYTES = 16 * 1024;
/** Of batches that are tiny, the book-keeping counts more than the bytes. */
const TOGETHER_BATCHES = 1_000;
/** The longest that a chunk is held back to be stored together with later ones. */
const GATHER_MS = 100;

/** `refused`: the store will never take it, and goes on without. `lost`: the run is no longer ours. */
export type Stored = 'stored' | 'refused' | 'lost';

export interface OutputPorts {
  /** Stores batches and their bytes. Tries until it knows: a rejection counts as `lost`. */
  readonly store: (batches: readonly OutputBatch[], data: Buffer) => Promise<Stored>;
  /** Drops what is not kept; as `store`. */
  readonly drop: (cut: OutputCut) => Promise<Stored>;
  readonly grantCredit: (bytes: number) => void;
  /** The run is no longer ours: the tool must be stopped, nothing more is stored. */
  readonly onLost: () => void;
  readonly timing: Pick<Timing, 'monotonicMs' | 'delay'>;
  /** How much of the output is kept. */
  readonly limitBytes: number;
}

/** Bytes of one stream that came one after the other. */
interface Piece {
  readonly stream: OutputStream;
  readonly at: Date;
  bytes: number;
}

/** Memory that is filled once and stored whole: what is read is copied here, and nowhere else on its way. */
interface Slab {
  readonly memory: Buffer;
  used: number;
  pieces: Piece[];
  /** When the first of it came. */
  readonly openedMs: number;
}

export class OutputWriter {
  /** In the order of arrival; the last one is being filled. */
  private readonly waiting: Slab[] = [];
  private spare: Buffer | undefined;
  private lost = false;
  /** Nothing is worth waiting for any more: the tool has ended. */
  private isEnding = false;
  private writing: Promise<void> | undefined;
  private gathering: AbortController | undefined;
  private storedMs = Number.NEGATIVE_INFINITY;
  private isEmpty = true;
  private readonly hash = createHash('sha256');
  private readonly keep: OutputKeep;

  constructor(private readonly ports: OutputPorts) {
    this.keep = new OutputKeep(ports.limitBytes);
  }

  /** Copies `data`: its memory is the caller's again at once. */
  push(stream: OutputStream, at: Date, data: Buffer): void {
    for (let copied = 0; copied < data.length; ) copied += this.copyInto(this.openSlab(), stream, at, data, copied);
    if (this.isEnough()) this.gathering?.abort();
    this.writing ??= this.write();
  }

  /**
   * Call it when the tool has ended. Resolves when everything pushed so far is stored: `sha256:` and the digest of all
   * that was written, also of what was dropped since; null without any, and null when the run was lost before.
   */
  async drained(): Promise<string | null> {
    this.isEnding = true;
    this.gathering?.abort();
    while (this.writing) await this.writing;
    return this.isEmpty || this.lost ? null : `sha256:${this.hash.copy().digest('hex')}`;
  }

  /** The last slab while it has room; one that is being stored is not among those that wait. */
  private openSlab(): Slab {
    const last = this.waiting.at(-1);
    if (last && last.used < last.memory.length && last.pieces.length < TOGETHER_BATCHES) return last;
    const isFirst = this.isEmpty && last === undefined;
    const memory = isFirst
      ? Buffer.allocUnsafeSlow(FIRST_BYTES)
      : (this.spare ?? Buffer.allocUnsafeSlow(TOGETHER_BYTES));
    if (memory === this.spare) this.spare = undefined;
    const slab = { memory, used: 0, pieces: [], openedMs: this.ports.timing.monotonicMs() };
    this.waiting.push(slab);
    return slab;
  }

  /** Copies what fits of `data` from `from` on; returns how much that is. */
  private copyInto(slab: Slab, stream: OutputStream, at: Date, data: Buffer, from: number): number {
    const bytes = data.copy(slab.memory, slab.used, from);
    slab.used += bytes;
    const last = slab.pieces.at(-1);
    if (last?.stream === stream) last.bytes += bytes;
    else slab.pieces.push({ stream, at, bytes });
    return bytes;
  }

  private async write(): Promise<void> {
    await undefined; // so that `writing` is set before the loop can end
    for (let first = this.waiting[0]; first; first = this.waiting[0]) {
      await this.gather(first);
      this.waiting.shift();
      if (!this.lost) await this.store(first);
      if (first.memory.length === TOGETHER_BYTES) this.spare = first.memory;
      this.ports.grantCredit(first.used);
    }
    this.writing = undefined;
  }

  private isEnough(): boolean {
    const [first, second] = this.waiting;
    return second !== undefined || (first !== undefined && first.used >= TOGETHER_BYTES);
  }

  /** Waits for company, unless there is enough already, the tool was quiet, or the first bytes have waited their time. */
  private async gather(first: Slab): Promise<void> {
    const { timing } = this.ports;
    if (this.lost || this.isEnding || this.isEnough()) return;
    const waitMs = Math.min(first.openedMs, this.storedMs) + GATHER_MS - timing.monotonicMs();
    if (waitMs <= 0) return;
    this.gathering = new AbortController();
    await timing.delay(waitMs, this.gathering.signal);
    this.gathering = undefined;
  }

  private async store({ memory, used, pieces }: Slab): Promise<void> {
    this.storedMs = this.ports.timing.monotonicMs();
    const data = memory.subarray(0, used);
    const stored = await this.tryToStore(pieces, data).catch(() => 'lost' as const);
    if (stored === 'refused') return;
    if (stored === 'lost') {
      this.lost = true;
      this.ports.onLost();
      return;
    }
    this.isEmpty = false;
    this.keep.add(pieces);
    this.hash.update(data);
  }

  private async tryToStore(pieces: readonly Piece[], data: Buffer): Promise<Stored> {
    const cut = this.keep.makeRoom(data.length);
    const room = cut ? await this.ports.drop(cut) : 'stored';
    if (room === 'lost') return room;
    const places = this.keep.placesOf(pieces);
    return this.ports.store(
      pieces.flatMap((piece, i) => (places[i] ? [{ ...piece, ...places[i] }] : [])),
      data,
    );
  }
}
