/** How output that the server dropped shows in what is followed: as in the text that `/output` answers. Pure. */

export interface Cut {
  /** Bytes in front of it under its fence; `null` for who wasn't told all of them. */
  readonly from: number | null;
  /** How many are gone, when it is known. */
  readonly bytes: number | null;
}

const WHY = 'it outgrew CAPSTAN_OUTPUT_LIMIT';

/** The lines in the places of a run's cuts. */
export class CutLines {
  private isUnknownTold = false;

  /** `program`: as it was started. */
  constructor(
    private readonly runId: string,
    private readonly program: string,
  ) {}

  /**
   * `undefined` where there is nothing new to say: whoever follows an output while it is cut passes many cuts whose
   * size nobody knows.
   */
  next({ from, bytes }: Cut): string | undefined {
    if (bytes !== null) {
      const known = from === null ? `${bytes} bytes` : `bytes ${from}-${from + bytes - 1}`;
      return `[capstan: ${known} of the output were dropped: ${WHY}]`;
    }
    if (this.isUnknownTold) return undefined;
    this.isUnknownTold = true;
    const kept = `all that is kept: ${this.program} logs ${this.runId}`;
    return `[capstan: output was dropped here and maybe further on: ${WHY}; ${kept}]`;
  }
}

/** The line as it is written behind what was written before. */
export function lineBehind(isLineOpen: boolean, line: string | undefined): string {
  return line === undefined ? '' : `${isLineOpen ? '\n' : ''}${line}\n`;
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
