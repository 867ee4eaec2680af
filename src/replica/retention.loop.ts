/** Removes what is kept no longer, piece by piece, and leaves the database to others for as long as each piece took. */
import type { Loop } from '../platform/loop.js';
import type { Timing } from '../platform/time.js';
import type { RetentionSweep } from '../runs/retention-sweep.service.js';

export class RetentionLoop implements Loop {
  readonly name = 'retention';

  constructor(
    private readonly sweep: Pick<RetentionSweep, 'step'>,
    private readonly timing: Timing,
  ) {}

  async step(signal: AbortSignal): Promise<'idle' | 'more'> {
    const begunAtMs = this.timing.monotonicMs();
    const result = await this.sweep.step();
    if (result === 'more') await this.timing.delay(this.timing.monotonicMs() - begunAtMs, signal);
    return result;
  }
}
