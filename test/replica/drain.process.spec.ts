/** Real replicas that are told to stop, or taken out of service, while there is more to do than they can run at once. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from '../database.js';
import {
  dataFolder,
  finishOf,
  QUICK,
  type ServerProcess,
  spawnCapstan,
  startServer,
  supervisorOf,
  until,
} from '../server.js';
import { TcpProxy } from '../tcp-proxy.js';

const TOKEN = 'a-token-of-the-operator-0123456789';

interface Live {
  readonly id: string;
  readonly state: string;
  readonly claimedAtMs: number;
}

let db: TestDatabase;
let folder: Awaited<ReturnType<typeof dataFolder>>;
let sql: Awaited<ReturnType<TestDatabase['session']>>;
const servers: ServerProcess[] = [];

beforeAll(async () => {
  db = await createDatabase({ empty: true });
  sql = await db.session();
  folder = await dataFolder();
});
afterAll(async () => {
  for (const { child } of servers) child.kill('SIGKILL');
  await Promise.all(servers.map(({ finished }) => finished));
  await folder.remove();
  await db.drop();
});

/** A replica that alone serves the queue of its name. */
async function start(name: string, env: Readonly<Record<string, string>> = {}): Promise<ServerProcess> {
  const server = await startServer({
    DATABASE_URL: db.url,
    CAPSTAN_BOOTSTRAP_TOKEN: TOKEN,
    CAPSTAN_NAME: name,
    CAPSTAN_QUEUES: name,
    CAPSTAN_SLOTS: '2',
    ...env,
  });
  servers.push(server);
  return server;
}

