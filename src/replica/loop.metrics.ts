/** What a process counts of its background loops; each of them has its lines from its first start on. */
import { Counter, Gauge, type Registry } from 'prom-client';

const RESULTS = ['idle', 'more', 'failed'] as const;
type StepResult = (typeof RESULTS)[number];

export class LoopMetrics {
  private readonly steps: Counter<'loop' | 'result'>;
  private readonly lastSuccess: Gauge<'loop'>;
  private readonly begun = new Set<string>();

  constructor(registry: Registry) {
    const registers = [registry];
    this.steps = new Counter({
      name: 'capstan_loop_steps_total',
      help: 'Steps of background loops by result: idle, more or failed.',
      labelNames: ['loop', 'result'],
      registers,
    });
    this.lastSuccess = new Gauge({
      name: 'capstan_loop_last_success_timestamp_seconds',
      help: 'When a step of the loop last succeeded, in seconds of the epoch; before the first, when the loop began.',
      labelNames: ['loop'],
      registers,
    });
  }

  /** A loop of this name starts. One that was there before, in an earlier life, goes on counting. */
  begin(loop: string): void {
    if (this.begun.has(loop)) return;
    this.begun.add(loop);
    for (const result of RESULTS) this.steps.inc({ loop, result }, 0);
    this.lastSuccess.setToCurrentTime({ loop });
  }

  count(loop: string, result: StepResult): void {
    this.steps.inc({ loop, result });
    if (result !== 'failed') this.lastSuccess.setToCurrentTime({ loop });
  }
}
