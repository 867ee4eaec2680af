/** The sessions of a whole process: how many, what for, and what the server bounds by itself. */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { POOL_SIZES } from '../../../src/platform/pools.js';
import { createDatabase, type TestDatabase } from '../../database.js';
import { type ServerProcess, startServer, until } from '../../server.js';

const TOKEN = 'a-token-of-the-operator-0123456789';
const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
const POOLED = Object.values(POOL_SIZES).reduce((sum, size) => sum + size, 0);
/** One renews the lease, one listens. */
const OF_THEIR_OWN = ['keeper', 'listen'];

let db: TestDatabase;
let server: ServerProcess;
beforeAll(async () => {
  db = await createDatabase();
  server = await startServer({ DATABASE_URL: db.url, CAPSTAN_BOOTSTRAP_TOKEN: TOKEN, CAPSTAN_SLOTS: '20' });
});
afterAll(async () => {
  server.child.kill('SIGKILL');
  await server.finished;
  await db.drop();
});

const call = (method: string, path: string, body?: unknown) =>
  fetch(server.url + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });

it('F041 each session says what it is for, and under load there are never more than the README says', async () => {
  const readme = await readFile(new URL('../../../README.md', import.meta.url), 'utf8');
  expect(readme).toContain(
    `opens at most ${POOLED + OF_THEIR_OWN.length} connections: ${POOLED} through \`DATABASE_URL\``,
  );

  const watcher = await db.session();
  const counts = new Map<string, number>();
  let most = 0;
  const look = async () => {
    const { rows } = await watcher.query<{ name: string; n: number }>(
      `select application_name as name, count(*)::integer as n from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() group by 1`,
    );
    for (const { name, n } of rows) counts.set(name, Math.max(n, counts.get(name) ?? 0));
    most = Math.max(
      most,
      rows.reduce((sum, { n }) => sum + n, 0),
    );
  };
  const argv = ['sh', '-c', 'for i in $(seq 300); do echo line $i; done'];
  const runs = Array.from({ length: 40 }, async () => {
    const made = await call('POST', '/v1/runs', { kind: 'command', spec: { argv } });
    expect(made.status).toBe(201);
    const { id } = (await made.json()) as { id: string };
    await until('it ends', async () => {
      await call('GET', `/v1/runs/${id}/output`);
      const run = (await (await call('GET', `/v1/runs/${id}`)).json()) as { state: string };
      return run.state === 'succeeded';
    });
  });
  const done = Promise.all(runs).then(() => true);
  while (!(await Promise.race([done, look().then(() => false)]))) await call('GET', '/v1/runs');

  for (const [name, size] of Object.entries(POOL_SIZES)) {
    expect(counts.get(`capstan ${name}`), name).toBeGreaterThan(0);
    expect(counts.get(`capstan ${name}`), name).toBeLessThanOrEqual(size);
  }
  for (const name of OF_THEIR_OWN) expect(counts.get(`capstan ${name}`), name).toBe(1);
  expect([...counts.keys()].filter((name) => !name.startsWith('capstan '))).toEqual([]);
  expect(most).toBeLessThanOrEqual(POOLED + OF_THEIR_OWN.length);
});

it('every pool’s sessions are bounded by the server itself', async () => {
  const pools = [db.pool(1), db.bytePool(1)] as const;
  const text = `select name, setting from pg_settings where name in
    ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout') order by name`;
  const rows = [
    await pools[0].run((sql) => sql<{ name: string; setting: string }[]>`${sql.unsafe(text)}`),
    await pools[1].run<{ name: string; setting: string }>({ name: 'bounds', text, values: [] }),
  ];
  for (const bounds of rows) {
    expect(bounds.map(({ name, setting }) => `${name} ${setting}`)).toEqual([
      'idle_in_transaction_session_timeout 3000',
      'lock_timeout 2000',
      'statement_timeout 10000',
    ]);
  }
});
