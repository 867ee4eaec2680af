/**
 * Carries one tool's output into the store: in order of arrival, one statement in flight at a time, and no more of it than
 * is to be kept. Credit goes back only for what is stored, so a slow database slows the tool and not the memory.
 *
 * A tool that was quiet has its first words stored at once; while it goes on talking, what it writes is gathered, so
 * that a loop that prints lines costs about ten commits a second and not one per line, whichever streams it prints to.
 */
import { createHash } from 'node:crypto';
import { Bug } from '../kernel/problems.js';
import type { Timing } from '../platform/time.js';
import type { OutputBatch, OutputCut, OutputStream } from '../runs/output.js';
import { Gatherer, type StoreAnswer } from './gatherer.js';
import { OutputKeep } from './output-keep.rules.js';
import { creditOf } from './supervisor/frames.js';

/** What waits is stored together up to this size; so much is never waited with. */
const TOGETHER_BYTES = 128 * 1024;
/** Most tools say little: the first slab is a small one. */
const FIRST_BYTES = 16 * 1024;
/** Of batches that are tiny, the book-keeping counts more than the bytes. */
const TOGETHER_BATCHES = 1_000;

export interface OutputPorts {
  /** Stores batches and their bytes. Tries until it knows; never rejects. */
  readonly store: (batches: readonly OutputBatch[], data: Buffer) => Promise<StoreAnswer>;
  /** Drops what is not kept; as `store`. */
  readonly drop: (cut: OutputCut) => Promise<StoreAnswer>;
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
  /** What its chunks took of the tool's credit. */
  credit: number;
  pieces: Piece[];
  /** When the first of it came. */
  readonly openedMs: number;
}

export class OutputWriter {
  /** In the order of arrival; the last one is being filled. */
  private readonly waiting: Slab[] = [];
  private spare: Buffer | undefined;
  private isEmpty = true;
  private readonly hash = createHash('sha256');
  private readonly keep: OutputKeep;
  private readonly gatherer: Gatherer<Slab>;

  constructor(private readonly ports: OutputPorts) {
    this.keep = new OutputKeep(ports.limitBytes);
    this.gatherer = new Gatherer({
      waitingSinceMs: () => this.waiting[0]?.openedMs,
      isEnough: () => this.isEnough(),
      take: () => this.next(),
      store: (slab) => this.store(slab),
      release: (slab) => this.release(slab),
      onLost: ports.onLost,
      timing: ports.timing,
    });
  }

  /** Copies `data`: its memory is the caller's again at once. */
  push(stream: OutputStream, at: Date, data: Buffer): void {
    if (data.length === 0) return;
    let slab = this.openSlab();
    for (let copied = this.copyInto(slab, stream, at, data, 0); copied < data.length; ) {
      slab = this.openSlab();
      copied += this.copyInto(slab, stream, at, data, copied);
    }
    slab.credit += creditOf(data.length);
    this.gatherer.wake();
  }

  /**
   * Call it when the tool has ended. Resolves when everything pushed so far is stored: `sha256:` and the digest of all
   * that was written, also of what is not kept; null without any, and null when the run was lost before.
   */
  async drained(): Promise<string | null> {
    await this.gatherer.drained();
    return this.isEmpty || this.gatherer.isLost ? null : `sha256:${this.hash.copy().digest('hex')}`;
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
    const slab = { memory, used: 0, credit: 0, pieces: [], openedMs: this.ports.timing.monotonicMs() };
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

  private isEnough(): boolean {
    const [first, second] = this.waiting;
    return second !== undefined || (first !== undefined && first.used >= TOGETHER_BYTES);
  }

  private next(): Slab {
    const first = this.waiting.shift();
    if (first === undefined) throw new Bug('a batch was asked for where nothing waits');
    return first;
  }

  private async store({ memory, used, pieces }: Slab): Promise<StoreAnswer> {
    const data = memory.subarray(0, used);
    this.isEmpty = false;
    this.hash.update(data);
    const stored = await this.tryToStore(pieces, data);
    // What can't be stored must not be missing in silence.
    return stored === 'refused' ? this.tryToStore(...refusalOf(pieces, used)) : stored;
  }

  private release(slab: Slab): void {
    if (slab.memory.length === TOGETHER_BYTES) this.spare = slab.memory;
    this.ports.grantCredit(slab.credit);
  }

  private async tryToStore(pieces: readonly Piece[], data: Buffer): Promise<StoreAnswer> {
    const fitted = this.keep.fitted(pieces);
    const cut = this.keep.makeRoom(fitted);
    const room = cut ? await this.ports.drop(cut) : 'stored';
    if (room === 'lost') return room;
    const places = this.keep.placesOf(fitted);
    const batches = fitted.flatMap((piece, i) => (places[i] ? [{ ...piece, ...places[i] }] : []));
    const stored = await this.ports.store(batches, data);
    if (stored === 'stored') this.keep.add(fitted);
    return stored;
  }
}

/** The line that stands for bytes the store refused. */
function refusalOf(pieces: readonly Piece[], bytes: number): [Piece[], Buffer] {
  const line = Buffer.from(`\n[capstan: ${bytes} bytes of the output were refused by the database]\n`);
  return [pieces.slice(0, 1).map((first) => ({ ...first, bytes: line.length })), line];
}
