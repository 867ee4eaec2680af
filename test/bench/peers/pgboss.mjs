/** pg-boss as its documentation tunes it for throughput, and with its notifications for latency. */
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { PgBoss } from 'pg-boss';
import { inParallel, nowMs, timed, until } from '../lanes.mjs';
import { serveOperations, tellHandled } from '../operations.mjs';

const connectionString = process.env.DATABASE_URL;
const POOL = 20;
const DRAIN = { batchSize: 1_000, localConcurrency: 2, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 };
const LATENCY = { batchSize: 1, localConcurrency: 10, pollingIntervalSeconds: 0.5 };
const SETTINGS = { drain: DRAIN, latency: LATENCY };
/** Notifications make every commit of a submit wait for the others: on where latency is measured, off elsewhere. */
const QUEUE = { drain: 'plain', latency: 'notified' };

let boss;
let found;
let stopTelling;
let session;

async function started() {
  if (boss) return boss;
  boss = new PgBoss({ connectionString, max: POOL, useListenNotify: true });
  boss.on('error', (error) => process.stderr.write(`${error.message}\n`));
  await boss.start();
  return boss;
}

serveOperations({
  async prepare() {
    const made = await started();
    await made.createQueue('plain');
    await made.createQueue('notified', { notify: true });
  },

  async submits({ n, callers }) {
    const made = await started();
    return timed(() => inParallel(n, callers, () => made.send('plain', {})));
  },

  async batches({ n, size, callers }) {
    const made = await started();
    const jobs = Array.from({ length: size }, () => ({ data: {} }));
    return timed(() => inParallel(n / size, callers, () => made.insert('plain', jobs)));
  },

  /** One at a time, for a worker elsewhere; the job carries when it was sent. */
  async sends({ n, everyMs }) {
    const made = await started();
    for (let i = 0; i < n; i += 1) {
      await made.send('notified', { sentAtMs: nowMs() });
      await pause(everyMs * (0.5 + Math.random()));
    }
  },

  async work({ settings }) {
    const made = await started();
    found = { handled: 0, firstAtMs: 0, samples: [] };
    stopTelling = tellHandled(() => found.handled);
    await made.work(QUEUE[settings], SETTINGS[settings], async (jobs) => {
      found.firstAtMs ||= nowMs();
      for (const { data } of jobs) if (data.sentAtMs !== undefined) found.samples.push(nowMs() - data.sentAtMs);
      found.handled += jobs.length;
    });
  },

  async stop() {
    stopTelling();
    await Promise.all(['plain', 'notified'].map((name) => boss.offWork(name)));
    return found;
  },

  /** Ended jobs are kept: by the database's clock, from the first claim to the last end. */
  async ended() {
    session ??= await connected();
    const isOver = async () => {
      const { rows } = await session.query(
        `select 1 from pgboss.job where name = 'plain' and state < 'completed' limit 1`,
      );
      return rows.length === 0;
    };
    await until('all jobs are completed', isOver, { everyMs: 2, withinMs: 60_000 });
    const { rows } = await session.query(
      `select extract(epoch from min(started_on))::float8 * 1000 as "firstAtMs",
              extract(epoch from max(completed_on))::float8 * 1000 as "lastAtMs"
       from pgboss.job where name = 'plain'`,
    );
    return rows[0];
  },

  async clear() {
    const made = await started();
    await made.deleteAllJobs('plain');
  },
});

async function connected() {
  const client = new pg.Client({ connectionString });
  await client.connect();
  return client;
}
