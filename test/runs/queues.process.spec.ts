/** A queue that is paused and resumed at one replica, and a worker of it that would look again a minute later. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from '../database.js';
import { type ServerProcess, startServer, until } from '../server.js';

const TOKEN = 'a-token-of-the-operator-0123456789';

let db: TestDatabase;
/** Executes nothing. */
let front: ServerProcess;
/** Polls once a minute: what it starts at once, it was told of. */
let drowsy: ServerProcess;

beforeAll(async () => {
  db = await createDatabase({ empty: true });
  const start = (name: string, env: Readonly<Record<string, string>>) =>
    startServer({ DATABASE_URL: db.url, CAPSTAN_BOOTSTRAP_TOKEN: TOKEN, CAPSTAN_NAME: name, ...env });
  [front, drowsy] = await Promise.all([
    start('front', { CAPSTAN_SLOTS: '0' }),
    start('drowsy', { CAPSTAN_POLL_INTERVAL: '60s', CAPSTAN_QUEUES: 'held,free' }),
  ]);
});

afterAll(async () => {
  const servers = [front, drowsy];
  for (const { child } of servers) child.kill('SIGTERM');
  await Promise.all(servers.map(({ finished }) => finished));
  await db.drop();
});

async function call(server: ServerProcess, method: string, path: string, body?: unknown) {
  const answer = await fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  expect(answer.ok, `${method} ${path}: ${answer.status}`).toBe(true);
  return answer.json() as Promise<{ id: string; state: string; createdAt: string; startedAt: string }>;
}

const submit = async (queue: string) => (await call(front, 'POST', '/v1/runs', { kind: 'noop', queue })).id;
const show = (id: string) => call(drowsy, 'GET', `/v1/runs/${id}`);
const ended = (id: string) => until(`${id} ends`, async () => (await show(id)).state === 'succeeded');

it('runs of a paused queue wait while others run, and start at once when it is resumed elsewhere', async () => {
  await call(front, 'PUT', '/v1/queues/held', { paused: true, reason: 'to see' });
  const held = await submit('held');
  await ended(await submit('free'));
  expect(await show(held)).toMatchObject({ state: 'pending' });
  await call(front, 'PUT', '/v1/queues/held', { paused: false });
  await ended(held);
});
