/** Requests that Node or the framework would answer by themselves, past every convention: here they are like any other. */
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type LocalSurface, openLocalSurface } from '../../send.js';

let surface: LocalSurface;
let port: number;
beforeAll(async () => {
  surface = await openLocalSurface();
  port = Number(new URL(await surface.base()).port);
});
afterAll(() => surface.close());

/** All that a connection answers to a request, the head and the body. */
function ask(lines: readonly string[], body: Buffer = Buffer.alloc(0)): Promise<{ head: string; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    const socket = connect(port, '127.0.0.1');
    socket.on('data', (part: Buffer) => parts.push(part));
    socket.on('error', reject);
    socket.on('close', () => {
      const all = Buffer.concat(parts);
      const end = all.indexOf('\r\n\r\n');
      resolve({ head: all.subarray(0, end).toString(), body: all.subarray(end + 4) });
    });
    socket.write(`${[...lines, 'Connection: close'].join('\r\n')}\r\n\r\n`);
    socket.write(body);
  });
}

function expectProblem({ head, body }: { head: string; body: Buffer }, status: number, code: string): void {
  expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  expect(head).toMatch(/^capstan-replica: r1$/im);
  const [, id] = /^x-request-id: (\S+)$/im.exec(head) ?? [];
  expect(JSON.parse(body.toString())).toMatchObject({ status, code, requestId: id });
}

it('a request without a host is refused with a problem', async () => {
  expectProblem(await ask(['GET /v1/version HTTP/1.1']), 400, 'malformed_request');
});

it('HTTP/1.0 needs no host', async () => {
  const { head } = await ask(['GET /healthz HTTP/1.0']);
  expect(head).toMatch(/^HTTP\/1\.1 200 /);
});

it('an expectation that nobody knows is not heeded', async () => {
  const lines = ['GET /v1/version HTTP/1.1', 'Host: x', 'Expect: the-moon', `Authorization: Bearer ${surface.token}`];
  const { head } = await ask(lines);
  expect(head).toMatch(/^HTTP\/1\.1 200 /);
});

it.each(['/v1/runs?q=%ff', '/v1/runs?label=a:%c3', '/v1/runs?q=100%'])('the query of %s is none', async (target) => {
  const lines = [`GET ${target} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${surface.token}`];
  expectProblem(await ask(lines), 400, 'malformed_request');
});

it.each(['http://x/v1/version', 'HTTP://x:80/v1/version', 'http://x?'])(
  'of the target %s the path counts',
  async (target) => {
    const lines = [`GET ${target} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${surface.token}`];
    expect((await ask(lines)).head).toMatch(/^HTTP\/1\.1 200 /);
  },
);

it.each(['*', '*?a=b'])('the target %s is no route', async (target) => {
  expectProblem(await ask([`GET ${target} HTTP/1.1`, 'Host: x']), 404, 'not_found');
});

it('an answer of bytes waits for the rest of a body that nobody reads, as one of text does', async () => {
  const body = Buffer.alloc(8_000_000, 0x20);
  for (const path of ['/openapi.json', '/']) {
    const answer = await ask([`GET ${path} HTTP/1.1`, 'Host: x', `Content-Length: ${body.length}`], body);
    const [, length] = /^content-length: (\d+)$/im.exec(answer.head) ?? [];
    expect(answer.body, path).toHaveLength(Number(length));
  }
});
