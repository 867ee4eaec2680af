/** How output that the server dropped shows in what is followed: as in the text that `/output` answers. Pure. */

export interface Cut {
  /** Bytes in front of it under its fence; `null` for who wasn't told all of them. */
  readonly from: number | null;
  /** How many are gone, when it is known. */
  readonly bytes: number | null;
}

/** The line in the place of a cut. */
export function cutLine({ from, bytes }: Cut): string {
  const known = from === null ? `${bytes} bytes` : `bytes ${from}-${from + (bytes ?? 0) - 1}`;
  return `[capstan: ${bytes === null ? 'bytes' : known} of the output were dropped: it outgrew CAPSTAN_OUTPUT_LIMIT]`;
}

/** Counts what a stream tells of an output, fence by fence. */
export class OutputCount {
  private fence = 0;
  private bytes: number | null = null;

  /** `isWhole`: every byte from the first one on is told, of both streams. */
  constructor(private readonly isWhole: boolean) {}

  /** Counts bytes, or an unknown number of them; returns how many were in front of them. */
  add(fence: number, bytes: number | null): number | null {
    if (fence !== this.fence) [this.fence, this.bytes] = [fence, this.isWhole ? 0 : null];
    const before = this.bytes;
    this.bytes = before === null || bytes === null ? null : before + bytes;
    return before;
  }
}
