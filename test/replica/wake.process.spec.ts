/**
 * Real replicas that wake each other: each serves a queue of its own, so whatever is submitted at one is the other's to
 * start. How long a run waited is what the database says: from its creation to its start.
 */
import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { scaled } from '../chaos/scale.js';
import { createDatabase, type TestDatabase } from '../database.js';
import { type ServerProcess, startServer, until } from '../server.js';
import { type DeafProxy, startDeafProxy } from './deaf-proxy.fixture.js';

const TOKEN = 'a-token-of-the-operator-0123456789';
const AUTHORIZED = { authorization: `Bearer ${TOKEN}` };
/** An idle poll interval with its jitter, and room for two busy cores. */
const POLLED_WITHIN_MS = 1_870 + 700;

interface RunJson {
  readonly id: string;
  readonly state: string;
  readonly createdAt: string;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
}

let db: TestDatabase;
let session: pg.Client;
let deaf: DeafProxy;
/** Polls once a minute: what it starts at once, it was told of. */
let drowsy: ServerProcess;
let quick: ServerProcess;
const servers: ServerProcess[] = [];

async function start(name: string, env: Readonly<Record<string, string>> = {}): Promise<ServerProcess> {
  const server = await startServer({
    DATABASE_URL: db.url,
    CAPSTAN_BOOTSTRAP_TOKEN: TOKEN,
    CAPSTAN_NAME: name,
    CAPSTAN_QUEUES: name,
    ...env,
  });
  servers.push(server);
  return server;
}

beforeAll(async () => {
  db = await createDatabase({ empty: true });
  session = await db.session();
  deaf = await startDeafProxy(db.url);
  [drowsy, quick] = await Promise.all([start('drowsy', { CAPSTAN_POLL_INTERVAL: '60s' }), start('quick')]);
});

afterAll(async () => {
  for (const { child } of servers) child.kill('SIGTERM');
  await Promise.all(servers.map(({ finished }) => finished));
  deaf.close();
  await db.drop();
});

async function submit(server: ServerProcess, queue: string, script = 'true'): Promise<string> {
  const answer = await fetch(`${server.url}/v1/runs`, {
    method: 'POST',
    headers: { ...AUTHORIZED, 'content-type': 'application/json' },
    body: JSON.stringify({ kind: 'command', queue, spec: { argv: ['bash', '-c', script] } }),
  });
  expect(answer.status).toBe(201);
  return ((await answer.json()) as RunJson).id;
}

async function show(server: ServerProcess, id: string): Promise<RunJson> {
  return (await fetch(`${server.url}/v1/runs/${id}`, { headers: AUTHORIZED })).json() as Promise<RunJson>;
}

function output(server: ServerProcess, id: string): Promise<string> {
  return fetch(`${server.url}/v1/runs/${id}/output`, { headers: AUTHORIZED }).then((answer) => answer.text());
}

/** How long the run waited for its start. */
async function waitedMs(server: ServerProcess, id: string): Promise<number> {
  const { createdAt, startedAt } = await until(`${id} ends`, async () => {
    const run = await show(server, id);
    return run.endedAt ? run : undefined;
  });
  return Date.parse(startedAt ?? '') - Date.parse(createdAt);
}

async function listeners(): Promise<number[]> {
  const { rows } = await session.query<{ pid: number }>(
    `select pid from pg_stat_activity
     where datname = current_database() and application_name = 'capstan listen' and state = 'idle'`,
  );
  return rows.map(({ pid }) => pid);
}

/** Takes away what a replica hears on, and returns how to see that it is there again. */
async function deafen(): Promise<() => Promise<unknown>> {
  const lost = await until('all listen', async () => {
    const pids = await listeners();
    return pids.length === servers.length ? pids : undefined;
  });
  await session.query('select pg_terminate_backend(pid) from unnest($1::int[]) pid', [lost]);
  return () =>
    until('all listen again', async () => {
      const pids = await listeners();
      return pids.length === servers.length && pids.every((pid) => !lost.includes(pid));
    });
}

it('a run submitted at one replica is started by another that did not look for work itself', async () => {
  for (let i = 0; i < 5; i += 1) expect(await waitedMs(quick, await submit(quick, 'drowsy'))).toBeLessThan(20_000);
});

it('S4-95 a cancel at one replica reaches the tool of another', async () => {
  const run = await submit(quick, 'drowsy', `trap 'date +%s%3N; exit' TERM; echo up; while :; do sleep 0.02; done`);
  await until('it is up', async () => (await output(quick, run)) === 'up\n');
  const asked = Date.now();
  expect((await fetch(`${quick.url}/v1/runs/${run}/cancel`, { method: 'POST', headers: AUTHORIZED })).status).toBe(202);
  await waitedMs(quick, run);
  expect(await show(quick, run)).toMatchObject({ state: 'canceled' });
  const [termAt] = /^\d{13}$/m.exec(await output(quick, run)) ?? [];
  expect(Number(termAt) - asked).toBeLessThan(6_000);
});

it('F034 replicas whose listening sessions were ended start runs in time, listen again, and say so', async () => {
  const listenAgain = await deafen();
  const runs: string[] = [];
  for (let i = 0; i < 20; i += 1) runs.push(await submit(drowsy, 'quick'));
  const waits = await Promise.all(runs.map((run) => waitedMs(drowsy, run)));
  expect(waits.sort((a, b) => a - b)[18]).toBeLessThan(1_500);
  await listenAgain();
  for (const server of servers) {
    await until('it says so', () => server.log().includes('"code":"listen_restored"'));
    expect(server.log()).toContain('"code":"listen_lost"');
    const metrics = await (await fetch(`${server.url}/metrics`, { headers: AUTHORIZED })).text();
    expect(metrics).toMatch(/^capstan_listen_reconnects_total [1-9]/m);
  }
  await waitedMs(quick, await submit(quick, 'drowsy'));
});

it('F037 no run waits longer than a poll interval, however its submit meets the loss of a listening session', async () => {
  let seed = 37;
  for (let i = 0; i < scaled(25, 100); i += 1) {
    const listenAgain = await deafen();
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    const pauseMs = seed % 300;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    const run = await submit(drowsy, 'quick');
    expect(await waitedMs(drowsy, run), `loop ${i}: ${pauseMs} ms after the loss`).toBeLessThan(POLLED_WITHIN_MS);
    await listenAgain();
  }
}, 120_000);

it('S1-04 S1-19 with every NOTIFY lost a run is found by the poll', async () => {
  await start('deaf', { DATABASE_DIRECT_URL: deaf.through });
  const lostBefore = deaf.lost();
  for (let i = 0; i < 5; i += 1) {
    expect(await waitedMs(drowsy, await submit(drowsy, 'deaf'))).toBeLessThan(POLLED_WITHIN_MS);
  }
  // What rings within 20 ms is told together, so there may be fewer of them than runs.
  expect(deaf.lost(), 'it was told, and heard nothing').toBeGreaterThan(lostBefore);
});
