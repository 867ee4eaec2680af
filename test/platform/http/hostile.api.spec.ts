/** Requests that are hostile or broken, byte by byte to one replica: no balancer would pass them on. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LocalSurface, openLocalSurface } from '../../send.js';

let surface: LocalSurface;
let port: number;
beforeAll(async () => {
  surface = await openLocalSurface();
  port = Number(new URL(await surface.base()).port);
});
afterAll(() => surface.close());

const json = { 'content-type': 'application/json' };

/** A submit whose body has exactly this many bytes. */
function bodyOf(bytes: number): Buffer {
  const empty = JSON.stringify({ kind: 'noop', queue: surface.queue, name: '' });
  return Buffer.from(empty.replace('"name":""', `"name":"${'x'.repeat(bytes - empty.length)}"`));
}

/** Everything a connection answers to these bytes, until it is closed. */
function exchange(...parts: readonly (string | Buffer)[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    const answer: Buffer[] = [];
    socket.on('data', (part: Buffer) => answer.push(part));
    socket.on('close', () => resolve(Buffer.concat(answer).toString()));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
    });
    for (const part of parts) socket.write(part);
  });
}

describe('F083 the size of a body', () => {
  it('20 MB are refused by their announced length, before they are sent', async () => {
    const answer = await exchange(
      `POST /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${surface.token}\r\n`,
      'Content-Type: application/json\r\nContent-Length: 20000000\r\nConnection: close\r\n\r\n{',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(answer).toContain('body_too_large');
  });

  it('a caller that sends all of a body that is too large before it reads is told so, and not cut off', async () => {
    const body = bodyOf(8_000_000);
    const head = `POST /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${surface.token}\r\n`;
    const socket = connect(port, '127.0.0.1').pause();
    await new Promise<void>((resolve, reject) => {
      socket.on('error', reject);
      socket.write(
        `${head}Content-Type: application/json\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`,
      );
      socket.write(body, () => resolve());
    });
    const [first] = await once(socket.resume(), 'data');
    expect(String(first)).toMatch(/^HTTP\/1\.1 413 /);
    await once(socket, 'close');
  });

  it('a compressed body is never inflated, whatever it would become', async () => {
    // A file of gzip may have several members: made from one, the whole was never in this process's memory.
    const member = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    const [members, inflated] = [15, 15 * 64 * 1024 * 1024];
    const bomb = Buffer.concat(Array(members).fill(member));
    expect(bomb.length, 'as large as a body may be').toBeLessThan(1024 * 1024);
    const before = process.memoryUsage().rss;
    for (const encoding of ['gzip', 'deflate', 'br', 'GZIP', 'identity, gzip']) {
      const headers = { ...json, 'content-encoding': encoding };
      const answer = await surface.send({ method: 'POST', path: '/v1/runs', body: bomb, headers, overTheWire: true });
      expect(answer.status, encoding).toBe(415);
    }
    // Far above what the requests and a late garbage collection come to, far below what one of them would inflate to.
    expect(process.memoryUsage().rss - before).toBeLessThan(inflated / 4);
  });
});

describe('what is no request still gets an answer that a person can read', () => {
  it.each([
    ['garbage', 'hello\r\n\r\n'],
    ['headers without end', `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(70_000)}\r\n\r\n`],
    ['two lengths', 'POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}'],
    ['a header with NUL', 'GET / HTTP/1.1\r\nHost: x\r\nX-A: a\0b\r\n\r\n'],
  ])('%s', async (_, bytes) => {
    const answer = await exchange(bytes);
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(answer).toContain('Content-Type: application/problem+json');
    const body = JSON.parse(answer.split('\r\n\r\n')[1] ?? '');
    expect(body).toMatchObject({ status: 400, code: 'malformed_request', requestId: expect.stringMatching(/^req_/) });
  });

  it('a connection that sends its request too slowly is bounded, and so is an idle one', () => {
    const server = surface.app.getHttpServer();
    expect(server.headersTimeout).toBeLessThanOrEqual(15_000);
    expect(server.requestTimeout).toBeLessThanOrEqual(30_000);
    expect(server.keepAliveTimeout).toBeGreaterThan(60_000);
  });

  it('a caller that hangs up in the middle of its body leaves the server as it was', async () => {
    await new Promise<void>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.write(`POST /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${surface.token}\r\n`);
        socket.write('Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"kind"', () => {
          socket.destroy();
          resolve();
        });
      });
    });
    expect((await surface.send({ path: '/v1/version', overTheWire: true })).status).toBe(200);
  });
});
