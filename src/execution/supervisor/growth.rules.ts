/**
 * How far a file that grows was read, and whether it was written anew since. Pure. Invariant: bytes that were only
 * appended are never taken for a file that was written anew, or all events of a run would come twice.
 */

/** What the file system says of a file. */
export interface FileState {
  readonly size: bigint;
  readonly mtimeNs: bigint;
}

export class Growth {
  #offset = 0;
  /** Of the file when the bytes up to the offset were read. */
  #mtimeNs = 0n;
  #isSuspect = false;

  /** Bytes that were read of it. */
  get offset(): number {
    return this.#offset;
  }

  /**
   * Whether it must be read from its beginning again. With `isLast` no later look can make sure.
   *
   * A file that is longer than before was appended to, as far as anybody can tell. One of the same size and another
   * mtime was written over with as many bytes; that a `touch` has it read twice is the lesser evil, or the progress of
   * a tool that writes `>` for `>>` would stand still in silence.
   */
  isAnew({ size, mtimeNs }: FileState, isLast: boolean): boolean {
    const isDoubtful = size === BigInt(this.#offset) && mtimeNs !== this.#mtimeNs && this.#offset > 0;
    // An append sets the mtime first and the size some microseconds later (a busy reader saw nearly every append in
    // that state): only what the next look finds so again is believed.
    const isBelieved = isDoubtful && (this.#isSuspect || isLast);
    this.#isSuspect = isDoubtful && !isBelieved;
    return isBelieved || size < this.#offset;
  }

  beginAnew(): void {
    this.#offset = 0;
    this.#isSuspect = false;
  }

  /** So many bytes were read behind the offset, of the file as it was in that state. */
  advance(bytes: number, { mtimeNs }: FileState): void {
    this.#offset += bytes;
    this.#mtimeNs = mtimeNs;
  }
}
