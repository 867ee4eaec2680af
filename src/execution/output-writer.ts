/**
 * Carries one tool's output into the store: in order of arrival, one batch (one chunk of one stream) in flight at a
 * time. Credit goes back only for what is stored, so a slow database slows the tool and not the memory.
 */
import { createHash } from 'node:crypto';
import type { OutputChunk, OutputStream } from '../runs/output.sql.js';

/** Chunks of one stream that wait together are stored together, up to this size. */
const BATCH_BYTES = 128 * 1024;

export interface OutputPorts {
  /** Stores a batch; false when the run is no longer ours. Tries until it knows. */
  readonly store: (batch: number, chunk: OutputChunk) => Promise<boolean>;
  readonly grantCredit: (bytes: number) => void;
  /** The run is no longer ours: the tool must be stopped, nothing more is stored. */
  readonly onLost: () => void;
}

export class OutputWriter {
  private waiting: OutputChunk[] = [];
  private batch = 0;
  private lost = false;
  private writing: Promise<void> | undefined;
  private readonly hash = createHash('sha256');

  constructor(private readonly ports: OutputPorts) {}

  push(stream: OutputStream, at: Date, data: Buffer): void {
    this.waiting.push({ stream, at, data });
    this.writing ??= this.write();
  }

  /** Resolves when everything pushed so far is stored: `sha256:` and the digest of all of it, null without any. */
  async drained(): Promise<string | null> {
    while (this.writing) await this.writing;
    return this.batch === 0 ? null : `sha256:${this.hash.copy().digest('hex')}`;
  }

  private async write(): Promise<void> {
    await undefined; // so that `writing` is set before the loop can end
    for (let chunk = this.next(); chunk; chunk = this.next()) {
      if (!this.lost) {
        this.batch += 1;
        this.hash.update(chunk.data);
        this.lost = !(await this.ports.store(this.batch, chunk));
        if (this.lost) this.ports.onLost();
      }
      this.ports.grantCredit(chunk.data.length);
    }
    this.writing = undefined;
  }

  private next(): OutputChunk | undefined {
    const first = this.waiting[0];
    if (!first) return undefined;
    let bytes = 0;
    let count = 0;
    for (const chunk of this.waiting) {
      if (chunk.stream !== first.stream || (count > 0 && bytes + chunk.data.length > BATCH_BYTES)) break;
      bytes += chunk.data.length;
      count += 1;
    }
    const together = this.waiting.splice(0, count);
    if (count === 1) return first;
    return { ...first, data: Buffer.concat(together.map((chunk) => chunk.data)) };
  }
}
