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
