/** Callers who go away before they were answered leave nothing behind that works for them. */
import { Agent, get } from 'node:http';
import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from '../database.js';
import { dataFolder, type ServerProcess, startServer, until } from '../server.js';

const READ_CONNECTIONS = 6;
const TOKEN = 'cap_abandoned-lists-of-a-test';

/** Sends a request, and closes its connection once it is on its way. */
function abandon(url: string, token: string, agent: Agent): Promise<void> {
  return new Promise((resolve) => {
    const request = get(url, { agent, headers: { authorization: `Bearer ${token}` } });
    request.on('error', () => undefined);
    request.on('close', resolve);
    request.on('finish', () => setImmediate(() => request.destroy()));
  });
}

let db: TestDatabase;
let server: ServerProcess;
let watcher: pg.Client;
let removeData: () => Promise<void>;
beforeAll(async () => {
  db = await createDatabase();
  const data = await dataFolder();
  removeData = data.remove;
  server = await startServer({
    DATABASE_URL: db.url,
    CAPSTAN_BOOTSTRAP_TOKEN: TOKEN,
    CAPSTAN_DATA_DIR: data.path,
    CAPSTAN_SLOTS: '0',
  });
  watcher = await db.session();
});
afterAll(async () => {
  server.child.kill('SIGKILL');
  await server.finished;
  await db.drop();
  await removeData();
});

/** Statements of lists that the database works on, or that wait in it. */
async function reading(): Promise<number> {
  const { rows } = await watcher.query(
    `select count(*)::integer as n from pg_stat_activity
     where datname = current_database() and application_name = 'capstan read' and state = 'active'`,
  );
  return rows[0].n;
}

/** Nothing reads the table of runs until the returned function is called. */
async function lockRuns(): Promise<() => Promise<unknown>> {
  const locker = await db.session();
  await locker.query('begin');
  await locker.query('lock table runs in access exclusive mode');
  return () => locker.query('rollback');
}

async function abandonMany(): Promise<void> {
  const agent = new Agent({ keepAlive: false });
  await Promise.all(Array.from({ length: 200 }, () => abandon(`${server.url}/v1/runs?q=nobody`, TOKEN, agent)));
  await until('some of them wait for the table', async () => (await reading()) > 0);
  expect(await reading()).toBeLessThanOrEqual(READ_CONNECTIONS);
}

it('F142 two hundred lists whose callers left keep no connection, and hold up no list that is waited for', async () => {
  const unlock = await lockRuns();
  await abandonMany();
  await unlock();
  const answer = await fetch(`${server.url}/v1/runs`, { headers: { authorization: `Bearer ${TOKEN}` } });
  expect([answer.status, await answer.json()]).toEqual([200, { items: [], next: null }]);
  await until('nothing reads any more', async () => (await reading()) === 0);
});

it('F142 and where the database can not carry them out it is rid of them all the same, by bounds of its own', async () => {
  const unlock = await lockRuns();
  await abandonMany();
  let quiet = 0;
  await until('nothing reads for two seconds', async () => {
    quiet = (await reading()) === 0 ? quiet + 1 : 0;
    return quiet === 40;
  });
  await unlock();
});
