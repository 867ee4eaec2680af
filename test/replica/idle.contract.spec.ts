/** What the loops of a replica that has nothing to do ask of the database, over an hour that takes seconds. */
import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, it, type MockInstance, vi } from 'vitest';
import { AnchorCheck } from '../../src/audit/anchor-check.js';
import { installationChain } from '../../src/audit/audit.sql.js';
import { ChainKnowledge } from '../../src/audit/chain-knowledge.js';
import { RecheckLoop } from '../../src/audit/recheck.loop.js';
import { Executor } from '../../src/execution/executor.js';
import { encodeId, newId } from '../../src/kernel/ids.js';
import type { Pool } from '../../src/platform/db/db.js';
import { Platform } from '../../src/platform/platform.js';
import { chainLoops } from '../../src/replica/chain-loops.js';
import { HousekeepingLoop } from '../../src/replica/housekeeping.loop.js';
import { JanitorLoop } from '../../src/replica/janitor.loop.js';
import { PULSE_JITTER } from '../../src/replica/life.js';
import { LoopMetrics } from '../../src/replica/loop.metrics.js';
import { LoopRunner } from '../../src/replica/loop-runner.js';
import { RetentionLoop } from '../../src/replica/retention.loop.js';
import { WorkLoop } from '../../src/replica/work.loop.js';
import { HolderService } from '../../src/runs/holder.service.js';
import { JanitorService } from '../../src/runs/janitor.service.js';
import { RetentionSweep } from '../../src/runs/retention-sweep.service.js';
import { RunMetrics } from '../../src/runs/run.metrics.js';
import { registerIfNew } from '../../src/runs/worker.sql.js';
import { type LocalSurface, openLocalSurface } from '../send.js';
import { VirtualTime } from './virtual-time.fixture.js';

const HOUR_MS = 3_600_000;
const time = new VirtualTime();
let surface: LocalSurface;
let loops: LoopRunner[] = [];
let counts: (() => number)[] = [];
let pulses: MockInstance<HolderService['pulse']>;
beforeAll(async () => {
  surface = await openLocalSurface();
  ({ loops, counts, pulses } = await beginReplica());
});
afterAll(async () => {
  await Promise.all(loops.map((loop) => loop.stop()));
  await surface.close();
});

/** A replica that is everything but its processes. */
async function beginReplica() {
  const { config, log, pools, bells } = surface.platform;
  const platform = new Platform(config, log, new Registry(), time, pools, bells);
  const worker = { id: newId(), name: 'idle', kind: 'replica' as const, slots: 4, queues: ['default'], version: '0' };
  const chain = (await installationChain(surface.pool)) ?? '';
  await registerIfNew(surface.pool, worker, 2 * HOUR_MS, { chain, object: encodeId('wrk', worker.id) });
  const runMetrics = new RunMetrics(platform.metrics);
  const holder = new HolderService(platform, worker, runMetrics, () => undefined);
  const janitor = new JanitorService(platform, worker, chain, runMetrics);
  const sweep = new RetentionSweep(platform, worker, runMetrics.retention);
  const keeper = { clock: undefined, stats: { renewalsSinceOutage: 100 } };
  const janitorLoop = new JanitorLoop(janitor, keeper, config, time);
  const nothing = () => undefined;
  const executor = new Executor({
    platform,
    holder,
    supervisor: { launch: () => false, grantCredit: nothing, stop: nothing, kill: nothing },
    incarnation: worker.id,
    metrics: runMetrics,
    onStarted: nothing,
    onStartFailed: nothing,
    onFree: nothing,
  });
  const work = new WorkLoop({
    holder,
    executor,
    janitor,
    timing: time,
    log,
    pollIntervalMs: config.pollIntervalMs,
    mayClaim: () => true,
    onPulse: (pulse) => janitorLoop.notePulse(pulse),
  });
  const knowledge = new ChainKnowledge(log);
  const recheck = new RecheckLoop(pools.work, knowledge, new AnchorCheck(pools.work), time);
  const options = { timing: time, log, metrics: new LoopMetrics(platform.metrics) };
  const loops = [
    new LoopRunner(work, { ...options, intervalMs: () => work.intervalMs(), jitter: PULSE_JITTER }),
    new LoopRunner(janitorLoop, { ...options, intervalMs: () => config.janitorIntervalMs }),
    new LoopRunner(new HousekeepingLoop(pools.work), { ...options, intervalMs: () => 600_000 }),
    new LoopRunner(new RetentionLoop(sweep, time), { ...options, intervalMs: () => 600_000 }),
    ...chainLoops(platform, recheck, options.metrics),
  ];
  const counted = [pools.work, pools.submit, pools.read, pools.access] satisfies Pool[];
  const counts = counted.map((pool) => vi.spyOn(pool, 'run')).map((spy) => () => spy.mock.calls.length);
  const pulses = vi.spyOn(holder, 'pulse');
  for (const loop of loops) loop.start();
  return { loops, counts, pulses };
}

const statements = () => counts.reduce((sum, count) => sum + count(), 0);

/** What sessions of their own send beside the loops, a second: renewals of the lease, and looks whether one still listens. */
const BESIDE = 1 / 4.75 + 1 / 30;

it('F016 send, with renewals, at most one statement a second together, and look for work that nobody told of every 1.9 s', {
  timeout: 120_000,
}, async () => {
  await time.pass(60_000, loops.length);
  const before = statements();
  pulses.mockClear();
  await time.pass(HOUR_MS, loops.length);
  const perSecond = (statements() - before) / 3_600;
  expect(perSecond + BESIDE).toBeLessThanOrEqual(0.95);
  expect(pulses.mock.calls.length, 'a pulse every 1.87 s at least').toBeGreaterThan(3_600 / 1.87);
});
