/** What a process counts of runs. No run or organization is ever a label. */
import { Counter, Histogram, type Registry } from 'prom-client';
import type { Outcome } from './run.js';

export class RunMetrics {
  private readonly ended: Counter<'state' | 'code'>;
  private readonly submitted: Counter;
  private readonly flushes: Histogram<'lane'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.ended = new Counter({
      name: 'capstan_runs_ended_total',
      help: 'Runs whose end this process wrote, by end state and code.',
      labelNames: ['state', 'code'],
      registers,
    });
    this.submitted = new Counter({
      name: 'capstan_runs_submitted_total',
      help: 'Runs that this process made (replays are not counted).',
      registers,
    });
    this.flushes = new Histogram({
      name: 'capstan_flush_items',
      help: 'Items that went out together in one statement, by lane.',
      labelNames: ['lane'],
      buckets: [1, 2, 5, 10, 25, 50, 100, 200],
      registers,
    });
  }

  countSubmitted(): void {
    this.submitted.inc();
  }

  countEnded(end: Pick<Outcome, 'state' | 'code'>): void {
    this.ended.inc({ state: end.state, code: end.code });
  }

  countFlush(lane: string, items: number): void {
    this.flushes.observe({ lane }, items);
  }
}
