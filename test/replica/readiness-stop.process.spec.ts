/** What a balancer and its clients see of a replica that is told to stop. */
import { once } from 'node:events';
import { Agent, get, type IncomingMessage, request } from 'node:http';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from '../database.js';
import { type ServerProcess, startServer, until } from '../server.js';
import { TcpProxy } from '../tcp-proxy.js';
import { readiness } from './readiness.fixture.js';

const TOKEN = 'a-token-of-the-operator-0123456789';
const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
/** Of QUICK: drain time, grace and the 5 s on top of them. */
const STOP_BOUND_MS = 10_000 + 1_000 + 5_000;
const RUN = JSON.stringify({ kind: 'noop', spec: {}, queue: 'nobody' });

let db: TestDatabase;
let proxy: TcpProxy;
let server: ServerProcess;
beforeEach(async () => {
  db = await createDatabase();
  proxy = await TcpProxy.start(db.url);
  server = await startServer({ DATABASE_URL: proxy.through, CAPSTAN_BOOTSTRAP_TOKEN: TOKEN });
});
afterEach(async () => {
  server.child.kill('SIGKILL');
  await server.finished;
  await proxy.close();
  await db.drop();
});

/**
 * A client that keeps its connection and asks again and again until nobody listens; what else went wrong. It has no
 * balancer in front of it that has long seen the 503 of `/readyz`, so it may knock in the very moment in which the port
 * closes: a connection that the system had queued and the process had not accepted is then reset by the system. No
 * request that was accepted is: such a reset is a connection's first, and whoever comes after it is refused.
 */
async function askOn(answers: IncomingMessage[]): Promise<string[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const faults: string[] = [];
  for (let hasKnockedInVain = false; ; ) {
    let isFirst = false;
    const fault = await new Promise<string | undefined>((resolve) => {
      const asked = get(`${server.url}/v1/version`, { headers, agent }, (answer) => {
        answers.push(answer);
        if (answer.statusCode !== 200) faults.push(`status ${answer.statusCode}`);
        answer.resume().on('error', (error) => resolve(String(error)));
        answer.on('end', () => resolve(undefined));
      });
      asked.on('error', () => {
        isFirst = !asked.reusedSocket;
      });
      asked.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? String(error)));
    });
    if (fault === 'ECONNREFUSED') return faults;
    if (hasKnockedInVain) return [...faults, 'reset while the port was open'];
    hasKnockedInVain = fault === 'ECONNRESET' && isFirst;
    if (fault !== undefined && !hasKnockedInVain) faults.push(fault);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A submit whose body is on its way: it ends when it is told to. */
function slowSubmit(): { readonly end: () => void; readonly status: Promise<number | string> } {
  const sent = request(`${server.url}/v1/runs`, {
    method: 'POST',
    headers: { ...headers, 'content-length': String(RUN.length) },
  });
  sent.write(RUN.slice(0, 5));
  const status = new Promise<number | string>((resolve) => {
    sent.on('response', (answer) => resolve(answer.statusCode ?? 0));
    sent.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? String(error)));
  });
  return { end: () => void sent.end(RUN.slice(5)), status };
}

async function follow(id: string): Promise<{ readonly ended: Promise<string> }> {
  const asked = get(`${server.url}/v1/runs/${id}/stream`, { headers });
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  answer.resume();
  const ended = new Promise<string>((resolve) => {
    answer.on('end', () => resolve('ended'));
    answer.on('error', (error) => resolve(String(error)));
  });
  return { ended };
}

it('F120 SIGTERM: not ready at once and open still, all that is under way is answered, nothing is reset, exit 0', async () => {
  const made = await fetch(`${server.url}/v1/runs`, { method: 'POST', headers, body: RUN });
  const { id } = (await made.json()) as { id: string };
  const streams = await Promise.all([follow(id), follow(id), follow(id)]);
  const answers: IncomingMessage[] = [];
  const clients = Array.from({ length: 5 }, () => askOn(answers));
  const submit = slowSubmit();
  await until('the clients are at it', () => answers.length > 50);
  expect(answers.some(({ headers }) => headers.connection === 'close')).toBe(false);

  const toldAt = performance.now();
  server.child.kill('SIGTERM');
  await until('it says so', async () => (await readiness(server)).status === 503);
  expect(performance.now() - toldAt).toBeLessThan(1_000);
  expect((await readiness(server)).checks).toMatchObject({ process: 'stopping', database: 'ok' });
  await until('answers ask for no more on this connection', () => answers.at(-1)?.headers.connection === 'close');
  expect(await Promise.all(clients), 'nothing but refused at connect').toEqual([[], [], [], [], []]);
  expect(performance.now() - toldAt, 'a balancer had time to notice').toBeGreaterThan(1_900);
  expect(await Promise.all(streams.map(({ ended }) => ended))).toEqual(['ended', 'ended', 'ended']);

  // Longer than anybody is waited for who only reads slowly.
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  expect(server.child.exitCode).toBeNull();
  submit.end();
  expect(await submit.status).toBe(201);
  expect(await server.finished).toMatchObject({ code: 0, signal: null });
  expect(performance.now() - toldAt).toBeLessThan(STOP_BOUND_MS);
});

it('F120 nobody was ever connected: it ends as soon as a balancer had time to notice', async () => {
  const toldAt = performance.now();
  server.child.kill('SIGTERM');
  expect(await server.finished).toMatchObject({ code: 0, signal: null });
  expect(performance.now() - toldAt).toBeLessThan(8_000);
});

it('F120 a second signal ends it at once, whoever still waits', async () => {
  const submit = slowSubmit();
  server.child.kill('SIGTERM');
  await until('it stops', async () => (await readiness(server)).status === 503);
  const toldAt = performance.now();
  await until('a second signal counts', () => {
    server.child.kill('SIGTERM');
    return server.child.exitCode !== null || performance.now() - toldAt > 1_500;
  });
  expect(await server.finished).toMatchObject({ code: 0 });
  expect(performance.now() - toldAt).toBeLessThan(8_000);
  expect(await submit.status).toBe('ECONNRESET');
});

it('F120 it ends with the database away as well', async () => {
  await proxy.goDown();
  await until('it notices', async () => (await readiness(server)).checks.database === 'unreachable');
  const toldAt = performance.now();
  server.child.kill('SIGTERM');
  expect(await server.finished).toMatchObject({ code: 0, signal: null });
  expect(performance.now() - toldAt).toBeLessThan(STOP_BOUND_MS + 1_000);
});
