/** What was started, to be stopped in the reverse order. A fault in one step doesn't keep the others from running. */
import type { Logger } from '../platform/log/logger.js';

export class Undo {
  private readonly steps: (() => Promise<void>)[] = [];
  private readonly forcing = new AbortController();

  constructor(private readonly log: Logger) {}

  /** Aborts when there is no more time for tools. */
  get force(): AbortSignal {
    return this.forcing.signal;
  }

  push(step: () => Promise<void>): void {
    this.steps.push(step);
  }

  hurry(): void {
    this.forcing.abort();
  }

  async all(): Promise<void> {
    for (let step = this.steps.pop(); step; step = this.steps.pop()) {
      await step().catch((error: unknown) =>
        this.log.warn({ code: 'stop_fault', err: error }, 'a part did not stop in order'),
      );
    }
  }
}
