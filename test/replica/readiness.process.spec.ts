/** What a balancer is told while the database behind a real replica comes, goes and is slow. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from '../database.js';
import { isAlive, type ServerProcess, startServer, until } from '../server.js';
import { TcpProxy } from '../tcp-proxy.js';
import { readiness, tookUntil } from './readiness.fixture.js';

const TOKEN = 'a-token-of-the-operator-0123456789';
const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
const NOT_READY_WITHIN_MS = 3_000;
const READY_WITHIN_MS = 10_000;

describe('a replica in service', () => {
  let db: TestDatabase;
  let proxy: TcpProxy;
  let server: ServerProcess;
  beforeAll(async () => {
    db = await createDatabase();
    proxy = await TcpProxy.start(db.url);
    server = await startServer({ DATABASE_URL: proxy.through, CAPSTAN_BOOTSTRAP_TOKEN: TOKEN });
  });
  afterAll(async () => {
    await proxy.close();
    server.child.kill('SIGKILL');
    await server.finished;
    await db.drop();
  });

  const list = async () => (await fetch(`${server.url}/v1/runs`, { headers })).status;
  const works = () => until('the API works', async () => (await list()) === 200);

  it.each<[string, () => Promise<void> | void, () => Promise<void> | void, string]>([
    ['refuses and resets', () => proxy.goDown(), () => proxy.comeUp(), 'unreachable'],
    ['is cut off without a word', () => proxy.goSilent(), () => proxy.speak(), 'no answer'],
  ])('S4-66 F042 is not ready within 3 s when its database %s, and ready again', async (_, cut, heal, found) => {
    await tookUntil(server, 200, READY_WITHIN_MS);
    await cut();
    const { checks } = await tookUntil(server, 503, NOT_READY_WITHIN_MS);
    expect(checks).toMatchObject({ database: found, process: 'ok' });
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    expect(await list()).toBe(503);
    await heal();
    await tookUntil(server, 200, READY_WITHIN_MS);
    await works();
  });

  it.each<[string, () => Promise<void> | void, () => Promise<void> | void]>([
    ['refuses and resets', () => proxy.goDown(), () => proxy.comeUp()],
    ['is cut off without a word', () => proxy.goSilent(), () => proxy.speak()],
  ])(
    'S4-66 F016 looks no more while pulses say enough, and is not ready within 3 s all the same when its database %s',
    async (_, cut, heal) => {
      await tookUntil(server, 200, READY_WITHIN_MS);
      const session = await db.session();
      await until('no look was made for 6 s', async () => {
        const { rowCount } = await session.query(
          `select from pg_stat_activity where datname = current_database() and application_name = 'capstan probe'
           and state = 'idle' and state_change < clock_timestamp() - interval '6 s'`,
        );
        return rowCount === 1;
      });
      await cut();
      const { checks } = await tookUntil(server, 503, NOT_READY_WITHIN_MS);
      expect(checks).toMatchObject({ process: 'ok' });
      await heal();
      await tookUntil(server, 200, READY_WITHIN_MS);
      await works();
    },
  );

  it('is not ready while its database is read-only, and finds the one that takes writes', async () => {
    const session = await db.session();
    const { rows } = await session.query('select current_database() as name');
    await session.query(`alter database ${rows[0].name} set default_transaction_read_only = on`);
    const submit = async () => {
      const body = JSON.stringify({ kind: 'noop', spec: {}, queue: 'nobody' });
      return (await fetch(`${server.url}/v1/runs`, { method: 'POST', headers, body })).status;
    };
    // What is connected keeps its own setting: only new connections see that of the database.
    await session.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'capstan probe' and datname = current_database()`,
    );
    const { checks } = await tookUntil(server, 503, NOT_READY_WITHIN_MS);
    expect(checks).toMatchObject({ database: 'read-only', migrations: 'ok' });
    expect(await submit(), 'every pool has found the server that takes no writes').toBe(503);
    await session.query('set transaction_read_only = off');
    await session.query(`alter database ${rows[0].name} reset default_transaction_read_only`);
    // As after a switch of servers that cut no connection: only whoever connects anew finds the other one.
    await tookUntil(server, 200, READY_WITHIN_MS);
    await until('submits work', async () => (await submit()) === 201);
  });

  it('S0-82 F039 every connection ended by the administrator is one warning, and the service goes on', async () => {
    await works();
    await tookUntil(server, 200, READY_WITHIN_MS);
    await Promise.all(Array.from({ length: 12 }, list));
    const before = server.log().length;
    const session = await db.session();
    const ended = await session.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'capstan %' and datname = current_database()`,
    );
    expect(ended.rowCount).toBeGreaterThan(6);
    await works();
    const lines = server
      .log()
      .slice(before)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { code: string });
    expect(lines.filter(({ code }) => code === 'bug')).toEqual([]);
    expect(lines.filter(({ code }) => code === 'db_connection_lost').length).toBeLessThanOrEqual(1);
    expect(lines.length, JSON.stringify(lines)).toBeLessThan(12);
    expect(server.child.exitCode).toBeNull();
  });
});

it('F043 a database that is slow but works takes no replica out of service', async () => {
  const db = await createDatabase();
  const server = await startServer({ DATABASE_URL: db.url, CAPSTAN_BOOTSTRAP_TOKEN: TOKEN });
  const session = await db.session();
  const calls: Promise<number>[] = [];
  const said: number[] = [];
  try {
    for (let round = 0; round < 3; round += 1) {
      const { rows } = await session.query<{ pid: number }>(
        `select pid from pg_stat_activity where datname = current_database() and application_name like 'capstan %'`,
      );
      // As if there were no time for any of them.
      for (const { pid } of rows) process.kill(pid, 'SIGSTOP');
      const goOnAt = performance.now() + 1_700;
      while (performance.now() < goOnAt) {
        calls.push(fetch(`${server.url}/v1/runs`, { headers }).then(({ status }) => status));
        said.push((await readiness(server)).status);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      for (const { pid } of rows) if (isAlive(pid)) process.kill(pid, 'SIGCONT');
      await Promise.all(calls);
    }
    expect(new Set(await Promise.all(calls)), 'every call succeeds').toEqual(new Set([200]));
    expect(said.filter((status) => status !== 200).length / said.length).toBeLessThan(0.1);
  } finally {
    server.child.kill('SIGKILL');
    await server.finished;
    await db.drop();
  }
});
