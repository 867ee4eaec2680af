/** Each thing that happens to a run is counted once, where it was written, with what the statement itself answered. */
import { Registry } from 'prom-client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { installationChain } from '../../src/audit/audit.sql.js';
import { Executor } from '../../src/execution/executor.js';
import { decodeId, encodeId, newId } from '../../src/kernel/ids.js';
import { OTHER } from '../../src/platform/metrics.js';
import { HolderService } from '../../src/runs/holder.service.js';
import { JanitorService } from '../../src/runs/janitor.service.js';
import type { ClaimedRun } from '../../src/runs/run.js';
import { RunMetrics } from '../../src/runs/run.metrics.js';
import { registerIfNew } from '../../src/runs/worker.sql.js';
import { readExposition, valueIn } from '../exposition.js';
import { type LocalSurface, openLocalSurface } from '../send.js';

let surface: LocalSurface;
let chain: string;
let life: Awaited<ReturnType<typeof begin>>;
beforeAll(async () => {
  surface = await openLocalSurface();
  chain = (await installationChain(surface.pool)) ?? '';
});
beforeEach(async () => {
  life = await begin();
});
afterEach(() => void vi.restoreAllMocks());
afterAll(() => surface.close());

/** A life that executes noops when it is told to. */
async function begin(queue = `q-${newId()}`) {
  const { platform } = surface;
  const worker = { id: newId(), name: 'counted', kind: 'worker' as const, slots: 9, queues: [queue], version: '0' };
  await registerIfNew(surface.pool, worker, 600_000, { chain, object: encodeId('wrk', worker.id) });
  const registry = new Registry();
  const metrics = new RunMetrics(registry, [queue]);
  const holder = new HolderService(platform, worker, metrics, () => undefined);
  const nothing = () => {
    throw new Error('a noop needs no tool');
  };
  const executor = new Executor({
    platform,
    holder,
    supervisor: { launch: nothing, grantCredit: nothing, stop: nothing, kill: nothing },
    incarnation: worker.id,
    metrics,
    onStarted: () => undefined,
    onStartFailed: () => undefined,
    onFree: () => undefined,
  });
  const janitor = new JanitorService(platform, worker, chain, metrics);
  const count = async (name: string, labels: Record<string, string> = {}) =>
    valueIn(readExposition(await registry.metrics()), name, labels);
  const ended = (state: string, code: string) =>
    count('capstan_runs_ended_total', { state, code, kind: 'noop', queue });
  return { worker, queue, holder, executor, janitor, count, ended };
}

/** As the version before made them: claimed first and started then, although they have no tool. */
async function submit(n = 1): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < n; i += 1) {
    const json = { kind: 'noop', queue: life.queue };
    ids.push((await surface.send({ method: 'POST', path: '/v1/runs', json })).json.id);
  }
  await give('update live_runs set kind = null where queue = $1', life.queue);
  return ids;
}

const cancel = (id: string) => surface.send({ method: 'POST', path: `/v1/runs/${id}/cancel` });
const claim = async (n = 1): Promise<readonly ClaimedRun[]> => (await life.holder.claim(n)).runs;
const give = async (sql: string, ...values: unknown[]) => (await surface.session()).query(sql, values);
const kill = ({ worker }: typeof life) =>
  give(`update workers set state = 'lost', ended_at = now() where id = $1`, worker.id);

