/**
 * Carries one tool's output into the store: in order of arrival, one batch (one chunk of one stream) in flight at a
 * time. Credit goes back only for what is stored, so a slow database slows the tool and not the memory.
 *
 * A tool that was quiet has its first words stored at once; while it goes on talking, what it writes is gathered, so
 * that a loop that prints lines costs about ten commits a second and not one per line.
 */
import { createHash } from 'node:crypto';
import type { Timing } from '../platform/time.js';
import type { OutputChunk, OutputStream } from '../runs/output.sql.js';

/** Chunks of one stream that wait together are stored together, up to this size; so much is never waited with. */
const BATCH_BYTES = 128 * 1024;
/** The longest that a chunk is held back to be stored together with later ones. */
const GATHER_MS = 100;

export interface OutputPorts {
  /** Stores a batch; false when the run is no longer ours. Tries until it knows: a rejection counts as false. */
  readonly store: (batch: number, chunk: OutputChunk) => Promise<boolean>;
  readonly grantCredit: (bytes: number) => void;
  /** The run is no longer ours: the tool must be stopped, nothing more is stored. */
  readonly onLost: () => void;
  readonly timing: Pick<Timing, 'monotonicMs' | 'delay'>;
}

interface Waiting extends OutputChunk {
  readonly pushedMs: number;
}

export class OutputWriter {
  private waiting: Waiting[] = [];
  private waitingBytes = 0;
  private batch = 0;
  private lost = false;
  /** Nothing is worth waiting for any more: the tool has ended. */
  private isEnding = false;
  private writing: Promise<void> | undefined;
  private gathering: AbortController | undefined;
  private lastBatchMs = Number.NEGATIVE_INFINITY;
  private readonly hash = createHash('sha256');

  constructor(private readonly ports: OutputPorts) {}

  push(stream: OutputStream, at: Date, data: Buffer): void {
    this.waiting.push({ stream, at, data, pushedMs: this.ports.timing.monotonicMs() });
    this.waitingBytes += data.length;
    if (this.waitingBytes >= BATCH_BYTES) this.gathering?.abort();
    this.writing ??= this.write();
  }

  /**
   * Call it when the tool has ended. Resolves when everything pushed so far is stored: `sha256:` and the digest of all
   * of it, null without any, and null when the run was lost before all of it was stored.
   */
  async drained(): Promise<string | null> {
    this.isEnding = true;
    this.gathering?.abort();
    while (this.writing) await this.writing;
    return this.batch === 0 || this.lost ? null : `sha256:${this.hash.copy().digest('hex')}`;
  }

  private async write(): Promise<void> {
    await undefined; // so that `writing` is set before the loop can end
    for (let first = this.waiting[0]; first; first = this.waiting[0]) {
      await this.gather(first);
      const chunk = this.next(first);
      if (!this.lost) await this.store(chunk);
      this.ports.grantCredit(chunk.data.length);
    }
    this.writing = undefined;
  }

  /** Waits for company, unless there is enough already, the tool was quiet, or the first chunk has waited its time. */
  private async gather(first: Waiting): Promise<void> {
    const { timing } = this.ports;
    if (this.lost || this.isEnding || this.waitingBytes >= BATCH_BYTES) return;
    const waitMs = Math.min(first.pushedMs, this.lastBatchMs) + GATHER_MS - timing.monotonicMs();
    if (waitMs <= 0) return;
    this.gathering = new AbortController();
    await timing.delay(waitMs, this.gathering.signal);
    this.gathering = undefined;
  }

  private async store(chunk: OutputChunk): Promise<void> {
    this.batch += 1;
    this.lastBatchMs = this.ports.timing.monotonicMs();
    this.lost = !(await this.ports.store(this.batch, chunk).catch(() => false));
    if (this.lost) this.ports.onLost();
    else this.hash.update(chunk.data);
  }

  /** The longest run of chunks of one stream that stands first and fits into a batch; a larger chunk goes alone. */
  private next({ stream, at, data }: Waiting): OutputChunk {
    let bytes = 0;
    let count = 0;
    for (const chunk of this.waiting) {
      if (chunk.stream !== stream || (count > 0 && bytes + chunk.data.length > BATCH_BYTES)) break;
      bytes += chunk.data.length;
      count += 1;
    }
    this.waitingBytes -= bytes;
    const together = this.waiting.splice(0, count);
    return { stream, at, data: count === 1 ? data : Buffer.concat(together.map((chunk) => chunk.data)) };
  }
}
