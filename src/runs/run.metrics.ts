/** What a process counts of runs. No run or organization is ever a label. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Outcome } from './run.js';

export class RunMetrics {
  private readonly ended: Counter<'state' | 'code'>;
  private readonly submitted: Counter;
  private readonly flushes: Histogram<'lane'>;
  private readonly streams: Gauge;
  private readonly streamed: Counter;

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
    this.streams = new Gauge({ name: 'capstan_streams_open', help: 'Streams of runs that are open here.', registers });
    this.streamed = new Counter({
      name: 'capstan_stream_bytes_total',
      help: 'Bytes of messages that streams took.',
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

  setStreams(open: number): void {
    this.streams.set(open);
  }

  countStreamed(bytes: number): void {
    this.streamed.inc(bytes);
  }
}