describe('what a holder does', () => {
  it('a run that is executed: its submit, claim, start and end', async () => {
    await submit(3);
    await give(`update runs set created_at = created_at - interval '1 minute' where queue = $1`, life.queue);
    for (const run of await claim(5)) life.executor.accept(run);
    await life.executor.idle(10_000);
    const { count, ended, queue } = life;
    expect(await ended('succeeded', 'ok')).toBe(3);
    expect(await count('capstan_claims_total')).toBe(1);
    expect(await count('capstan_claimed_runs_total')).toBe(3);
    expect(await count('capstan_run_start_seconds_count', { queue })).toBe(3);
    expect(await count('capstan_run_start_seconds_bucket', { queue, le: '30' })).toBe(0);
    expect(await count('capstan_run_start_seconds_bucket', { queue, le: '300' })).toBe(3);
    expect(await count('capstan_run_duration_seconds_count', { kind: 'noop', state: 'succeeded' })).toBe(3);
    expect(await count('capstan_run_duration_seconds_bucket', { kind: 'noop', state: 'succeeded', le: '10' })).toBe(3);
    for (const lane of ['start', 'finish']) {
      const flushes = (await count('capstan_flush_seconds_count', { lane })) ?? 0;
      expect(flushes).toBeGreaterThan(0);
      expect(await count('capstan_flush_items_sum', { lane })).toBe(3);
    }
    const all = readExposition(await surface.platform.metrics.metrics());
    expect(valueIn(all, 'capstan_runs_submitted_total', { kind: 'noop', queue })).toBe(3);
  });

  it('a start is counted from the instant that was asked for', async () => {
    const [id = ''] = await submit();
    await give(
      `update runs set created_at = now() - interval '2 hours', not_before = now() - interval '1 minute' where id = $1`,
      decodeId('run', id),
    );
    for (const run of await claim()) life.executor.accept(run);
    await life.executor.idle(10_000);
    const { count, queue } = life;
    expect(await count('capstan_run_start_seconds_bucket', { queue, le: '30' })).toBe(0);
    expect(await count('capstan_run_start_seconds_bucket', { queue, le: '900' })).toBe(1);
  });

  it('an end whose answer was lost: once', async () => {
    await submit();
    const [run] = await claim();
    expect(await life.holder.start(run as ClaimedRun)).toBe(true);
    const { work } = surface.platform.pools;
    const send = work.run.bind(work);
    vi.spyOn(work, 'run').mockImplementationOnce(async (statement) => {
      await send(statement);
      throw Object.assign(new Error('the connection broke'), { code: 'ECONNRESET' });
    });
    const outcome = { state: 'succeeded', code: 'ok', kind: null, detail: '', exitCode: null, signal: null } as const;
    expect(await life.holder.finish(run as ClaimedRun, { outcome, output: null, outputDigest: null })).toBe(true);
    expect(await life.ended('succeeded', 'ok')).toBe(1);
    expect(await life.count('capstan_run_duration_seconds_count', { kind: 'noop', state: 'succeeded' })).toBe(1);
  });

  it('what it gives back, and what it gives up because it was canceled meanwhile', async () => {
    const [, second = ''] = await submit(2);
    const runs = await claim(2);
    await cancel(second);
    expect(await life.holder.release(runs)).toHaveLength(2);
    expect(await life.count('capstan_runs_released_total')).toBe(1);
    expect(await life.ended('canceled', 'canceled')).toBe(1);
    expect(await life.count('capstan_run_duration_seconds_count', { kind: 'noop', state: 'canceled' })).toBeUndefined();
  });

  it('a race that it lost, by what it wanted to write', async () => {
    const lost = async (write: string) => (await life.count('capstan_lost_races_total', { write })) ?? Number.NaN;
    expect(await Promise.all(['start', 'finish', 'release'].map(lost))).toEqual([0, 0, 0]);
    const other = await begin();
    await submit(3);
    const [first, second, third] = (await claim(3)) as [ClaimedRun, ClaimedRun, ClaimedRun];
    const takeAway = ({ runId }: ClaimedRun) =>
      give('update live_runs set holder = $1, fence = fence + 1 where run_id = $2', other.worker.id, runId);

    await takeAway(first);
    life.executor.accept(first);
    await life.executor.idle(10_000);
    expect(await Promise.all(['start', 'finish', 'release'].map(lost))).toEqual([1, 0, 0]);

    const start = life.holder.start.bind(life.holder);
    vi.spyOn(life.holder, 'start').mockImplementationOnce(async (hold) => {
      const isStarted = await start(hold);
      await takeAway(second);
      return isStarted;
    });
    life.executor.accept(second);
    await life.executor.idle(10_000);
    expect(await Promise.all(['start', 'finish', 'release'].map(lost))).toEqual([1, 1, 0]);

    await takeAway(third);
    life.executor.drain();
    life.executor.accept(third);
    await life.executor.idle(10_000);
    expect(await Promise.all(['start', 'finish', 'release'].map(lost))).toEqual([1, 1, 1]);
    expect(await life.ended('succeeded', 'ok')).toBeUndefined();
  });
});

describe('what others do', () => {
  it('a cancel in place: once, however often it was asked for at the same moment', async () => {
    const [id = ''] = await submit();
    await Promise.all(Array.from({ length: 8 }, () => cancel(id)));
    const all = readExposition(await surface.platform.metrics.metrics());
    const labels = { state: 'canceled', code: 'canceled', kind: 'noop', queue: life.queue };
    expect(valueIn(all, 'capstan_runs_ended_total', labels)).toBe(1);
    expect(valueIn(all, 'capstan_flush_seconds_count', { lane: 'cancel' })).toBeGreaterThan(0);
  });

  it('a janitor: whom it reaped, and what became of the runs', async () => {
    const [, , third = ''] = await submit(3);
    const [, second] = (await claim(3)) as [ClaimedRun, ClaimedRun];
    await life.holder.start(second);
    await cancel(third);
    const gone = life;
    const { count, ended, janitor } = await begin(gone.queue);
    expect(await count('capstan_runs_settled_total', { result: 'interrupted' })).toBe(0);
    await kill(gone);
    await janitor.settle();
    for (const result of ['requeued', 'interrupted', 'canceled']) {
      expect(await count('capstan_runs_settled_total', { result }), result).toBe(1);
    }
    expect(await ended('interrupted', 'worker_lost')).toBe(1);
    expect(await ended('canceled', 'canceled')).toBe(1);
    expect(await count('capstan_run_duration_seconds_count', { kind: 'noop', state: 'interrupted' })).toBe(1);

    const late = await begin();
    await give(`update workers set lease_until = now() - interval '1 second' where id = $1`, late.worker.id);
    expect(await janitor.reap(() => true)).toEqual([late.worker.id]);
    expect(await count('capstan_workers_reaped_total')).toBe(1);
  });
});

it('F127 of very many queues the first hundred are told by name, those served among them, and kinds of another version by none', async () => {
  const registry = new Registry();
  const metrics = new RunMetrics(registry, ['*', 'served']);
  for (let i = 0; i < 1_000; i += 1) {
    const queue = `q${i}`;
    metrics.countSubmitted({ kind: 'noop', queue });
    metrics.countStarted(queue, 1);
    metrics.countEnded({ state: 'succeeded', code: 'ok', kind: 'noop', queue, ranSeconds: 1 });
  }
  metrics.countSubmitted({ kind: 'from-the-future', queue: 'served' });
  const families = readExposition(await registry.metrics());
  const queues = new Set([...families.values()].flatMap(({ samples }) => samples.map(({ labels }) => labels.queue)));
  queues.delete(undefined);
  // `default` keeps a place in which nothing was.
  expect(queues.size).toBe(100);
  expect(valueIn(families, 'capstan_runs_submitted_total', { kind: OTHER, queue: 'served' })).toBe(1);
  expect(valueIn(families, 'capstan_runs_submitted_total', { kind: 'noop', queue: OTHER })).toBe(902);
});
