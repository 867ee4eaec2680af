/**
 * The kept bytes of a run, unchanged, both streams in order of arrival unless one is named. Read in pages as the reader
 * takes them: memory stays flat however long the output is.
 */
import { Bug } from '../kernel/problems.js';
import type { Pool } from '../platform/db/db.js';
import { type OutputPick, outputPart } from './output.rules.js';
import { type OutputStream, readOutput } from './output.sql.js';
import { locateOutput, measureOutput, type OutputOf } from './output-range.sql.js';

/** A chunk has up to 128 KiB. */
const PAGE_CHUNKS = 4;

export interface OutputPart {
  /** Bytes there were when asked; a run that goes on adds more. */
  readonly total: number;
  readonly from: number;
  /** Excluded. */
  readonly to: number;
  /** Makes exactly `to - from` bytes, or fails. */
  content(): AsyncGenerator<Buffer>;
}

export class OutputService {
  constructor(private readonly pool: Pool) {}

  /** The part of a run's output that is meant, or only its length when that part doesn't exist. */
  async open(
    run: OutputOf,
    stream: OutputStream | undefined,
    pick: OutputPick,
  ): Promise<OutputPart | { readonly total: number }> {
    const total = await measureOutput(this.pool, run, stream);
    const part = outputPart(pick, total);
    if (!part) return { total };
    return { total, ...part, content: () => this.read(run, stream, part.from, part.to) };
  }

  private async *read(
    run: OutputOf,
    stream: OutputStream | undefined,
    from: number,
    to: number,
  ): AsyncGenerator<Buffer> {
    if (from >= to) return;
    const first = from === 0 ? { fence: 0, batch: 1, before: 0 } : await locateOutput(this.pool, run, stream, from);
    if (!first) throw new Bug('a part of an output is gone');
    let after = { fence: first.fence, batch: first.batch - 1 };
    let position = first.before;
    while (position < to) {
      const page = await readOutput(this.pool, run, after, stream, PAGE_CHUNKS);
      if (page.length === 0) throw new Bug('the end of an output is gone');
      for (const { fence, batch, data } of page) {
        const wanted = data.subarray(Math.max(0, from - position), Math.max(0, to - position));
        if (wanted.length > 0) yield wanted;
        position += data.length;
        after = { fence, batch };
      }
    }
  }
}