async function call(server: ServerProcess, method: string, path: string, body?: unknown) {
  const headers = {
    authorization: `Bearer ${TOKEN}`,
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  };
  const answer = await fetch(server.url + path, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

async function submit(server: ServerProcess, queue: string, script: string, times = 1): Promise<string[]> {
  const run = { kind: 'command', queue, spec: { argv: ['sh', '-c', script] } };
  const made = await Promise.all(Array.from({ length: times }, () => call(server, 'POST', '/v1/runs', run)));
  return made.map(({ body }) => String(body.id));
}

const worker = async (name: string) => {
  const { rows } = await sql.query<{ id: string; state: string; lease_ms: number; drained_by: string | null }>(
    `select id, state, drained_by, (extract(epoch from lease_until) * 1000)::float8 as lease_ms
     from workers where name = $1 order by started_at desc limit 1`,
    [name],
  );
  if (!rows[0]) throw new Error(`there is no worker ${name}`);
  return rows[0];
};
const live = async (queue: string): Promise<Live[]> => {
  const { rows } = await sql.query(
    `select run_id as id, state, (extract(epoch from claimed_at) * 1000)::float8 as "claimedAtMs"
     from live_runs where queue = $1`,
    [queue],
  );
  return rows;
};
const ended = async (queue: string) => {
  const { rows } = await sql.query<{ state: string; end_code: string; claimed_ms: number }>(
    `select state, end_code, (extract(epoch from claimed_at) * 1000)::float8 as claimed_ms
     from runs where queue = $1 and ended_at is not null`,
    [queue],
  );
  return rows;
};
const running = (queue: string) =>
  until(`both slots run of ${queue}`, async () => {
    const runs = await live(queue);
    return runs.filter(({ state }) => state === 'running').length === 2 ? runs : undefined;
  });

it('F006 a replica claims nothing from SIGTERM on: it renews, lets tools end, gives the rest back and says stopped', async () => {
  const server = await start('first', { CAPSTAN_DRAIN_TIMEOUT: '60s' });
  // One slot is busy until the test lets it go, the other is free again and again.
  const gate = join(folder.path, '..', 'gate');
  await submit(server, 'first', `until [ -e ${gate} ]; do sleep 0.1; done`);
  await submit(server, 'first', 'sleep 0.1', 40);
  await until('the second slot has had several runs', async () => (await ended('first')).length >= 3);
  const before = await worker('first');
  const toldAtMs = Date.now();
  server.child.kill('SIGTERM');
  await until('the database knows', async () => (await worker('first')).state === 'draining');
  // What it answers while it drains: nobody takes this back.
  const undrain = await call(server, 'POST', `/v1/workers/${before.id}/undrain`);
  expect(undrain).toMatchObject({ status: 409, body: { code: 'worker_stopping', state: 'draining' } });
  await until('the lease is renewed all the same', async () => (await worker('first')).lease_ms > before.lease_ms);
  await writeFile(gate, '');
  expect(await server.finished).toMatchObject({ code: 0 });
  expect(await worker('first')).toMatchObject({ state: 'stopped' });
  const { rows } = await sql.query<{ action: string; at_ms: number }>(
    `select action, (extract(epoch from at) * 1000)::float8 as at_ms from audit_entries
     where claim like '%"name":"first"%' order by seq`,
  );
  expect(rows.map(({ action }) => action)).toEqual(['worker.joined', 'worker.draining', 'worker.stopped']);
  const drainedAtMs = rows[1]?.at_ms ?? 0;
  expect(drainedAtMs - toldAtMs, 'the database was told at once').toBeLessThan(2_000);
  const outcomes = await ended('first');
  expect(outcomes.every(({ state }) => state === 'succeeded')).toBe(true);
  expect(Math.max(...outcomes.map(({ claimed_ms }) => claimed_ms))).toBeLessThanOrEqual(drainedAtMs);
  const rest = await live('first');
  expect(rest.length).toBeGreaterThan(0);
  expect(rest.length + outcomes.length).toBe(41);
  expect(rest.every(({ state }) => state === 'pending')).toBe(true);
});

it('a drain leaves what runs alone and takes nothing more; taken back, the rest is run within a poll interval', async () => {
  const server = await start('second', { CAPSTAN_POLL_INTERVAL: '500ms' });
  const { id } = await worker('second');
  await submit(server, 'second', 'sleep 1', 4);
  const first = (await running('second')).filter(({ state }) => state === 'running');
  expect(await call(server, 'POST', `/v1/workers/${id}/drain`)).toMatchObject({ status: 200 });
  await until('what ran has ended', async () => (await ended('second')).length === 2);
  // Longer than a poll interval, and a submit rings besides.
  await submit(server, 'second', 'true');
  await until('it is renewed as draining', () => server.log().includes('worker_drained'));
  const waiting = await live('second');
  expect(waiting.map(({ state }) => state)).toEqual(['pending', 'pending', 'pending']);
  expect(waiting.some((run) => first.some((one) => one.id === run.id))).toBe(false);
  expect((await fetch(`${server.url}/readyz`)).status, 'it serves the API as before').toBe(200);

  expect(await call(server, 'POST', `/v1/workers/${id}/undrain`)).toMatchObject({ status: 200 });
  await until('the rest has run', async () => (await ended('second')).length === 5);
  expect((await ended('second')).every(({ state }) => state === 'succeeded')).toBe(true);
  expect(server.log()).not.toMatch(/"level":"(warn|error)"/);
});

it('a drain is of the process: the life after one that was lost begins out of service, until it is put back', async () => {
  const server = await start('heir', { CAPSTAN_POLL_INTERVAL: '500ms' });
  const { id } = await worker('heir');
  await call(server, 'POST', `/v1/workers/${id}/drain`);
  const drainsKnown = () => server.log().split('"code":"worker_drained"').length - 1;
  await until('it knows', () => drainsKnown() === 1);
  process.kill(await supervisorOf(server.child.pid ?? 0), 'SIGKILL');
  const heir = await until('another life begins', async () => {
    const now = await worker('heir');
    return now.id === id ? undefined : now;
  });
  expect(heir.state).toBe('draining');
  await submit(server, 'heir', 'true');
  await until('the heir knows', () => drainsKnown() === 2);
  expect((await live('heir')).map(({ state }) => state)).toEqual(['pending']);
  expect(await call(server, 'POST', `/v1/workers/${heir.id}/undrain`)).toMatchObject({ status: 200 });
  await until('it has run', async () => (await ended('heir')).length === 1);
});

it('a replica that was drained stops like any other, and what outlasts the drain time ends interrupted', async () => {
  const server = await start('third', { CAPSTAN_DRAIN_TIMEOUT: '1s' });
  const { id } = await worker('third');
  await submit(server, 'third', "trap '' TERM; echo on; while :; do sleep 0.1; done", 3);
  await running('third');
  await call(server, 'POST', `/v1/workers/${id}/drain`);
  server.child.kill('SIGTERM');
  expect(await server.finished).toMatchObject({ code: 0 });
  expect(await worker('third')).toMatchObject({ state: 'stopped', drained_by: null });
  expect((await ended('third')).map(({ state, end_code }) => `${state} ${end_code}`)).toEqual([
    'interrupted replica_stopped',
    'interrupted replica_stopped',
  ]);
  expect((await live('third')).map(({ state }) => state)).toEqual(['pending']);
});

it('with a database that answers nothing any more it stops within drain time, grace and 5 s, and no tool is left', async () => {
  const proxy = await TcpProxy.start(db.url);
  const server = await start('fourth', { DATABASE_URL: proxy.through, CAPSTAN_DRAIN_TIMEOUT: '1s' });
  const mark = `sleep 98765.${process.pid}`;
  await submit(server, 'fourth', `exec ${mark}`, 2);
  await running('fourth');
  proxy.goSilent();
  const toldAtMs = performance.now();
  server.child.kill('SIGTERM');
  await server.finished;
  const tookMs = performance.now() - toldAtMs;
  expect(QUICK.CAPSTAN_KILL_GRACE).toBe('1s');
  // The bound is 7 s; the rest is what a busy machine takes to end a process.
  expect(tookMs).toBeLessThan(9_000);
  expect(await processesOf(mark)).toEqual([]);
  // What could not be written is a janitor's.
  expect((await live('fourth')).map(({ state }) => state)).toEqual(['running', 'running']);
  await proxy.close();
});

it('a replica that is told to stop while it joins leaves no life behind that looks alive', async () => {
  const chain = await db.session();
  await chain.query('begin');
  await chain.query(
    'select pg_advisory_xact_lock(1129337940, lock_key) from audit_heads where organization_id is null',
  );
  const env = { ...QUICK, DATABASE_URL: db.url, CAPSTAN_NAME: 'fifth', CAPSTAN_QUEUES: 'fifth' };
  const child = await spawnCapstan(['serve'], env);
  let log = '';
  child.stderr?.on('data', (data) => {
    log += data;
  });
  const finished = finishOf(child);
  await until('its registration waits for the chain', async () => {
    const { rows } = await sql.query(
      `select 1 from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock' and query like '%insert into workers%'`,
    );
    return rows.length > 0;
  });
  child.kill('SIGTERM');
  await until('it has heard', () => log.includes('"code":"stopping"'));
  await chain.query('rollback');
  await finished;
  const { rows } = await sql.query(`select state from workers where name = 'fifth'`);
  expect(rows.filter(({ state }) => state !== 'stopped')).toEqual([]);
});

/** Process ids whose command line is this. */
async function processesOf(command: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(
    pids.map(async (pid) => [pid, await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')] as const),
  );
  return lines.filter(([, line]) => line.split('\0').join(' ').trim() === command).map(([pid]) => pid);
}
