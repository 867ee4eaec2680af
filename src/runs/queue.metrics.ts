/**
 * What waits, by queue, asked of the database when it is scraped. Scrapers share an answer, and none of them waits long
 * for it: with the database slow or away these lines are missing from a scrape, and the others are there.
 */
import { Gauge, type Registry } from 'prom-client';
import type { Pool } from '../platform/db/db.js';
import { type LabelNames, OTHER } from '../platform/metrics.js';
import type { Timing } from '../platform/time.js';
import { COUNTED, FOUND_AT_MOST, type QueueDepth, queueDepths } from './queue-depth.sql.js';

const SHARED_FOR_MS = 1_000;
/** For each millisecond that an answer took, it is shared for so many. */
const IDLE_SHARE = 20;
const LONGEST_SHARED_MS = 30_000;
const WAIT_MS = 250;

export interface QueueMetricsParts {
  readonly registry: Registry;
  readonly pool: Pool;
  readonly timing: Timing;
  /** Queues that have a label. */
  readonly names: LabelNames;
}

export function registerQueueMetrics({ registry, pool, timing, names }: QueueMetricsParts): void {
  const standing = new QueueStanding(() => queueDepths(pool, names.names), timing);
  const gauge = (name: string, help: string, read: (queue: QueueDepth) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['queue'],
      registers: [registry],
      async collect() {
        this.reset();
        for (const each of await standing.now()) {
          const queue = names.labelOf(each.queue);
          if (queue !== OTHER) this.set({ queue }, read(each));
        }
      },
    });
  gauge(
    'capstan_queue_depth',
    `Runs that are pending and due, by queue, paused or not: exact below ${COUNTED} (200 with a hundred queues), above it estimated from a sample ` +
      '(mostly within a tenth) and never told as less.',
    ({ depth }) => depth,
  );
  gauge(
    'capstan_queue_oldest_pending_seconds',
    'For how long the run next in line has been due, by queue: the longest over its priorities (the 16 lowest); 0 when ' +
      'nothing waits.',
    ({ oldestSeconds }) => oldestSeconds,
  );
  gauge('capstan_queue_paused', '1 when nothing is claimed out of the queue until a person resumes it.', ({ paused }) =>
    Number(paused),
  );
  new Gauge({
    name: 'capstan_queues_untold',
    help: `Queues with something due that have no lines here, for want of room: at most ${FOUND_AT_MOST} are looked at.`,
    registers: [registry],
    async collect() {
      this.set((await standing.now())[0]?.untold ?? 0);
    },
  });
}

/** The last answer, while it is fresh; otherwise a new one, which is asked for once. */
export class QueueStanding {
  private shared: { readonly answer: Promise<readonly QueueDepth[]>; untilMs: number } | undefined;

  constructor(
    private readonly ask: () => Promise<readonly QueueDepth[]>,
    private readonly timing: Timing,
  ) {}

  /** Nothing when it takes too long, or can't be had. */
  async now(): Promise<readonly QueueDepth[]> {
    const answered = new AbortController();
    const late = this.timing.delay(WAIT_MS, answered.signal).then(() => []);
    const depths = await Promise.race([this.fresh(), late]);
    answered.abort();
    return depths;
  }

  private fresh(): Promise<readonly QueueDepth[]> {
    const askedAtMs = this.timing.monotonicMs();
    if (this.shared && askedAtMs < this.shared.untilMs) return this.shared.answer;
    const shareFor = (forMs: number) => {
      shared.untilMs = this.timing.monotonicMs() + forMs;
    };
    const answer = this.ask().then(
      (depths) => {
        const idleMs = (this.timing.monotonicMs() - askedAtMs) * IDLE_SHARE;
        shareFor(Math.min(Math.max(SHARED_FOR_MS, idleMs), LONGEST_SHARED_MS));
        return depths;
      },
      () => {
        shareFor(SHARED_FOR_MS);
        return [];
      },
    );
    const shared = { answer, untilMs: Number.POSITIVE_INFINITY };
    this.shared = shared;
    return answer;
  }
}
