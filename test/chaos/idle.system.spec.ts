/**
 * Five replicas that have nothing to do: what they ask of the database is counted by the server, what they take of the
 * processor by the kernel. Then runs come, each at one replica for the queue of another, which has to be told.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ServerProcess, startServer, supervisorOf, until } from '../server.js';
import { ChaosDatabase } from './database.fixture.js';
import { scaled } from './scale.js';

const REPLICAS = 5;
/** Until everything was answered quickly for ten seconds, and a little more. */
const SETTLED_AFTER_MS = 20_000;
const IDLE_MS = scaled(45_000, 600_000);
const TOKEN = 'a-token-of-the-operator-0123456789';
const AUTHORIZED = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
/** What /proc counts in. */
const MS_PER_TICK = 10;

let db: ChaosDatabase;
let servers: ServerProcess[] = [];
beforeAll(async () => {
  db = await ChaosDatabase.start(['shared_preload_libraries=pg_stat_statements']);
  servers = await Promise.all(
    Array.from({ length: REPLICAS }, (_, i) =>
      startServer({
        DATABASE_URL: db.directUrl,
        CAPSTAN_BOOTSTRAP_TOKEN: TOKEN,
        CAPSTAN_NAME: `r${i}`,
        CAPSTAN_QUEUES: `q${i}`,
        // As they are by default: other tests hurry.
        CAPSTAN_LEASE_TTL: '30s',
        CAPSTAN_LEASE_RENEW: '5s',
      }),
    ),
  );
  await db.query('create extension pg_stat_statements');
});
afterAll(async () => {
  for (const { child } of servers) child.kill('SIGKILL');
  await Promise.all(servers.map(({ finished }) => finished));
  await db?.close();
});

/** Statements of all sessions of all replicas, since the counts were reset. */
async function statements(): Promise<{ readonly total: number; readonly most: string }> {
  const rows = await db.query<{ calls: number; query: string }>(
    `select s.calls::integer as calls, regexp_replace(s.query, '\\s+', ' ', 'g') as query
     from pg_stat_statements s join pg_roles r on r.oid = s.userid
     where r.rolname = $1 order by calls desc`,
    [new URL(db.directUrl).username],
  );
  const most = rows.map(({ calls, query }) => `${calls} × ${query.slice(0, 100)}`).join('\n');
  return { total: rows.reduce((sum, { calls }) => sum + calls, 0), most };
}

/** Processor time of a process and of its supervisor, in milliseconds. */
async function cpuMs({ child }: ServerProcess): Promise<number> {
  const pid = child.pid ?? 0;
  return [pid, await supervisorOf(pid)]
    .map((id) => readFileSync(`/proc/${id}/stat`, 'utf8'))
    .map((stat) => stat.slice(stat.lastIndexOf(')') + 2).split(' '))
    .reduce((sum, fields) => sum + (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK, 0);
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

it('F016 each replica sends at most one statement a second with nothing to do, and takes hardly any of the processor', async () => {
  await pause(SETTLED_AFTER_MS);
  const before = await Promise.all(servers.map(cpuMs));
  await db.query('select pg_stat_statements_reset()');
  const begunAtMs = performance.now();
  await pause(IDLE_MS);
  const { total, most } = await statements();
  const after = await Promise.all(servers.map(cpuMs));
  const tookMs = performance.now() - begunAtMs;
  expect((total / REPLICAS / tookMs) * 60_000, `a minute: ${most}`).toBeLessThanOrEqual(60);
  expect(total, 'they were counted').toBeGreaterThan((REPLICAS * tookMs) / 1_870);
  const shares = after.map((ms, i) => (ms - (before[i] ?? 0)) / tookMs).sort((a, b) => a - b);
  expect(shares[Math.floor(REPLICAS / 2)], `of a core: ${shares.join(', ')}`).toBeLessThan(0.01);
}, 700_000);

it('F016 and starts at once what is submitted elsewhere, for it is told', async () => {
  const waits: number[] = [];
  for (let i = 0; i < 40; i += 1) {
    const [at, queue] = [servers[i % REPLICAS], `q${(i + 1 + (i % (REPLICAS - 1))) % REPLICAS}`];
    const answer = await fetch(`${at?.url}/v1/runs`, {
      method: 'POST',
      headers: AUTHORIZED,
      body: JSON.stringify({ kind: 'command', queue, spec: { argv: ['true'] } }),
    });
    const { id } = (await answer.json()) as { id: string };
    const run = await until(`${id} ends`, async () => {
      const found = await fetch(`${at?.url}/v1/runs/${id}`, { headers: AUTHORIZED });
      const run = (await found.json()) as { createdAt: string; startedAt: string; endedAt: string | null };
      return run.endedAt ? run : undefined;
    });
    waits.push(Date.parse(run.startedAt) - Date.parse(run.createdAt));
  }
  waits.sort((a, b) => a - b);
  // Found by polling alone, a run waits up to 1.87 s: one in two for longer than 0.9 s.
  expect(waits[37], `ms: ${waits.join(' ')}`).toBeLessThan(1_000);
});
