/** Runs followed over several real replicas: whichever serves the stream, whichever executes, whichever dies. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from '../database.js';
import { type ServerProcess, startServer, until } from '../server.js';
import { outputOf, type Seen, StreamClient } from './stream.fixture.js';

const TOKEN = 'a-token-of-the-operator-0123456789';

let db: TestDatabase;
let a: ServerProcess;
let b: ServerProcess;
beforeAll(async () => {
  db = await createDatabase({ empty: true });
  const env = (name: string) => ({
    DATABASE_URL: db.url,
    CAPSTAN_BOOTSTRAP_TOKEN: TOKEN,
    CAPSTAN_NAME: name,
    CAPSTAN_QUEUES: name,
  });
  [a, b] = await Promise.all([startServer(env('a')), startServer(env('b'))]);
});
afterAll(async () => {
  for (const { child } of [a, b]) child.kill('SIGTERM');
  await Promise.all([a.finished, b.finished]);
  await db.drop();
});

/** A shell script as a run of the replica that serves this queue. */
async function run(queue: 'a' | 'b', script: string): Promise<string> {
  const answer = await fetch(`${b.url}/v1/runs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ kind: 'command', queue, spec: { argv: ['sh', '-c', script] } }),
  });
  expect(answer.status).toBe(201);
  return ((await answer.json()) as { id: string }).id;
}

const follow = (server: ServerProcess, id: string, lastEventId?: string) =>
  StreamClient.open({ base: server.url, token: TOKEN, path: `/v1/runs/${id}/stream`, lastEventId });

it('S4-57 a run that executes on one replica is watched on another, line by line, while it goes on', async () => {
  const id = await run('a', 'for i in 1 2 3 4 5 6; do echo line $i; sleep 0.3; done');
  const client = await follow(b, id);
  const states: string[] = [];
  for (let i = 1; i <= 5; i += 1) {
    await until(`line ${i} is seen`, () => client.output().toString().includes(`line ${i}\n`));
    const shown = await fetch(`${b.url}/v1/runs/${id}`, { headers: { authorization: `Bearer ${TOKEN}` } });
    states.push(((await shown.json()) as { state: string }).state);
  }
  expect(states).toEqual(['running', 'running', 'running', 'running', 'running']);
  await client.closed;
  expect(client.output().toString()).toBe([1, 2, 3, 4, 5, 6].map((i) => `line ${i}\n`).join(''));
  expect(client.end).toMatchObject({ state: 'succeeded', worker: { name: 'a' } });
});

it('F075 a connection that breaks all the time and goes on at another replica gets every byte once, and then the end', async () => {
  const id = await run(
    'a',
    `i=0
     while [ $i -lt 40 ]; do seq $((i * 500 + 1)) $((i * 500 + 500)); i=$((i + 1)); sleep 0.05; done
     head -c 5000000 /dev/zero | tr '\\0' x`,
  );
  const seen: Seen[] = [];
  let lastId: string | undefined;
  let connections = 0;
  while (seen.at(-1)?.event !== 'end') {
    const client = await follow(connections % 2 === 0 ? a : b, id, lastId);
    connections += 1;
    const timer = setTimeout(() => client.reset(), 200);
    await client.closed;
    clearTimeout(timer);
    seen.push(...client.seen);
    lastId = client.lastId;
  }
  const lines = Array.from({ length: 20_000 }, (_, i) => `${i + 1}\n`).join('');
  const expected = Buffer.concat([Buffer.from(lines), Buffer.alloc(5_000_000, 'x')]);
  expect(connections).toBeGreaterThan(5);
  expect(outputOf(seen).equals(expected)).toBe(true);
  const numbered = seen.filter(({ event, data }) => event === 'event' && data.seq !== null);
  expect(numbered.map(({ data }) => data.type)).toEqual(['run.submitted', 'run.ended']);
  expect(seen.filter(({ event }) => event === 'end')).toHaveLength(1);
});

it('F074 a burst of 50,000 lines and a line of 5 MB are seen whole, and then that the tool failed', async () => {
  const id = await run('b', `seq 1 50000; head -c 5000000 /dev/zero | tr '\\0' y >&2; exit 1`);
  const clients = await Promise.all([follow(a, id), follow(b, id)]);
  for (const client of clients) {
    await client.closed;
    expect(client.output('stdout').toString()).toBe(Array.from({ length: 50_000 }, (_, i) => `${i + 1}\n`).join(''));
    expect(client.output('stderr').equals(Buffer.alloc(5_000_000, 'y'))).toBe(true);
    expect(client.end).toMatchObject({ state: 'failed', end: { code: 'tool_failed', exitCode: 1 } });
  }
});

it('F077 the gauge of open streams goes back to none when clients are gone with a reset', async () => {
  const id = await run('b', 'echo here; sleep 60');
  const open = async () => {
    const metrics = await fetch(`${a.url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } });
    return Number(/^capstan_streams_open (\d+)$/m.exec(await metrics.text())?.[1]);
  };
  const clients = await Promise.all(Array.from({ length: 300 }, () => follow(a, id)));
  await until('the output is seen by all', () => clients.every((client) => client.output().toString() === 'here\n'));
  expect(await open()).toBe(300);
  for (const client of clients) client.reset();
  await until('no stream is open', async () => (await open()) === 0);
  await fetch(`${a.url}/v1/runs/${id}/cancel`, { method: 'POST', headers: { authorization: `Bearer ${TOKEN}` } });
});

it('F075 a replica that is killed takes nothing with it: its viewers go on at another, the others notice nothing', async () => {
  const id = await run('b', 'for i in $(seq 1 40); do echo $i; sleep 0.05; done');
  const [ofA, ofB] = await Promise.all([follow(a, id), follow(b, id)]);
  await until('some lines were seen', () => ofA.of('output').length > 2);
  a.child.kill('SIGKILL');
  await ofA.closed;
  expect(ofA.end).toBeUndefined();
  const rest = await follow(b, id, ofA.lastId);
  await Promise.all([ofB.closed, rest.closed]);
  const all = Array.from({ length: 40 }, (_, i) => `${i + 1}\n`).join('');
  expect(Buffer.concat([ofA.output(), rest.output()]).toString()).toBe(all);
  expect(ofB.output().toString()).toBe(all);
  expect(rest.end).toEqual(ofB.end);
});
