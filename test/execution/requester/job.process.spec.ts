/** Runs of kind `http` as their users see them: submitted to a real server, read from its API. */
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { dataFolder, type ServerProcess, startServer, supervisorOf, until } from '../../server.js';
import { childrenOf } from '../supervisor/rig.js';
import { CERTIFICATE, PRIVATE_KEY } from './certificate.fixture.js';
import { startOrigin, startSecureOrigin } from './origin.fixture.js';

interface RunJson {
  readonly id: string;
  readonly state: string;
  readonly fence: number;
  readonly output: Record<string, unknown> | null;
  readonly end: { code: string; kind: string | null; detail: string; exitCode: null; signal: null } | null;
}

let data: Awaited<ReturnType<typeof dataFolder>>;
let server: ServerProcess;
let token: string;

beforeAll(async () => {
  data = await dataFolder();
  const authorities = join(dirname(data.path), 'authorities.pem');
  await writeFile(authorities, CERTIFICATE);
  server = await startServer({
    CAPSTAN_DATA_DIR: data.path,
    CAPSTAN_HTTP_ALLOW: '127.0.0.1',
    NODE_EXTRA_CA_CERTS: authorities,
  });
  token = (await readFile(join(data.path, 'admin-token'), 'utf8')).trim();
});

afterAll(async () => {
  server.child.kill('SIGTERM');
  await server.finished;
  await data.remove();
});

async function call(method: string, path: string, body?: object): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  return fetch(`${server.url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
}

async function submit(spec: object, more: object = {}): Promise<string> {
  const answer = await call('POST', '/v1/runs', { kind: 'http', spec, ...more });
  expect(answer.status).toBe(201);
  return ((await answer.json()) as RunJson).id;
}

async function show(id: string): Promise<RunJson> {
  return (await (await call('GET', `/v1/runs/${id}`)).json()) as RunJson;
}

const ended = (id: string) =>
  until(`${id} ends`, async () => {
    const run = await show(id);
    return run.end === null ? undefined : run;
  });

it('a request becomes the run’s output, its body is there byte for byte, and no exit code is made up', async () => {
  const body = Buffer.from([0, 255, 10, 13, 65]);
  const origin = await startOrigin((_request, response) => response.writeHead(200, { 'X-A': 'b' }).end(body));
  const supervisor = await supervisorOf(server.child.pid ?? 0);
  expect(childrenOf(supervisor), 'no requester before the first request').toEqual([]);
  const id = await submit({ url: origin.url });
  const run = await ended(id);
  expect(run).toMatchObject({
    state: 'succeeded',
    output: { status: 200, url: `${origin.url}/`, headers: { 'x-a': 'b' }, bodyBytes: 5, bodyTruncated: false },
    end: { code: 'ok', detail: 'HTTP status 200', exitCode: null, signal: null },
  });
  expect(run.output?.bodyBase64).toBe(body.toString('base64'));
  const stored = await (await call('GET', `/v1/runs/${id}/output`)).arrayBuffer();
  expect(Buffer.from(stored).equals(body)).toBe(true);
  expect(origin.asked[0]?.headers).toMatchObject({ 'capstan-run-id': id, 'capstan-fence': String(run.fence) });
  expect(origin.asked[0]?.headers['user-agent']).toMatch(/^capstan\/\d+\.\d+\.\d+/);
});

it('an unexpected status, a timeout and a denied address end it failed, timed out and denied', async () => {
  const origin = await startOrigin((request, response) => {
    if (request.url === '/503') response.writeHead(503).end();
    else response.writeHead(202, { 'X-Job': '17', ['__proto__']: 'p' }).write('so far');
  });
  const [status, timeout, denied] = await Promise.all([
    submit({ url: `${origin.url}/503` }),
    submit({ url: `${origin.url}/hang` }, { timeout: '2s' }),
    submit({ url: 'http://169.254.169.254/latest/meta-data/' }),
  ]);
  expect(await ended(status)).toMatchObject({
    state: 'failed',
    output: { status: 503 },
    end: { code: 'tool_failed', detail: 'HTTP status 503 (expected 2xx)' },
  });
  expect(await ended(timeout)).toMatchObject({
    state: 'timed_out',
    output: { status: 202, headers: { 'x-job': '17' }, body: 'so far', bodyTruncated: true },
    end: { code: 'timeout', exitCode: null },
  });
  expect(await ended(denied)).toMatchObject({
    state: 'failed',
    output: null,
    end: { code: 'denied', detail: expect.stringMatching(/169\.254\.169\.254.*CAPSTAN_HTTP_ALLOW/) },
  });
});

it('a server whose certificate a private authority signed is called where NODE_EXTRA_CA_CERTS names that', async () => {
  const origin = await startSecureOrigin(CERTIFICATE, PRIVATE_KEY);
  const run = await ended(await submit({ url: origin.url }));
  expect(run).toMatchObject({ state: 'succeeded', output: { status: 200, body: 'ok' } });
});

it('S0-60 it is canceled in flight', async () => {
  const origin = await startOrigin(() => {});
  const id = await submit({ url: origin.url });
  await until('the request arrived', () => origin.asked.length === 1);
  expect((await call('POST', `/v1/runs/${id}/cancel`, {})).ok).toBe(true);
  expect(await ended(id)).toMatchObject({ state: 'canceled', end: { code: 'canceled', kind: 'requested' } });
  await until('the server saw the close', () => origin.connections.closed === 1);
});
