/**
 * The text of a run's output: kept bytes unchanged, both streams in order of arrival unless one is named, and a line
 * where some were dropped. Read in pages as the reader takes them: memory stays flat however long the output is.
 */
import type { Pool } from '../platform/db/db.js';
import type { FenceOutput, OutputOf, OutputPlace, OutputStream } from './output.js';
import {
  cutLine,
  LinesFromEnd,
  lengthOf,
  missingBytes,
  type OutputPick,
  offsetOf,
  outputPart,
  type Span,
  slicesOf,
  spansOf,
} from './output.rules.js';
import { type PageSize, readOutput, readOutputBackwards } from './output.sql.js';
import { chunkAt, outputByFence } from './output-layout.sql.js';

/** A chunk has up to 128 KiB, or a single byte. */
const PAGE: PageSize = { chunks: 512, bytes: 512 * 1024 };

/** The text is another by now; whoever asks again gets that one. */
class OutputMoved extends Error {
  override readonly name = 'OutputMoved';
}

export interface OutputPart {
  /** Bytes there were when asked; a run that goes on adds more. */
  readonly total: number;
  readonly from: number;
  /** Excluded. */
  readonly to: number;
  /** How many bytes the text lacks; offsets are those of another text when this changes. */
  readonly missing: number;
  /** Whether exactly `to - from` bytes come, or the reading fails. Otherwise more of it may be dropped meanwhile. */
  readonly isExact: boolean;
  content(): AsyncGenerator<Buffer>;
}

/** The chunk in which something begins, and how many of its bytes stand in front of that. */
export interface TailPlace extends OutputPlace {
  readonly skip: number;
  /** The same as bytes under the fence, of the stream that was asked for. */
  readonly pos: number;
}

/** A run as far as its output is concerned. */
export interface WritingRun extends OutputOf {
  /** Its latest. */
  readonly fence: number;
  readonly endedAt: Date | null;
}

export class OutputService {
  constructor(
    private readonly pool: Pool,
    private readonly limitBytes: number,
  ) {}

  /** The part of a run's output that is meant, or only how long it is when that part doesn't exist. */
  async open(
    run: WritingRun,
    stream: OutputStream | undefined,
    pick: OutputPick,
  ): Promise<OutputPart | { readonly total: number; readonly missing: number }> {
    const place = pick.pick === 'tail' ? await this.tailPlace(run, stream, pick.lines) : undefined;
    const fences = await outputByFence(this.pool, run, stream);
    const isExact = this.isSteady(run, fences);
    const spans = spansOf(fences, stream);
    const total = lengthOf(spans);
    const missing = missingBytes(fences, stream);
    const part = partOf(pick, place, spans, isExact);
    if (!part) return { total, missing };
    const content = isExact
      ? () => this.readExactly(run, stream, slicesOf(spans, part.from, part.to))
      : () => this.readWhatIsThere(run, stream, stretchesFrom(fences, place));
    return { total, ...part, missing, isExact, content };
  }

  /**
   * Where the last `lines` lines of what is there now begin; `undefined` is the very beginning. With 0 lines it is
   * behind the last chunk. Reads no further back than a gap, and then begins with that.
   */
  async tailPlace(run: WritingRun, stream: OutputStream | undefined, lines: number): Promise<TailPlace | undefined> {
    const counter = new LinesFromEnd(lines);
    let before: OutputPlace = { fence: run.fence + 1, batch: 0 };
    let first: TailPlace | undefined;
    for (;;) {
      const page = await readOutputBackwards(this.pool, run, before, stream, PAGE);
      if (page.length === 0) return undefined;
      for (const { fence, batch, pos, streamPos, data } of page) {
        const at = stream === undefined ? pos : streamPos;
        if (lines === 0) return { fence, batch: batch + 1, skip: 0, pos: at + data.length };
        const isBehindGap = first !== undefined && first.fence === fence && at + data.length < first.pos;
        if (isBehindGap) return { fence, batch: batch + 1, skip: 0, pos: at + data.length };
        const skip = counter.take(data);
        if (skip !== undefined) return { fence, batch, skip, pos: at + skip };
        first = { fence, batch, skip: 0, pos: at };
        before = first;
      }
    }
  }

