/** What a balancer is told by a process that starts and has to wait. */
import { PG_MIGRATE_LOCK_ID } from 'node-pg-migrate';
import { expect, it } from 'vitest';
import { freePort } from '../chaos/port.js';
import { createDatabase } from '../database.js';
import { finishOf, QUICK, spawnCapstan, until } from '../server.js';
import { TcpProxy } from '../tcp-proxy.js';
import { readiness, tookUntil } from './readiness.fixture.js';

const TOKEN = 'a-token-of-the-operator-0123456789';
const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
const READY_WITHIN_MS = 10_000;
const MANY_TRIES = 2_000;

it.each(['serve', 'worker'])(
  'F045 a start of `%s` that has to wait has its port open, is alive, not ready, and goes on when it can',
  async (command) => {
    const db = await createDatabase({ empty: true });
    const proxy = await TcpProxy.start(db.url);
    await proxy.goDown();
    const port = await freePort();
    const env = { DATABASE_URL: proxy.through, CAPSTAN_PORT: String(port), CAPSTAN_BOOTSTRAP_TOKEN: TOKEN };
    const child = await spawnCapstan([command], { ...QUICK, ...env });
    const finished = finishOf(child);
    const server = { url: `http://127.0.0.1:${port}` };
    const ask = (path: string) => fetch(server.url + path, { headers }).catch(() => undefined);
    try {
      await until('it is alive', async () => (await ask('/healthz'))?.status === 200);
      await until('it has looked', async () => (await readiness(server)).checks.database === 'unreachable');
      expect(await readiness(server)).toEqual({
        status: 503,
        checks: { database: 'unreachable', migrations: 'unknown', process: 'starting' },
      });

      const holder = await db.session();
      await holder.query('select pg_advisory_lock($1)', [PG_MIGRATE_LOCK_ID]);
      await proxy.comeUp();
      await until('the database is there', async () => (await readiness(server)).checks.database === 'ok');
      expect(await readiness(server)).toEqual({
        status: 503,
        checks: { database: 'ok', migrations: 'pending', process: 'starting' },
      });
      for (const path of ['/v1/runs', '/', '/openapi.json', '/metrics', '/v1/nothing']) {
        const answer = await ask(path);
        expect(answer?.status, path).toBe(503);
        expect(answer?.headers.get('retry-after'), path).toBe('1');
        expect(await answer?.json(), path).toMatchObject({ code: 'unavailable', requestId: expect.any(String) });
      }
      expect((await ask('/healthz'))?.status).toBe(200);
      await holder.query('select pg_advisory_unlock_all()');
      await tookUntil(server, 200, READY_WITHIN_MS);
      expect(child.exitCode).toBeNull();
      expect((await ask('/metrics'))?.status).toBe(200);
    } finally {
      child.kill('SIGTERM');
      expect((await finished).code).toBe(0);
      await proxy.close();
      await db.drop();
    }
  },
);

it('a start that need not wait turns nobody away who was let in: its port is closed until it is ready', async () => {
  const db = await createDatabase({ empty: true });
  const port = await freePort();
  const env = { DATABASE_URL: db.url, CAPSTAN_PORT: String(port), CAPSTAN_BOOTSTRAP_TOKEN: TOKEN };
  const child = await spawnCapstan(['serve'], { ...QUICK, ...env });
  const finished = finishOf(child);
  const body = JSON.stringify({ kind: 'noop', spec: {}, queue: 'nobody' });
  const answers: number[] = [];
  try {
    for (let tries = 0; answers.length < 5 && tries < MANY_TRIES; tries += 1) {
      const answer = await fetch(`http://127.0.0.1:${port}/v1/runs`, { method: 'POST', headers, body }).catch(
        () => undefined,
      );
      if (answer) answers.push(answer.status);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(answers).toEqual([201, 201, 201, 201, 201]);
  } finally {
    child.kill('SIGINT');
    expect((await finished).code).toBe(0);
    await db.drop();
  }
});
