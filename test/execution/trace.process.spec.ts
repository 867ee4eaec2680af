/** The trace of a submit reaches a real tool, and a real server. */
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Client, type RunJson } from '../client.js';
import { dataFolder, type ServerProcess, startServer } from '../server.js';

const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const LATER = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00';
const PRINT = { argv: ['sh', '-c', 'echo "[$TRACEPARENT]"'] };

let data: Awaited<ReturnType<typeof dataFolder>>;
let server: ServerProcess;
let client: Client;
let token: string;
const heard: (string | undefined)[] = [];
const target = createServer((request, response) => {
  heard.push(request.headers.traceparent as string | undefined);
  response.end();
});

beforeAll(async () => {
  await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve));
  data = await dataFolder();
  server = await startServer({ CAPSTAN_DATA_DIR: data.path, CAPSTAN_HTTP_ALLOW: '127.0.0.1' });
  client = await Client.of(server, data.path);
  token = (await readFile(join(data.path, 'admin-token'), 'utf8')).trim();
});
afterAll(async () => {
  target.close();
  server.child.kill('SIGTERM');
  await server.finished;
  await data.remove();
});

/** Sends it with this trace; the ended run. */
async function run(path: string, body: object | undefined, traceparent: string | undefined): Promise<RunJson> {
  const answer = await fetch(`${server.url}/v1/runs${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      ...(body ? { 'content-type': 'application/json' } : {}),
      ...(traceparent ? { traceparent } : {}),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  expect(answer.status).toBe(201);
  const { id } = (await answer.json()) as RunJson;
  const ended = await client.ended(id, 20_000);
  expect(ended.state).toBe('succeeded');
  return ended;
}

it('a command and a script find it in their environment, and nothing where none came', async () => {
  for (const trace of [TRACE, undefined]) {
    const command = await run('', { kind: 'command', spec: PRINT }, trace);
    const script = await run('', { kind: 'script', spec: { interpreter: 'sh', content: PRINT.argv[2] } }, trace);
    for (const { id } of [command, script]) expect(await client.output(id)).toBe(`[${trace ?? ''}]\n`);
  }
});

it('a run that names one itself keeps it', async () => {
  const { id } = await run('', { kind: 'command', spec: { ...PRINT, env: { TRACEPARENT: 'own' } } }, TRACE);
  expect(await client.output(id)).toBe('[own]\n');
});

it('a rerun is in the trace of whoever asked for it, not in that of the run before', async () => {
  const { id } = await run('', { kind: 'command', spec: PRINT }, TRACE);
  const [again, without] = [
    await run(`/${id}/rerun`, undefined, LATER),
    await run(`/${id}/rerun`, undefined, undefined),
  ];
  expect(await client.output(again.id)).toBe(`[${LATER}]\n`);
  expect(await client.output(without.id)).toBe('[]\n');
});

it('a request carries it, unless its run names one itself', async () => {
  const url = `http://127.0.0.1:${(target.address() as AddressInfo).port}/`;
  await run('', { kind: 'http', spec: { url } }, TRACE);
  await run('', { kind: 'http', spec: { url } }, undefined);
  await run('', { kind: 'http', spec: { url, headers: { Traceparent: LATER } } }, TRACE);
  expect(heard).toEqual([TRACE, undefined, LATER]);
});