  /** Who reads a run that writes near its limit is overtaken: what was measured may be dropped before it is read. */
  private isSteady(run: WritingRun, fences: readonly FenceOutput[]): boolean {
    const whole = fences.reduce((sum, { wholeEnd }) => sum + wholeEnd, 0);
    return run.endedAt !== null || (whole <= this.limitBytes / 2 && fences.every(({ cut }) => cut === null));
  }

  private async *readExactly(
    run: OutputOf,
    stream: OutputStream | undefined,
    slices: ReturnType<typeof slicesOf>,
  ): AsyncGenerator<Buffer> {
    for (const { span, skip, take } of slices) {
      if (span.line) {
        yield span.line.subarray(skip, skip + take);
        continue;
      }
      const from = span.pos + skip;
      yield* this.readFence(run, stream, { fence: span.fence, pos: from, end: from + take }, () => {
        throw new OutputMoved('more of the output was dropped while it was read');
      });
    }
  }

  private async *readWhatIsThere(
    run: OutputOf,
    stream: OutputStream | undefined,
    stretches: readonly Stretch[],
  ): AsyncGenerator<Buffer> {
    for (const stretch of stretches) {
      yield* this.readFence(run, stream, stretch, (from, to) => cutLine(stream, from, to));
    }
  }

  /** The bytes of a stretch; `onGap` says what stands in the place of bytes that are missing. */
  private async *readFence(
    run: OutputOf,
    stream: OutputStream | undefined,
    { fence, pos, end }: Stretch,
    onGap: (from: number, to: number) => Buffer,
  ): AsyncGenerator<Buffer> {
    if (pos >= end) return;
    const batch = pos === 0 ? 1 : ((await chunkAt(this.pool, run, fence, stream, pos)) ?? 1);
    let after: OutputPlace = { fence, batch: batch - 1 };
    let expected = pos;
    while (expected < end) {
      const page = (await readOutput(this.pool, run, after, stream, PAGE)).filter((chunk) => chunk.fence === fence);
      if (page.length === 0) {
        yield onGap(expected, end);
        return;
      }
      for (const chunk of page) {
        const at = stream === undefined ? chunk.pos : chunk.streamPos;
        if (at > expected) yield onGap(expected, Math.min(at, end));
        const wanted = chunk.data.subarray(Math.max(0, expected - at), Math.max(0, end - at));
        if (wanted.length > 0) yield wanted;
        expected = at + chunk.data.length;
        after = { fence, batch: chunk.batch };
        if (expected >= end) return;
      }
    }
  }
}

/**
 * The part of the text that is meant; all of it in place of a range when what is there may be dropped: then no offset
 * holds for long enough to be asked for.
 */
function partOf(
  pick: OutputPick,
  tail: TailPlace | undefined,
  spans: readonly Span[],
  isExact: boolean,
): { readonly from: number; readonly to: number } | undefined {
  const total = lengthOf(spans);
  if (pick.pick === 'tail') return { from: tail ? offsetOf(spans, tail.fence, tail.pos) : 0, to: total };
  return outputPart(isExact ? pick : { pick: 'all' }, total);
}

/** Everything behind a place, fence by fence. */
function stretchesFrom(fences: readonly FenceOutput[], place: TailPlace | undefined): Stretch[] {
  return fences
    .filter(({ fence }) => fence >= (place?.fence ?? 1))
    .map(({ fence, end }) => ({ fence, pos: place?.fence === fence ? place.pos : 0, end }));
}

/** Bytes under one fence, of both streams or of the one that is read. */
interface Stretch {
  readonly fence: number;
  readonly pos: number;
  readonly end: number;
}
