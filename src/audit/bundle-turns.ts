/** Work that is done one at a time: who comes meanwhile stands in line, and the line is not without end. */
import { Problem } from '../kernel/problems.js';

const RETRY_AFTER_SECONDS = 5;

export class Turns {
  private last: Promise<unknown> = Promise.resolve();
  private waiting = 0;

  constructor(private readonly maxWaiting: number) {}

  /** Rejects with `unavailable`, and has done nothing, when too many wait already. */
  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.waiting > this.maxWaiting) {
      const detail = `${this.maxWaiting} others wait for a bundle already: nothing was changed, ask again`;
      throw new Problem('unavailable', detail, { retryAfterSeconds: RETRY_AFTER_SECONDS });
    }
    this.waiting += 1;
    const turn = this.last.then(work);
    this.last = turn.catch(() => undefined);
    try {
      return await turn;
    } finally {
      this.waiting -= 1;
    }
  }
}
