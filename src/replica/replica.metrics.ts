/** Gauges of this process that are read when they are scraped. */
import { collectDefaultMetrics, Gauge, type Registry } from 'prom-client';
import type { KeeperClient } from '../execution/keeper/keeper.client.js';
import type { Platform, Pools } from '../platform/platform.js';
import { type QueueDepth, queueDepths } from './readiness.sql.js';

const SHARED_FOR_MS = 1_000;

/** Registers everything; `keeper` and `running` are asked at each scrape. */
export function registerReplicaMetrics(
  platform: Platform,
  facts: { keeper: () => KeeperClient | undefined; running: () => number },
): void {
  const { metrics, timing, pools, config } = platform;
  const registers = [metrics];
  collectDefaultMetrics({ register: metrics });
  new Gauge({
    name: 'capstan_lease_age_seconds',
    help: "Seconds since this process's lease was last renewed.",
    registers,
    collect() {
      const sentAtMs = facts.keeper()?.stats.lastRenewalSentAtMs;
      if (sentAtMs !== undefined) this.set((timing.monotonicMs() - sentAtMs) / 1_000);
    },
  });
  new Gauge({
    name: 'capstan_slots',
    help: 'Slots of this worker.',
    registers,
    collect() {
      this.set(config.slots);
    },
  });
  new Gauge({
    name: 'capstan_runs_running',
    help: 'Runs that this worker is executing.',
    registers,
    collect() {
      this.set(facts.running());
    },
  });
  registerPools(registers, pools);
  registerQueues(platform, registers);
}

function registerPools(registers: Registry[], pools: Pools): void {
  new Gauge({
    name: 'capstan_db_pool_in_flight',
    help: 'Statements sent through a pool and not answered yet.',
    labelNames: ['pool'],
    registers,
    collect() {
      for (const [pool, { inFlight }] of Object.entries(pools)) this.set({ pool }, inFlight);
    },
  });
  new Gauge({
    name: 'capstan_db_pool_size',
    help: 'Connections that a pool may open.',
    labelNames: ['pool'],
    registers,
    collect() {
      for (const [pool, { size }] of Object.entries(pools)) this.set({ pool }, size);
    },
  });
}

function registerQueues(platform: Platform, registers: Registry[]): void {
  const { timing, pools } = platform;
  let shared: { depths: Promise<QueueDepth[]>; untilMs: number } | undefined;
  const depths = () => {
    if (!shared || shared.untilMs <= timing.monotonicMs()) {
      // With the database away a scrape still answers, without these lines.
      const depths = queueDepths(pools.read).catch(() => []);
      shared = { depths, untilMs: timing.monotonicMs() + SHARED_FOR_MS };
    }
    return shared.depths;
  };
  new Gauge({
    name: 'capstan_queue_depth',
    help: 'Pending runs by queue.',
    labelNames: ['queue'],
    registers,
    async collect() {
      this.reset();
      for (const { queue, depth } of await depths()) this.set({ queue }, depth);
    },
  });
  new Gauge({
    name: 'capstan_queue_oldest_pending_seconds',
    help: 'Age of the oldest pending run by queue.',
    labelNames: ['queue'],
    registers,
    async collect() {
      this.reset();
      for (const { queue, oldestSeconds } of await depths()) this.set({ queue }, oldestSeconds);
    },
  });
}
