/** Several real replicas and a worker on one database: no state anywhere else, nothing run twice, nothing lost. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from '../database.js';
import { dataFolder, isAlive, type ServerProcess, startServer, supervisorOf, until } from '../server.js';

const TOKEN = 'a-token-of-the-operator-0123456789';

interface RunJson {
  readonly id: string;
  readonly state: string;
  readonly fence: number;
  readonly worker: { readonly id: string; readonly name: string } | null;
  readonly end: { readonly code: string; readonly by: string; readonly at: string } | null;
}

interface WorkerJson {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly leaseUntil: string;
}

let db: TestDatabase;
let folder: Awaited<ReturnType<typeof dataFolder>>;
let replicas: ServerProcess[];
const env = (name: string) => ({ DATABASE_URL: db.url, CAPSTAN_BOOTSTRAP_TOKEN: TOKEN, CAPSTAN_NAME: name });

async function call(server: ServerProcess, method: string, path: string, body?: unknown, key?: string) {
  const answer = await fetch(server.url + path, {
    method,
    headers: {
      authorization: `Bearer ${TOKEN}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as never };
}

const at = (i: number): ServerProcess => {
  const server = replicas[i];
  if (!server) throw new Error(`there is no replica ${i}`);
  return server;
};

async function submit(server: ServerProcess, argv: string[], queue = 'default'): Promise<RunJson> {
  const { status, body } = await call(server, 'POST', '/v1/runs', { kind: 'command', queue, spec: { argv } });
  expect(status).toBe(201);
  return body;
}

const show = async (server: ServerProcess, id: string): Promise<RunJson> =>
  (await call(server, 'GET', `/v1/runs/${id}`)).body;

const ended = (server: ServerProcess, id: string, withinMs = 20_000) =>
  until(
    `${id} ends`,
    async () => {
      const run = await show(server, id);
      return run.end && { ...run, end: run.end };
    },
    withinMs,
  );

beforeAll(async () => {
  db = await createDatabase({ empty: true });
  folder = await dataFolder();
  // All at once, on a database without a schema.
  replicas = await Promise.all(['r1', 'r2', 'r3'].map((name) => startServer(env(name))));
});

afterAll(async () => {
  for (const { child } of replicas) child.kill('SIGTERM');
  await Promise.all(replicas.map(({ finished }) => finished));
  await folder.remove();
  await db.drop();
});

it('F124 S0-08 S4-101 three replicas that start at once on an empty database all become ready', async () => {
  for (const { url } of replicas) expect((await fetch(`${url}/readyz`)).status).toBe(200);
  const session = await db.session();
  const { rows } = await session.query('select count(*)::int as n from pg_index where not indisvalid');
  expect(rows).toEqual([{ n: 0 }]);
  expect((await session.query('select count(*)::int as n from tokens')).rows).toEqual([{ n: 1 }]);
});

it('S3-08 a run that one replica took can be seen, read and canceled at any other', async () => {
  const run = await submit(at(0), ['sh', '-c', 'echo here; sleep 300']);
  await until('it runs', async () => (await show(at(1), run.id)).state === 'running');
  await until('its output is seen elsewhere', async () => {
    const answer = await fetch(`${at(2).url}/v1/runs/${run.id}/output`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    return (await answer.text()) === 'here\n';
  });
  expect((await call(at(1), 'POST', `/v1/runs/${run.id}/cancel`)).status).toBe(202);
  expect(await ended(at(2), run.id, 8_000)).toMatchObject({ state: 'canceled' });
});

it('S4-110 F093 one key sent to all replicas at once makes one run', async () => {
  const body = { kind: 'noop', spec: {} };
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, i) => call(at(i % 3), 'POST', '/v1/runs', body, 'the same key')),
  );
  expect(new Set(answers.map(({ body }) => (body as RunJson).id)).size).toBe(1);
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(59);
});

it('S4-05 S4-108 runs spread over the replicas are executed once each', async () => {
  const effects = join(folder.path, '..', 'effects');
  await writeFile(effects, '');
  const runs = await Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      submit(at(i % 3), ['sh', '-c', `echo $CAPSTAN_RUN_ID >> ${effects}; sleep 0.2`]),
    ),
  );
  for (const run of runs) expect(await ended(at(0), run.id)).toMatchObject({ state: 'succeeded', fence: 1 });
  const lines = (await readFile(effects, 'utf8')).trim().split('\n');
  expect(lines.sort()).toEqual(runs.map(({ id }) => id).sort());
});

it('S4-04 only a worker that serves a queue takes its runs', async () => {
  const gpu = await submit(at(0), ['true'], 'gpu');
  await ended(at(0), (await submit(at(0), ['true'])).id);
  expect(await show(at(0), gpu.id)).toMatchObject({ state: 'pending' });
  const other = await startServer({ ...env('gpu1'), CAPSTAN_QUEUES: 'gpu' });
  replicas.push(other);
  expect(await ended(at(0), gpu.id)).toMatchObject({ state: 'succeeded', worker: { name: 'gpu1' } });
  const ordinary = await Promise.all(Array.from({ length: 8 }, () => submit(other, ['true'])));
  for (const run of ordinary) expect((await ended(other, run.id)).worker?.name).not.toBe('gpu1');
});

it('S4-26 a supervisor that is killed ends its runs as lost, stops their tools, and the replica works on', async () => {
  const run = await submit(at(0), ['sh', '-c', 'echo $$; exec sleep 300'], 'gpu');
  const gpu = at(3);
  const tool = await until('the tool says its process', async () => {
    const answer = await fetch(`${gpu.url}/v1/runs/${run.id}/output`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    return Number(await answer.text()) || undefined;
  });
  const supervisor = await supervisorOf(gpu.child.pid ?? 0);
  process.kill(supervisor, 'SIGKILL');
  const lost = await ended(gpu, run.id);
  expect(lost).toMatchObject({ state: 'interrupted', end: { code: 'supervisor_lost' } });
  expect(isAlive(tool)).toBe(false);
  expect(await ended(gpu, (await submit(gpu, ['true'], 'gpu')).id)).toMatchObject({ state: 'succeeded' });
});

it('S4-11 S4-12 a killed replica is settled by another after its lease, and not before', async () => {
  const gpu = at(3);
  const run = await submit(at(0), ['sh', '-c', 'sleep 300'], 'gpu');
  await until('it runs', async () => (await show(at(0), run.id)).state === 'running');
  const worker = (await show(at(0), run.id)).worker;
  gpu.child.kill('SIGKILL');
  await gpu.finished;
  replicas.splice(3, 1);
  const { items } = (await call(at(0), 'GET', '/v1/workers')).body as { items: WorkerJson[] };
  const lease = Date.parse(items.find(({ id }) => id === worker?.id)?.leaseUntil ?? '');
  const lost = await ended(at(0), run.id, 40_000);
  expect(lost).toMatchObject({ state: 'interrupted', fence: 1, end: { code: 'worker_lost' } });
  expect(lost.end.by).not.toBe(worker?.id);
  expect(Date.parse(lost.end.at)).toBeGreaterThan(lease);
  expect(Date.parse(lost.end.at)).toBeLessThan(lease + 15_000);
});

it('S4-67 a database that stands still leaves the process healthy, not ready, and working afterwards', async () => {
  const session = await db.session();
  const { rows } = await session.query<{ pid: number }>(
    `select pid from pg_stat_activity where datname = current_database() and application_name like 'capstan%'`,
  );
  const pids = rows.map(({ pid }) => pid);
  for (const pid of pids) process.kill(pid, 'SIGSTOP');
  try {
    await until('it says that it is not ready', async () => (await fetch(`${at(0).url}/readyz`)).status === 503);
    expect((await fetch(`${at(0).url}/healthz`)).status).toBe(200);
  } finally {
    for (const pid of pids) if (isAlive(pid)) process.kill(pid, 'SIGCONT');
  }
  await until('it is ready again', async () => (await fetch(`${at(0).url}/readyz`)).status === 200);
  expect(await ended(at(0), (await submit(at(0), ['true'])).id)).toMatchObject({ state: 'succeeded' });
});

it('the chain that all of them appended to holds', async () => {
  expect((await call(at(0), 'GET', '/v1/audit/verify')).body).toMatchObject({ ok: true });
});
