/** What a process counts of runs. No run or organization is ever a label; of queues the first hundred that it met. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { END_STATES, KINDS } from '../kernel/run-words.js';
import { LabelNames, labelOf } from '../platform/metrics.js';
import type { EndedRun } from './ending.sql.js';
import { RetentionMetrics } from './retention.metrics.js';
import { END_CODES } from './run.js';
import { WorkMetrics } from './work.metrics.js';

const QUEUES = 100;
export const LANES = ['submit', 'cancel', 'start', 'finish'] as const;
export type LaneName = (typeof LANES)[number];

/** From what no person notices up to a night. */
const SECONDS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 1_800, 3_600, 7_200, 14_400, 43_200,
];

export class RunMetrics {
  /** Queues that have a label, in all families. */
  readonly queues: LabelNames;
  readonly work: WorkMetrics;
  readonly retention: RetentionMetrics;
  private readonly submitted: Counter<'kind' | 'queue'>;
  private readonly ended: Counter<'state' | 'code' | 'kind' | 'queue'>;
  private readonly startSeconds: Histogram<'queue'>;
  private readonly durations: Histogram<'kind' | 'state'>;
  private readonly flushes: Histogram<'lane'>;
  private readonly flushSeconds: Histogram<'lane'>;
  private readonly streams: Gauge;
  private readonly streamed: Counter;

  /** `served` are the queues that must not be crowded out by others. */
  constructor(registry: Registry, served: readonly string[] = []) {
    const registers = [registry];
    this.work = new WorkMetrics(registry);
    this.retention = new RetentionMetrics(registry);
    this.queues = new LabelNames(QUEUES, ['default', ...served.filter((name) => name !== '*')]);
    this.submitted = new Counter({
      name: 'capstan_runs_submitted_total',
      help: 'Runs that this process made, by kind and queue (replays are not counted).',
      labelNames: ['kind', 'queue'],
      registers,
    });
    this.ended = new Counter({
      name: 'capstan_runs_ended_total',
      help: 'Runs whose end this process wrote, by end state, code, kind and queue.',
      labelNames: ['state', 'code', 'kind', 'queue'],
      registers,
    });
    this.startSeconds = new Histogram({
      name: 'capstan_run_start_seconds',
      help: 'From the instant at which a run was due (its submit, or later when it asked for that) to its start here, by queue.',
      labelNames: ['queue'],
      buckets: SECONDS,
      registers,
    });
    this.durations = new Histogram({
      name: 'capstan_run_duration_seconds',
      help: 'From the start of a run to its end, by kind and end state, for ends that this process wrote.',
      labelNames: ['kind', 'state'],
      buckets: SECONDS,
      registers,
    });
    this.flushes = new Histogram({
      name: 'capstan_flush_items',
      help: 'Items that went out together in one statement, by lane: submit, cancel, start or finish.',
      labelNames: ['lane'],
      buckets: [1, 2, 5, 10, 25, 50, 100, 200],
      registers,
    });
    this.flushSeconds = new Histogram({
      name: 'capstan_flush_seconds',
      help: 'From the first try of such a statement until it was committed, by lane.',
      labelNames: ['lane'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    });
    for (const lane of LANES) {
      this.flushes.zero({ lane });
      this.flushSeconds.zero({ lane });
    }
    this.streams = new Gauge({ name: 'capstan_streams_open', help: 'Streams of runs that are open here.', registers });
    this.streamed = new Counter({
      name: 'capstan_stream_bytes_total',
      help: 'Bytes of messages that streams took.',
      registers,
    });
  }

  countSubmitted(run: { readonly kind: string; readonly queue: string }): void {
    this.submitted.inc({ kind: labelOf(KINDS, run.kind), queue: this.queues.labelOf(run.queue) });
  }

  /** `waitedMs` since it was due. */
  countStarted(queue: string, waitedMs: number): void {
    this.startSeconds.observe({ queue: this.queues.labelOf(queue) }, Math.max(0, waitedMs) / 1_000);
  }

  countEnded(end: EndedRun): void {
    const state = labelOf(END_STATES, end.state);
    const kind = labelOf(KINDS, end.kind);
    this.ended.inc({ state, code: labelOf(END_CODES, end.code), kind, queue: this.queues.labelOf(end.queue) });
    if (end.ranSeconds !== null) this.durations.observe({ kind, state }, Math.max(0, end.ranSeconds));
  }

  countFlush(lane: LaneName, items: number, tookMs: number): void {
    this.flushes.observe({ lane }, items);
    this.flushSeconds.observe({ lane }, tookMs / 1_000);
  }

  setStreams(open: number): void {
    this.streams.set(open);
  }

  countStreamed(bytes: number): void {
    this.streamed.inc(bytes);
  }
}
