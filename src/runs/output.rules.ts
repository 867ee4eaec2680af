/**
 * Which part of an output a request means, and how what was dropped shows. Pure. The text of an output is its kept bytes
 * with one line in the place of what is missing; offsets are bytes of that text counted from 0, ends are excluded.
 */
import type { FenceOutput, OutputCut, OutputStream } from './output.js';

export type OutputPick = BytePick | { readonly pick: 'tail'; readonly lines: number };

export type BytePick =
  | { readonly pick: 'all' }
  | { readonly pick: 'range'; readonly first: number; readonly last: number | undefined }
  | { readonly pick: 'suffix'; readonly bytes: number };

/** What a `Range` header asks for. More ranges than one, or what is no range of bytes, means all, as HTTP has it. */
export function outputPickOf(range: string | undefined): BytePick {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range?.trim() ?? '');
  const [, first = '', last = ''] = match ?? [];
  if (first === '') return last === '' ? { pick: 'all' } : { pick: 'suffix', bytes: Number(last) };
  if (last !== '' && Number(last) < Number(first)) return { pick: 'all' };
  return { pick: 'range', first: Number(first), last: last === '' ? undefined : Number(last) };
}

/** The part of `total` bytes that is meant; `undefined` when none of it exists. */
export function outputPart(pick: BytePick, total: number): { readonly from: number; readonly to: number } | undefined {
  if (pick.pick === 'all') return { from: 0, to: total };
  if (pick.pick === 'suffix') {
    return pick.bytes === 0 || total === 0 ? undefined : { from: Math.max(0, total - pick.bytes), to: total };
  }
  if (pick.first >= total) return undefined;
  return { from: pick.first, to: Math.min(total, (pick.last ?? total) + 1) };
}

/** A stretch of the text: kept bytes under one fence from `pos` on, or the line that stands for what is missing. */
export interface Span {
  readonly fence: number;
  readonly pos: number;
  readonly bytes: number;
  readonly line: Buffer | undefined;
}

/** The line in the place of the bytes from `from` up to `to` of the output, or of one stream. Begins on a line of its own. */
export function cutLine(stream: OutputStream | undefined, from: number, to: number): Buffer {
  const what = stream === undefined ? 'the output' : stream === 1 ? 'stdout' : 'stderr';
  return Buffer.from(`\n[capstan: bytes ${from}-${to - 1} of ${what} were dropped: it outgrew CAPSTAN_OUTPUT_LIMIT]\n`);
}

/** The stretches of a text, in order. */
export function spansOf(fences: readonly FenceOutput[], stream: OutputStream | undefined): Span[] {
  return fences.flatMap(({ fence, end, cut }) => {
    const kept = (pos: number, to: number): Span[] =>
      to > pos ? [{ fence, pos, bytes: to - pos, line: undefined }] : [];
    const gap = cut === null ? undefined : gapOf(cut, stream);
    if (!gap || gap.to === gap.from) return kept(0, end);
    const line = cutLine(stream, gap.from, gap.to);
    return [...kept(0, gap.from), { fence, pos: gap.from, bytes: line.length, line }, ...kept(gap.to, end)];
  });
}

/** How many bytes are missing. Positions in a text hold as long as this stays the same. */
export function missingBytes(fences: readonly FenceOutput[], stream: OutputStream | undefined): number {
  return fences.reduce((sum, { cut }) => {
    const gap = cut === null ? { from: 0, to: 0 } : gapOf(cut, stream);
    return sum + gap.to - gap.from;
  }, 0);
}

function gapOf(
  { pos, stdoutPos, bytes, stdoutBytes }: OutputCut,
  stream: OutputStream | undefined,
): { readonly from: number; readonly to: number } {
  if (stream === undefined) return { from: pos, to: pos + bytes };
  const from = stream === 1 ? stdoutPos : pos - stdoutPos;
  return { from, to: from + (stream === 1 ? stdoutBytes : bytes - stdoutBytes) };
}

/** Length of the text. */
export function lengthOf(spans: readonly Span[]): number {
  return spans.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** What of the stretches lies from offset `from` up to `to`: each with the bytes of it to leave out in front, and to take. */
export function slicesOf(
  spans: readonly Span[],
  from: number,
  to: number,
): { readonly span: Span; readonly skip: number; readonly take: number }[] {
  let at = 0;
  return spans.flatMap((span) => {
    const begin = Math.max(from, at);
    const end = Math.min(to, at + span.bytes);
    const skip = begin - at;
    at += span.bytes;
    return end > begin ? [{ span, skip, take: end - begin }] : [];
  });
}

/** The offset of the byte at `pos` of a fence, or of the first that is there behind it, the line in a gap included. */
export function offsetOf(spans: readonly Span[], fence: number, pos: number): number {
  let at = 0;
  for (const span of spans) {
    const isBehind = span.fence > fence || (span.fence === fence && span.pos >= pos);
    if (isBehind) return at;
    const isWithin = span.fence === fence && span.line === undefined && pos < span.pos + span.bytes;
    if (isWithin) return at + pos - span.pos;
    at += span.bytes;
  }
  return at;
}

const NEWLINE = 0x0a;

/**
 * Counts lines from the end of a text, chunk by chunk: `take` gives where in the chunk the last `lines` lines begin, or
 * undefined when they begin further in front. A newline at the very end closes the last line and begins none.
 */
export class LinesFromEnd {
  private isLast = true;

  constructor(private lines: number) {}

  take(chunk: Buffer): number | undefined {
    let at = chunk.length - 1;
    if (this.isLast && chunk[at] === NEWLINE) at -= 1;
    this.isLast = false;
    for (; at >= 0; at -= 1) {
      at = chunk.lastIndexOf(NEWLINE, at);
      if (at < 0) return undefined;
      this.lines -= 1;
      if (this.lines <= 0) return at + 1;
    }
    return undefined;
  }
}
