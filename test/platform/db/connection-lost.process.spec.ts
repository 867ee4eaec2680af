/** What a process says of connections that others ended. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from '../../database.js';
import { type ServerProcess, startServer, until } from '../../server.js';

const TOKEN = 'a-token-of-the-operator-0123456789';
const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };

let db: TestDatabase;
let server: ServerProcess;
beforeAll(async () => {
  db = await createDatabase();
  server = await startServer({ DATABASE_URL: db.url, CAPSTAN_BOOTSTRAP_TOKEN: TOKEN });
});
afterAll(async () => {
  server.child.kill('SIGKILL');
  await server.finished;
  await db.drop();
});

it('S0-82 connections that were ended are one warning, however many and again, and the service goes on', async () => {
  const session = await db.session();
  const endAll = async () => {
    const theirs = `from pg_stat_activity where datname = current_database() and application_name like 'capstan %'`;
    await until('several are open', async () => ((await session.query(`select ${theirs}`)).rowCount ?? 0) > 2);
    await session.query(`select pg_terminate_backend(pid) ${theirs}`);
  };
  const body = JSON.stringify({ kind: 'noop', spec: {}, queue: 'nobody' });
  const submits = async () => {
    const answer = await fetch(`${server.url}/v1/runs`, { method: 'POST', headers, body });
    return answer.status === 201;
  };
  const warnings = () =>
    server
      .log()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { code: string; level: string; pool?: string })
      .filter(({ code }) => code === 'db_connection_lost');
  await until('it works', submits);
  await endAll();
  await until('it is told', () => warnings().length > 0);
  await until('it works again', submits);
  await endAll();
  await until('it works once more', submits);
  expect(warnings()).toEqual([expect.objectContaining({ level: 'warn', pool: expect.any(String) })]);
  expect(server.child.exitCode).toBeNull();
});
