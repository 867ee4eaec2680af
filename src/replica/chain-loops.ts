/**
 * The loops that watch over the audit chains and the laws: one set per process that serves the API, whatever becomes of
 * its lives as a worker.
 */
import { AnchorLoop } from '../audit/anchor.loop.js';
import { AnchorMetrics } from '../audit/anchor.metrics.js';
import type { RecheckLoop } from '../audit/recheck.loop.js';
import { requestTimeStamp } from '../audit/tsa.js';
import { InvariantsLoop } from '../doctor/invariants.loop.js';
import { registerInvariantMetrics } from '../doctor/invariants.metrics.js';
import type { Platform } from '../platform/platform.js';
import type { LoopMetrics } from './loop.metrics.js';
import { LoopRunner } from './loop-runner.js';

/** A chain that has become due is found within this and its jitter. */
const ANCHOR_LOOK_EVERY_MS = 15_000;

export function chainLoops(platform: Platform, recheck: RecheckLoop, loopMetrics: LoopMetrics): LoopRunner[] {
  const { config, pools, log, timing, metrics } = platform;
  const runner = { timing, log, metrics: loopMetrics };
  const invariants = new InvariantsLoop(pools.read, log, timing);
  registerInvariantMetrics(metrics, invariants);
  const loops = [
    new LoopRunner(recheck, { ...runner, intervalMs: () => recheck.intervalMs() }),
    new LoopRunner(invariants, { ...runner, intervalMs: () => invariants.intervalMs() }),
  ];
  if (config.tsaUrl !== undefined) {
    const anchors = new AnchorLoop({
      pool: pools.work,
      url: config.tsaUrl,
      knowledge: recheck.knowledge,
      intervalMs: config.tsaIntervalMs,
      request: requestTimeStamp,
      log,
      metrics: new AnchorMetrics(metrics),
    });
    loops.push(new LoopRunner(anchors, { ...runner, intervalMs: () => ANCHOR_LOOK_EVERY_MS }));
  }
  return loops;
}
