/** graphile-worker as its performance page tunes it. */
import { setTimeout as pause } from 'node:timers/promises';
import { Logger, makeWorkerUtils, run, runMigrations } from 'graphile-worker';
import pg from 'pg';
import { inParallel, nowMs, timed, until } from '../lanes.mjs';
import { serveOperations, tellHandled } from '../operations.mjs';

const connectionString = process.env.DATABASE_URL;
const POOL = 20;
const logger = new Logger(() => (level, message) => {
  if (level === 'error') process.stderr.write(`${message}\n`);
});
const DRAIN = {
  concurrentJobs: 100,
  maxPoolSize: POOL,
  localQueue: { size: 1_000, refetchDelay: { durationMs: 10 } },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
};
/** A local queue waits before it asks again: without one, a single job starts sooner. */
const LATENCY = { concurrentJobs: 10, maxPoolSize: POOL };
const SETTINGS = { drain: DRAIN, latency: LATENCY };

let utils;
let work;
let session;

async function enqueuer() {
  utils ??= await makeWorkerUtils({ connectionString, maxPoolSize: POOL, logger });
  return utils;
}

serveOperations({
  prepare: () => runMigrations({ connectionString, logger }),

  async submits({ n, callers }) {
    const { addJob } = await enqueuer();
    return timed(() => inParallel(n, callers, () => addJob('noop', {})));
  },

  async batches({ n, size, callers }) {
    const { addJobs } = await enqueuer();
    const jobs = Array.from({ length: size }, () => ({ identifier: 'noop', payload: {} }));
    return timed(() => inParallel(n / size, callers, () => addJobs(jobs)));
  },

  /** One at a time, for a worker elsewhere; the job carries when it was sent. */
  async sends({ n, everyMs }) {
    const { addJob } = await enqueuer();
    for (let i = 0; i < n; i += 1) {
      await addJob('noop', { sentAtMs: nowMs() });
      await pause(everyMs * (0.5 + Math.random()));
    }
  },

  async work({ settings }) {
    const found = { handled: 0, firstAtMs: 0, samples: [] };
    const noop = async ({ sentAtMs }) => {
      if (sentAtMs !== undefined) found.samples.push(nowMs() - sentAtMs);
      found.handled += 1;
    };
    const worker = { connectionString, ...SETTINGS[settings] };
    const runner = await run({ preset: { worker }, logger, noHandleSignals: true, taskList: { noop }, crontab: '' });
    runner.events.on('localQueue:getJobs:complete', ({ jobs }) => {
      if (jobs.length > 0) found.firstAtMs ||= nowMs();
    });
    work = { runner, found, stopTelling: tellHandled(() => found.handled) };
  },

  async stop() {
    const { runner, found, stopTelling } = work;
    stopTelling();
    await runner.stop();
    return found;
  },

  /** Ended jobs are deleted: the drain is over when none is left. */
  async ended() {
    session ??= await connected();
    const isOver = async () => {
      const { rows } = await session.query('select 1 from graphile_worker._private_jobs limit 1');
      return rows.length === 0;
    };
    await until('all jobs are completed', isOver, { everyMs: 2, withinMs: 60_000 });
    return { lastAtMs: nowMs() };
  },

  async clear() {
    session ??= await connected();
    await session.query('truncate graphile_worker._private_jobs');
  },
});

async function connected() {
  const client = new pg.Client({ connectionString });
  await client.connect();
  return client;
}
