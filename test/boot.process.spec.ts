/** What a start does when it is told to stop, and when there are two ways to the database. */
import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from './database.js';
import { dataFolder, finishOf, QUICK, spawnCapstan, startServer, supervisorOf, until } from './server.js';

const TOKEN = 'a-token-of-the-operator-0123456789';

let db: TestDatabase;
beforeAll(async () => {
  db = await createDatabase({ empty: true });
});
afterAll(() => db.drop());

it('a stop signal ends a start that still waits for its database', async () => {
  let connections = 0;
  const silent = createServer(() => {
    connections += 1;
  });
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const address = silent.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const child = await spawnCapstan(['serve'], { ...QUICK, DATABASE_URL: `postgres://u:p@127.0.0.1:${port}/d` });
  const finished = finishOf(child);
  await until('it tries to connect', () => connections > 0);
  child.kill('SIGTERM');
  expect(await finished).toMatchObject({ code: 0, signal: null });
  silent.close();
});

it('a port that is taken is found before anything is made that would have to be stopped again', async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const address = taken.address();
  const port = String(typeof address === 'object' ? address?.port : '');
  const folder = await dataFolder();
  const child = await spawnCapstan(['serve'], { ...QUICK, CAPSTAN_DATA_DIR: folder.path, CAPSTAN_PORT: port });
  expect(await finishOf(child)).toMatchObject({ code: 1, stderr: expect.stringContaining(`port ${port} is in use`) });
  expect(existsSync(folder.path)).toBe(false);
  await folder.remove();
  taken.close();
});

it('S4-63 statements go through DATABASE_URL, leases past it through DATABASE_DIRECT_URL', async () => {
  const target = new URL(db.url);
  const through = new Set<Socket>();
  const pooler = createServer((client) => {
    const server = connect(Number(target.port), target.hostname);
    for (const socket of [client, server]) {
      through.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => [client, server].forEach((each) => void each.destroy()));
    }
    client.pipe(server).pipe(client);
  });
  await new Promise<void>((resolve) => pooler.listen(0, '127.0.0.1', resolve));
  const address = pooler.address();
  const shared = new URL(db.url);
  shared.port = String(typeof address === 'object' ? address?.port : '');
  const server = await startServer({
    DATABASE_URL: shared.href,
    DATABASE_DIRECT_URL: db.url,
    CAPSTAN_BOOTSTRAP_TOKEN: TOKEN,
  });
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ kind: 'command', spec: { argv: ['true'] } });
  const made = await fetch(`${server.url}/v1/runs`, { method: 'POST', headers, body });
  const { id } = (await made.json()) as { id: string };
  await until('the run succeeds', async () => {
    const run = (await (await fetch(`${server.url}/v1/runs/${id}`, { headers })).json()) as { state: string };
    return run.state === 'succeeded';
  });

  pooler.close();
  for (const socket of through) socket.destroy();
  await until('it is not ready', async () => (await fetch(`${server.url}/readyz`)).status === 503);
  const session = await db.session();
  const lease = async () => (await session.query('select lease_until::text as until from workers')).rows[0]?.until;
  const before = await lease();
  await until('the lease is renewed all the same', async () => (await lease()) !== before);
  server.child.kill('SIGKILL');
  await server.finished;
});

it('a supervisor that cannot be started again is tried on until it can, and the replica works again', async () => {
  const folder = await dataFolder();
  await mkdir(folder.path);
  const server = await startServer({ DATABASE_URL: db.url, CAPSTAN_BOOTSTRAP_TOKEN: TOKEN, TMPDIR: folder.path });
  process.kill(await supervisorOf(server.child.pid ?? 0), 'SIGSTOP');
  await rm(folder.path, { recursive: true });
  process.kill(await supervisorOf(server.child.pid ?? 0), 'SIGKILL');
  await until('it fails to begin another life', () => server.log().includes('supervisor_not_started'));
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200);

  await mkdir(folder.path);
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ kind: 'command', spec: { argv: ['true'] } });
  const made = await fetch(`${server.url}/v1/runs`, { method: 'POST', headers, body });
  const { id } = (await made.json()) as { id: string };
  await until('the run succeeds', async () => {
    const run = (await (await fetch(`${server.url}/v1/runs/${id}`, { headers })).json()) as { state: string };
    return run.state === 'succeeded';
  });
  server.child.kill('SIGTERM');
  expect(await server.finished).toMatchObject({ code: 0 });
  await folder.remove();
});
