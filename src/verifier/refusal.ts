/** Why a bundle is not accepted: the step that refused it, the reason in words, and the entry when it was one. */

/** In the order in which they are checked. */
export type Stage = 'parse' | 'signature' | 'chain' | 'anchor' | 'span' | 'evidence';

export class Refusal extends Error {
  constructor(
    readonly stage: Stage,
    /** One line; holds no control character of the file. */
    readonly reason: string,
    /** Sequence number of the entry that it was. */
    readonly seq?: number,
  ) {
    super(`${stage}: ${reason}`);
    this.name = 'Refusal';
  }
}
