/** How long a look may take. What can't be looked at within it is said; nothing is skipped in silence. */
import type { Timing } from '../platform/time.js';

export class Budget {
  private readonly begunAtMs: number;

  /** `isEndless` for who asked for all of it. */
  constructor(
    private readonly timing: Pick<Timing, 'monotonicMs'>,
    readonly isEndless: boolean,
  ) {
    this.begunAtMs = timing.monotonicMs();
  }

  /** Whether less than `ms` have gone by since the whole began. */
  lasts(ms: number): boolean {
    return this.isEndless || this.timing.monotonicMs() - this.begunAtMs < ms;
  }
}
