/** The nouns of a run's output: batches as they are stored, places in it, and what is missing of it. */

/** 1 stdout, 2 stderr. */
export type OutputStream = 1 | 2;

/** One batch: a chunk of one stream, and where it stands. */
export interface OutputBatch {
  /** Counted from 1 under each fence, without gaps. */
  readonly batch: number;
  readonly stream: OutputStream;
  readonly at: Date;
  /** Bytes in front of it under this fence, of both streams and of its own. */
  readonly pos: number;
  readonly streamPos: number;
  /** How many there are of it. */
  readonly bytes: number;
}

/** What is missing of an output under one fence: where it begins and how long it is, both streams and stdout alone. */
export interface OutputCut {
  /** The last batch of the half that stays. */
  readonly afterBatch: number;
  /** The last batch that is gone. */
  readonly throughBatch: number;
  readonly pos: number;
  readonly stdoutPos: number;
  readonly bytes: number;
  readonly stdoutBytes: number;
}

/** What names a run's partition and rows. */
export interface OutputOf {
  readonly id: string;
  readonly createdAt: Date;
}

/** A place in an output: everything up to this batch. */
export interface OutputPlace {
  readonly fence: number;
  readonly batch: number;
}

export interface StoredChunk extends Omit<OutputBatch, 'bytes'>, OutputPlace {
  readonly batch: number;
  readonly data: Buffer;
}

/** What was written under one fence, as far as it is stored. */
export interface FenceOutput {
  readonly fence: number;
  /** Where the last chunk ends: of both streams, or of the one that was asked for. */
  readonly end: number;
  /** Of both streams, whichever was asked for. */
  readonly wholeEnd: number;
  readonly cut: OutputCut | null;
}
