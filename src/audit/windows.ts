/**
 * Windows that fit a statement's time. Whoever tampers can make texts as long as he likes: a window that takes too long
 * is checked in halves, so that he is found, and does not merely stop the look.
 */
import { errorCode, type Pool } from '../platform/db/db.js';
import { checkWindows, type Window, type WindowFinding } from './chain.sql.js';

/** One statement each: some 90 ms. */
export const WINDOW_ENTRIES = 20_000;
/** query_canceled: the server gave the statement up. */
const TOO_LONG = '57014';

export class Windows {
  private width = WINDOW_ENTRIES;

  constructor(private readonly pool: Pool) {}

  /** Checks the windows, or as much of the beginning of each as is possible at once: to the `until` of its finding. */
  async check(asked: readonly Window[]): Promise<WindowFinding[]> {
    const windows = asked.map((window) => ({
      ...window,
      until: Math.min(window.until, window.after.seq + this.width),
    }));
    try {
      const findings = await checkWindows(this.pool, windows);
      this.width = Math.min(this.width * 2, WINDOW_ENTRIES);
      return findings;
    } catch (error) {
      const widest = Math.max(...windows.map(({ after, until }) => until - after.seq));
      if (errorCode(error) !== TOO_LONG || widest <= 1) throw error;
      this.width = Math.floor(widest / 2);
      return this.check(asked);
    }
  }
}
