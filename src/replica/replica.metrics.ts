/** What this process is and does at the moment, read when it is scraped. */
import { Counter, collectDefaultMetrics, Gauge, type Registry } from 'prom-client';
import type { KeeperStats } from '../execution/keeper/keeper.client.js';
import { registerPoolMetrics } from '../platform/db/db.metrics.js';
import { productVersion } from '../platform/http/product.js';
import type { LabelNames } from '../platform/metrics.js';
import type { Platform } from '../platform/platform.js';
import type { Timing } from '../platform/time.js';
import { registerQueueMetrics } from '../runs/queue.metrics.js';

/** Each look at the event loop's lag wakes the process: every 10 ms, as is usual, is most of what it costs when idle. */
const LAG_EVERY_MS = 100;

/** Asked at each scrape. */
export interface ReplicaFacts {
  /** Queues that have a label. */
  readonly queues: LabelNames;
  readonly keeper: () => KeeperStats | undefined;
  /** Runs that are executing. */
  readonly running: () => number;
}

export function registerReplicaMetrics(platform: Platform, facts: ReplicaFacts): void {
  const { metrics, timing, pools, config } = platform;
  const registers = [metrics];
  collectDefaultMetrics({ register: metrics, eventLoopMonitoringPrecision: LAG_EVERY_MS });
  new Gauge({
    name: 'capstan_info',
    help: 'Always 1; its labels say which version runs here, on which Node.js.',
    labelNames: ['version', 'node'],
    registers,
  }).set({ version: productVersion(), node: process.versions.node }, 1);
  new Gauge({
    name: 'capstan_slots',
    help: 'How many runs this worker executes at a time, at most.',
    registers,
  }).set(config.slots);
  new Gauge({
    name: 'capstan_runs_running',
    help: 'Runs that this worker is executing.',
    registers,
    collect() {
      this.set(facts.running());
    },
  });
  registerLease(metrics, facts, timing);
  registerPoolMetrics(metrics, pools);
  registerQueueMetrics({ registry: metrics, pool: pools.read, timing, names: facts.queues });
}

function registerLease(registry: Registry, { keeper }: ReplicaFacts, timing: Timing): void {
  const registers = [registry];
  new Gauge({
    name: 'capstan_lease_age_seconds',
    help: "Seconds since this process's lease was last renewed; not there before it was.",
    registers,
    collect() {
      const sentAtMs = keeper()?.lastRenewalSentAtMs;
      if (sentAtMs === undefined) this.remove();
      else this.set((timing.monotonicMs() - sentAtMs) / 1_000);
    },
  });
  new Counter({
    name: 'capstan_lease_renewals_total',
    help: "Renewals of this process's lease that were tried, by result: renewed, or failed (also when no answer came).",
    labelNames: ['result'],
    registers,
    collect() {
      const { renewals = 0, renewalFailures = 0 } = keeper() ?? {};
      this.reset();
      this.inc({ result: 'renewed' }, renewals);
      this.inc({ result: 'failed' }, renewalFailures);
    },
  });
}
