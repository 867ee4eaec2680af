/** Callers who go away before they were answered leave nothing behind that works for them. */
import { Agent, get } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import { createDatabase } from '../database.js';
import { dataFolder, startServer, until } from '../server.js';

const READ_CONNECTIONS = 6;

/** Sends a request, and closes its connection once it is on its way. */
function abandon(url: string, token: string, agent: Agent): Promise<void> {
  return new Promise((resolve) => {
    const request = get(url, { agent, headers: { authorization: `Bearer ${token}` } });
    request.on('error', () => undefined);
    request.on('close', resolve);
    request.on('finish', () => setImmediate(() => request.destroy()));
  });
}

it('F142 two hundred lists whose callers left keep no connection, and hold up no list that is waited for', async () => {
  const db = await createDatabase();
  onTestFinished(() => db.drop());
  const data = await dataFolder();
  onTestFinished(data.remove);
  const token = 'cap_abandoned-lists-of-a-test';
  const server = await startServer({
    DATABASE_URL: db.url,
    CAPSTAN_BOOTSTRAP_TOKEN: token,
    CAPSTAN_DATA_DIR: data.path,
    CAPSTAN_SLOTS: '0',
  });
  onTestFinished(() => void server.child.kill('SIGKILL'));
  const [watcher, locker] = [await db.session(), await db.session()];
  const reading = async () => {
    const { rows } = await watcher.query(
      `select count(*)::integer as n from pg_stat_activity
       where datname = current_database() and application_name = 'capstan read' and state = 'active'`,
    );
    return rows[0].n;
  };
  await locker.query('begin');
  await locker.query('lock table runs in access exclusive mode');
  const agent = new Agent({ keepAlive: false });
  await Promise.all(Array.from({ length: 200 }, () => abandon(`${server.url}/v1/runs?q=nobody`, token, agent)));
  await until('some of them wait for the table', async () => (await reading()) > 0);
  expect(await reading()).toBeLessThanOrEqual(READ_CONNECTIONS);
  await locker.query('rollback');
  const answer = await fetch(`${server.url}/v1/runs`, { headers: { authorization: `Bearer ${token}` } });
  expect([answer.status, await answer.json()]).toEqual([200, { items: [], next: null }]);
  await until('nothing reads any more', async () => (await reading()) === 0);
});
