/** The far side of the client: a real HTTP server that answers as each test says and remembers what it was asked. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Asked {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** Parsed, when there was one. */
  readonly body: unknown;
}

/** `hangUp` cuts the connection: before the answer, or after so many bytes of it. */
export interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON, or bytes as they are. */
  readonly body?: unknown;
  readonly hangUp?: true | { readonly afterBytes: number };
  /** Takes the body over once the headers are out. */
  readonly live?: (body: ServerResponse) => void;
}

export type Answer = (asked: Asked) => Reply | Promise<Reply>;

export interface StandIn {
  readonly url: string;
  readonly asked: Asked[];
  close(): Promise<void>;
}

export async function standIn(answer: Answer, port = 0): Promise<StandIn> {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const one = await read(request);
    asked.push(one);
    await reply(response, await answer(one));
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}`,
    asked,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function read(request: IncomingMessage): Promise<Asked> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const url = new URL(request.url ?? '/', 'http://stand-in');
  const text = Buffer.concat(chunks).toString();
  return {
    method: request.method ?? '',
    path: url.pathname,
    query: url.searchParams,
    headers: request.headers,
    body: text === '' ? undefined : JSON.parse(text),
  };
}

async function reply(
  response: ServerResponse,
  { status = 200, headers = {}, body = '', hangUp, live }: Reply,
): Promise<void> {
  if (live !== undefined) {
    response.writeHead(status, { ...headers });
    response.flushHeaders();
    live(response);
    return;
  }
  if (hangUp === true) {
    response.socket?.destroy();
    return;
  }
  const isBytes = Buffer.isBuffer(body);
  const data = isBytes ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  const type = isBytes ? 'text/plain' : status >= 400 ? 'application/problem+json' : 'application/json';
  response.writeHead(status, { 'content-type': type, 'content-length': String(data.length), ...headers });
  if (hangUp === undefined) {
    response.end(data);
    return;
  }
  await new Promise((resolve) => response.write(data.subarray(0, hangUp.afterBytes), resolve));
  response.socket?.destroy();
}

/** What the route of a run's output answers: all of it, or the range that was asked for. */
export function outputReply(asked: Asked, output: Buffer): Reply {
  const range = /^bytes=(\d+)-$/.exec(asked.headers.range ?? '')?.[1];
  if (range === undefined) return { body: output };
  const start = Number(range);
  if (start >= output.length) {
    return { ...problem(416, 'range_not_satisfiable'), headers: { 'content-range': `bytes */${output.length}` } };
  }
  const headers = { 'content-range': `bytes ${start}-${output.length - 1}/${output.length}` };
  return { status: 206, headers, body: output.subarray(start) };
}

export function problem(status: number, code: string, more: Readonly<Record<string, unknown>> = {}): Reply {
  return { status, body: { type: 'about:blank', title: `Title of ${code}`, status, code, ...more } };
}

export const RUN_ID = 'run_01h455vb4pex5vsknk084sn02q';

type Json = Readonly<Record<string, unknown>>;

export function runJson(members: Json = {}): Json {
  return {
    id: RUN_ID,
    organizationId: 'org_01h455vb4pex5vsknk084sn02q',
    kind: 'command',
    name: null,
    queue: 'default',
    priority: 0,
    labels: {},
    spec: { argv: ['echo', 'two words'], env: {}, cwd: null, stdin: null, successCodes: [0] },
    timeout: null,
    notBefore: null,
    state: 'pending',
    origin: 'api',
    principal: { type: 'token', id: 'tok_01h455vb4pex5vsknk084sn02q', name: 'admin' },
    parentId: null,
    rootId: RUN_ID,
    rerunOf: null,
    createdAt: '2026-03-02T10:00:00.000Z',
    claimedAt: null,
    startedAt: null,
    endedAt: null,
    fence: 0,
    worker: null,
    cancelRequestedAt: null,
    progress: null,
    output: null,
    end: null,
    receipts: { submitted: 'org_1:1:ab', ended: null },
    ...members,
  };
}

export function runningJson(members: Json = {}): Json {
  return runJson({
    state: 'running',
    claimedAt: '2026-03-02T10:00:00.500Z',
    startedAt: '2026-03-02T10:00:01.000Z',
    fence: 1,
    worker: { id: 'wrk_01h455vb4pex5vsknk084sn02q', name: 'r1', leaseUntil: '2026-03-02T10:00:31.000Z' },
    ...members,
  });
}

export function endedJson(state: string, end: Json, members: Json = {}): Json {
  const endedAt = '2026-03-02T10:00:04.200Z';
  const whole = {
    code: 'ok',
    kind: null,
    detail: '',
    exitCode: null,
    signal: null,
    by: 'wrk_1',
    at: endedAt,
    fence: 1,
  };
  return runningJson({ state, endedAt, end: { ...whole, ...end }, ...members });
}
