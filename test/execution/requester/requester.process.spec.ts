/** Runs of kind `http` through a real supervisor and its requester, to real servers of this machine. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { HttpRequest } from '../../../src/execution/supervisor/plan.js';
import { INITIAL_CREDIT_BYTES } from '../../../src/execution/supervisor/protocol.js';
import {
  childrenOf,
  isRunning,
  type LaunchedTool,
  livingMembers,
  type Rig,
  startRig,
  until,
  within,
} from '../supervisor/rig.js';
import { CERTIFICATE, PRIVATE_KEY } from './certificate.fixture.js';
import { startOrigin, startSecureOrigin, startSocketOrigin } from './origin.fixture.js';

const LOCAL = ['127.0.0.0/8'];
const SELF = { exitCode: null, signal: null, cause: 'self', leftovers: false } as const;
const STOPPED = { exitCode: null, signal: null, leftovers: false } as const;

const resultOf = (run: LaunchedTool) => JSON.parse(run.text(4));

async function requesterOf(rig: Rig): Promise<number> {
  let pids: number[] = [];
  await until('the requester is there', () => {
    pids = childrenOf(rig.pid);
    return pids.length === 1;
  });
  return pids[0] ?? 0;
}

describe('a request', () => {
  it('goes out as it was told, with the run’s id and fence, and its answer is output and result', async () => {
    const origin = await startOrigin((_request, response) => {
      response.writeHead(201, { 'X-Reply': 'yes', 'Set-Cookie': ['a=1', 'b=2'], Vary: ['A', 'B'] });
      response.end('created: größe');
    });
    const rig = await startRig({ allow: LOCAL });
    const run = rig.request({
      method: 'POST',
      url: `${origin.url}/things?q=1`,
      headers: { 'Content-Type': 'application/json', Authorization: 'Bearer s3cret' },
      body: '{"größe":1}',
    });
    expect(await run.outcome).toEqual({ ...SELF, verdict: { ok: true, code: 'ok', detail: 'HTTP status 201' } });
    const [asked] = origin.asked;
    expect(asked).toMatchObject({ method: 'POST', path: '/things?q=1', body: '{"größe":1}' });
    expect(asked?.headers).toMatchObject({
      host: `127.0.0.1:${origin.port}`,
      'content-type': 'application/json',
      authorization: 'Bearer s3cret',
      'capstan-run-id': run.runId,
      'capstan-fence': '1',
      'user-agent': 'capstan/test',
    });
    expect(asked?.headers).not.toHaveProperty('accept-encoding');
    expect(run.text(1)).toBe('created: größe');
    expect(resultOf(run)).toMatchObject({
      status: 201,
      url: `${origin.url}/things?q=1`,
      headers: { 'x-reply': 'yes', 'set-cookie': ['a=1', 'b=2'], vary: 'A, B' },
      body: 'created: größe',
      bodyBytes: 16,
      bodyTruncated: false,
    });
  });

  it('has its body framed, whatever the method', async () => {
    const origin = await startOrigin((_request, response) =>
      response.writeHead(200, { 'Content-Length': 2 }).end('ok'),
    );
    const rig = await startRig({ allow: LOCAL });
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      expect(await rig.request({ url: origin.url, method, body: 'größe' }).outcome).toMatchObject({
        verdict: { ok: true },
      });
    }
    await rig.request({ url: origin.url, method: 'POST' }).outcome;
    const head = rig.request({ url: origin.url, method: 'HEAD' });
    expect(await head.outcome).toMatchObject({ verdict: { ok: true } });
    expect(resultOf(head)).toMatchObject({ body: '', headers: { 'content-length': '2' }, bodyTruncated: false });
    expect(origin.asked.map(({ method, body }) => `${method} ${body}`)).toEqual([
      'POST größe',
      'PUT größe',
      'PATCH größe',
      'DELETE größe',
      'OPTIONS größe',
      'POST ',
      'HEAD ',
    ]);
    expect(origin.asked[5]?.headers['content-length']).toBe('0');
  });

  it('names itself as the caller wants', async () => {
    const origin = await startOrigin((_request, response) => response.end());
    const rig = await startRig({ allow: LOCAL });
    await rig.request({ url: origin.url, headers: { 'user-agent': 'mine' } }).outcome;
    expect(origin.asked[0]?.headers['user-agent']).toBe('mine');
  });

  it.each([
    [503, null, { ok: false, code: 'tool_failed', detail: 'HTTP status 503 (expected 2xx)' }],
    [200, [201, 202], { ok: false, code: 'tool_failed', detail: 'HTTP status 200 (expected 201, 202)' }],
    [404, [404], { ok: true, code: 'ok', detail: 'HTTP status 404' }],
  ])('is judged by its status: %i where %j is expected', async (status, expectedStatus, verdict) => {
    const origin = await startOrigin((_request, response) => response.writeHead(status).end('body'));
    const rig = await startRig({ allow: LOCAL });
    const run = rig.request({ url: origin.url, expectedStatus });
    expect(await run.outcome).toEqual({ ...SELF, verdict });
    expect(resultOf(run)).toMatchObject({ status, body: 'body' });
  });

  it('makes no process before the first, one for all, and another after that was killed', async () => {
    const origin = await startOrigin((request, response) => {
      if (request.url !== '/hang') response.end('ok');
    });
    const rig = await startRig({ allow: LOCAL });
    expect(childrenOf(rig.pid)).toEqual([]);
    const hanging = rig.request({ url: `${origin.url}/hang` });
    await until('the request arrived', () => origin.asked.length === 1);
    const first = await requesterOf(rig);
    expect(await hanging.pgid).toBe(first);
    await rig.request({ url: origin.url }).outcome;
    expect(await requesterOf(rig)).toBe(first);
    process.kill(first, 'SIGKILL');
    expect(await hanging.outcome).toMatchObject({ cause: 'self', verdict: { ok: false, code: 'internal' } });
    expect(isRunning(first)).toBe(false);
    expect(await rig.request({ url: origin.url }).outcome).toMatchObject({ verdict: { ok: true } });
    expect(await requesterOf(rig)).not.toBe(first);
  });

  it('fails with what went wrong, and says whether anything was sent', async () => {
    const cut = await startSocketOrigin((socket) => {
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf');
    });
    const noise = await startSocketOrigin((socket) => socket.end('SSH-2.0-OpenSSH\r\n'));
    const upgrade = await startSocketOrigin((socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n');
    });
    const rig = await startRig({ allow: LOCAL });
    const detailOf = async (url: string) => (await rig.request({ url }).outcome).verdict?.detail;
    expect(await detailOf('http://127.0.0.1:1/')).toBe('the connection was refused (ECONNREFUSED); nothing was sent');
    expect(await detailOf('http://name.invalid/')).toMatch(
      /^the name could not be resolved \(E\w+\); nothing was sent$/,
    );
    expect(await detailOf(noise.url)).toMatch(
      /^the answer is not valid HTTP .*; the request may have been carried out$/,
    );
    expect(await detailOf(upgrade.url)).toMatch(/^the connection ended before the answer was complete/);
    const run = rig.request({ url: cut.url });
    expect((await run.outcome).verdict).toMatchObject({ ok: false, code: 'tool_failed' });
    expect(resultOf(run)).toMatchObject({ status: 200, body: 'half', bodyBytes: 4, bodyTruncated: true });
  });

  it.each([
    ['a body longer than was said', 'GET', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdefgh', 'abc'],
    [
      'more where the end was agreed',
      'GET',
      'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabcdefgh',
      'abc',
    ],
    [
      'more behind the last chunk',
      'GET',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\ndefgh',
      'abc',
    ],
    ['a body where none may be', 'GET', 'HTTP/1.1 204 No Content\r\n\r\nabc', ''],
    ['a body for HEAD', 'HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc', ''],
    ['a second answer', 'GET', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 500 No\r\n\r\n', 'abc'],
  ])('has the answer that is whole, whatever comes behind it: %s', async (_what, method, answer, body) => {
    const origin = await startSocketOrigin((socket) => socket.write(answer));
    const rig = await startRig({ allow: LOCAL });
    const run = rig.request({ url: origin.url, method });
    expect(await run.outcome).toMatchObject({ cause: 'self', verdict: { ok: true, code: 'ok' } });
    expect(run.text(1)).toBe(body);
    expect(resultOf(run)).toMatchObject({ body, bodyBytes: body.length, bodyTruncated: false });
    await until('the connection is closed', () => origin.connections.closed === 1);
  });

  it('has what came of an answer before the fault, also in one piece with it', async () => {
    const origin = await startSocketOrigin((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nno chunk\r\n');
    });
    const rig = await startRig({ allow: LOCAL });
    const run = rig.request({ url: origin.url });
    expect((await run.outcome).verdict).toMatchObject({
      code: 'tool_failed',
      detail: expect.stringMatching(/^the answer is not valid HTTP/),
    });
    expect(run.text(1)).toBe('abc');
    expect(resultOf(run)).toMatchObject({ status: 200, body: 'abc', bodyBytes: 3, bodyTruncated: true });
  });

  it('trusts the certificates of the setting besides Node’s own', async () => {
    const origin = await startSecureOrigin(CERTIFICATE, PRIVATE_KEY);
    const plain = await startRig({ allow: LOCAL });
    const caFile = join(plain.scratch, 'ca.pem');
    writeFileSync(caFile, CERTIFICATE);
    expect((await plain.request({ url: origin.url }).outcome).verdict?.detail).toContain('self-signed');
    const trusting = await startRig({ allow: LOCAL, caFile });
    expect(await trusting.request({ url: origin.url }).outcome).toMatchObject({ verdict: { ok: true } });
  });

  it('that cannot be sent fails alone', async () => {
    const origin = await startOrigin(() => {});
    const rig = await startRig({ allow: LOCAL });
    const other = rig.request({ url: origin.url });
    await until('the other request arrived', () => origin.asked.length === 1);
    const unfit: Partial<HttpRequest>[] = [
      { url: 'nonsense' },
      { method: 'BAD METHOD' },
      { headers: { A: 'x\ny' } },
      { headers: { 'a b': '' } },
    ];
    for (const http of unfit) {
      const { verdict } = await rig.request({ url: origin.url, ...http }).outcome;
      expect(verdict).toMatchObject({
        ok: false,
        code: 'tool_failed',
        detail: expect.stringMatching(/nothing was sent$/),
      });
    }
    rig.supervisor.stop(other.key, 'cancel');
    expect(await other.outcome).toEqual({ ...STOPPED, cause: 'cancel' });
  });

  it('has a result that can be stored whatever the body holds', async () => {
    const bodies: Record<string, Buffer> = {
      '/binary': Buffer.from([0xff, 0, 1]),
      '/nul': Buffer.from('a\0b'),
      '/long': Buffer.from('ü'.repeat(100_000)),
      '/control': Buffer.alloc(300_000, 1),
    };
    const origin = await startOrigin((request, response) => response.end(bodies[request.url ?? '']));
    const rig = await startRig({ allow: LOCAL });
    const run = async (path: string) => {
      const one = rig.request({ url: `${origin.url}${path}` });
      expect(await one.outcome).toMatchObject({ verdict: { ok: true } });
      expect(one.bytes(1).equals(bodies[path] ?? Buffer.alloc(0))).toBe(true);
      expect(one.bytes(4).length).toBeLessThan(256 * 1024);
      return resultOf(one);
    };
    expect(await run('/binary')).toMatchObject({ bodyBase64: '/wAB', bodyBytes: 3, bodyTruncated: false });
    expect(await run('/nul')).toMatchObject({ bodyBase64: 'YQBi' });
    const long = await run('/long');
    expect(long).toMatchObject({ body: 'ü'.repeat(65_536), bodyBytes: 200_000, bodyTruncated: true });
    expect(await run('/control')).toMatchObject({ bodyBase64: expect.any(String), bodyTruncated: true });
  });
});

describe('a redirect', () => {
  it('is the answer where none are followed', async () => {
    const origin = await startOrigin((_request, response) => response.writeHead(302, { Location: '/next' }).end());
    const rig = await startRig({ allow: LOCAL });
    const run = rig.request({ url: origin.url });
    expect((await run.outcome).verdict?.detail).toBe('HTTP status 302 (expected 2xx)');
    expect(resultOf(run)).toMatchObject({ status: 302, headers: { location: '/next' } });
    expect(origin.asked).toHaveLength(1);
  });

  it('is followed as often as was said, the last being the answer', async () => {
    const origin = await startOrigin((request, response) => {
      const hop = Number(request.url?.slice(1));
      if (hop === 3) response.end('there');
      else response.writeHead(302, { Location: `/${hop + 1}` }).end('ignored');
    });
    const rig = await startRig({ allow: LOCAL });
    const whole = rig.request({ url: `${origin.url}/0`, followRedirects: 3 });
    expect(await whole.outcome).toMatchObject({ verdict: { ok: true } });
    expect(whole.text(1)).toBe('there');
    expect(resultOf(whole).url).toBe(`${origin.url}/3`);
    const short = rig.request({ url: `${origin.url}/0`, followRedirects: 2 });
    expect((await short.outcome).verdict?.detail).toBe('HTTP status 302 (expected 2xx)');
    expect(resultOf(short).url).toBe(`${origin.url}/2`);
  });

  it('to another origin carries nothing that was meant for the first', async () => {
    const other = await startOrigin((_request, response) => response.end());
    const origin = await startOrigin((_request, response) =>
      response.writeHead(307, { Location: `${other.url}/there` }).end(),
    );
    const rig = await startRig({ allow: LOCAL });
    const headers = { Authorization: 'Bearer s3cret', 'X-Api-Key': 's3cret', Cookie: 'a=s3cret', Accept: 'text/plain' };
    await rig.request({ url: origin.url, headers, method: 'POST', body: 'x', followRedirects: 1 }).outcome;
    expect(origin.asked[0]?.headers).toMatchObject({ 'x-api-key': 's3cret' });
    expect(other.asked).toHaveLength(1);
    expect(JSON.stringify(other.asked[0]?.headers)).not.toContain('s3cret');
    expect(other.asked[0]?.headers).toMatchObject({ accept: 'text/plain', 'capstan-fence': '1' });
  });

  it('to an address that is not allowed ends there', async () => {
    const inner = await startOrigin((_request, response) => response.end('secret'), '127.0.0.1');
    const outer = await startOrigin(
      (_request, response) => response.writeHead(302, { Location: `http://127.0.0.1:${inner.port}/` }).end(),
      '127.0.0.2',
    );
    const rig = await startRig({ allow: ['127.0.0.2'] });
    const run = rig.request({ url: outer.url, followRedirects: 5 });
    expect((await run.outcome).verdict).toMatchObject({ ok: false, code: 'denied' });
    expect(inner.connections.opened).toBe(0);
  });

  it.each(['file:///etc/passwd', 'ftp://127.0.0.1/', 'http://[', `/a?${'x'.repeat(9_000)}`])(
    'to what cannot be followed is a failure: %s',
    async (location) => {
      const origin = await startOrigin((_request, response) => response.writeHead(302, { Location: location }).end());
      const rig = await startRig({ allow: LOCAL });
      const { verdict } = await rig.request({ url: origin.url, followRedirects: 5 }).outcome;
      expect(verdict).toMatchObject({
        ok: false,
        code: 'tool_failed',
        detail: expect.stringMatching(/^a redirect leads/),
      });
    },
  );
});

describe('an address that is not public', () => {
  it.each([
    'http://127.0.0.1:PORT/',
    'http://2130706433:PORT/',
    'http://0x7f.1:PORT/',
    'http://0177.0.0.1:PORT/',
    'http://0:PORT/',
    'http://[::1]:PORT/',
    'http://[::ffff:127.0.0.1]:PORT/',
    'http://[::ffff:7f00:1]:PORT/',
    'http://[::]:PORT/',
    'http://localhost:PORT/',
  ])('is denied without a byte on the way: %s', async (pattern) => {
    const origin = await startOrigin((_request, response) => response.end('secret'));
    const rig = await startRig();
    const run = rig.request({ url: pattern.replace('PORT', String(origin.port)) });
    const { verdict } = await run.outcome;
    expect(verdict).toMatchObject({ ok: false, code: 'denied' });
    expect(verdict?.detail).toContain('CAPSTAN_HTTP_ALLOW');
    expect(origin.connections.opened).toBe(0);
    expect(run.chunks).toEqual([]);
  });

  it('is denied by where the socket ends up, whatever was allowed on the way there', async () => {
    const origin = await startOrigin((_request, response) => response.end('secret'));
    const rig = await startRig({ allow: ['0.0.0.0'] });
    // The kernel takes "this host" for the loopback address.
    const { verdict } = await rig.request({ url: `http://0.0.0.0:${origin.port}/` }).outcome;
    expect(verdict).toMatchObject({ code: 'denied', detail: expect.stringContaining('127.0.0.1') });
    expect(origin.asked).toEqual([]);
  });

  it('is taken where the setting names it', async () => {
    const origin = await startOrigin((_request, response) => response.end('ok'));
    for (const allow of [['127.0.0.1'], ['10.0.0.0/8', '127.0.0.0/8'], ['*']]) {
      const rig = await startRig({ allow });
      expect(await rig.request({ url: origin.url }).outcome).toMatchObject({ verdict: { ok: true } });
    }
  });
});

describe('a request under way', () => {
  it('S0-60 is canceled at once, and the server sees the connection close', async () => {
    const origin = await startOrigin(() => {});
    const rig = await startRig({ allow: LOCAL, graceMs: 60_000 });
    const run = rig.request({ url: origin.url });
    await until('the request arrived', () => origin.asked.length === 1);
    rig.supervisor.stop(run.key, 'cancel');
    expect(await within(900, 'the end', run.outcome)).toEqual({ ...STOPPED, cause: 'cancel' });
    await until('the server saw the close', () => origin.connections.closed === 1);
    expect(livingMembers(await run.pgid), 'the requester serves other runs').toHaveLength(1);
  });

  it('is canceled in the middle of a body that never ends', async () => {
    const origin = await startOrigin((_request, response) => {
      const pump = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536)));
      };
      response.on('drain', pump);
      pump();
    });
    const rig = await startRig({ allow: LOCAL });
    const run = rig.request({ url: origin.url });
    await until('output came', () => run.bytes(1).length > 2_000_000);
    rig.supervisor.stop(run.key, 'cancel');
    expect(await run.outcome).toEqual({ ...STOPPED, cause: 'cancel' });
    const { bodyBytes, bodyTruncated, ...rest } = resultOf(run);
    expect(rest).toMatchObject({ status: 200, url: `${origin.url}/` });
    expect(bodyTruncated).toBe(true);
    expect(bodyBytes, 'the result counts what was output').toBe(run.bytes(1).length);
  });

  it.each([
    ['timeout', {}, { timeoutMs: 1_000 }],
    ['cancel', {}, {}],
    ['drain', {}, {}],
    ['deadline', { deadlineMs: 1_500, isRenewed: false }, {}],
  ] as const)('keeps what came of the answer at its %s', async (cause, rigOptions, options) => {
    const origin = await startOrigin((_request, response) => {
      response.writeHead(206, { 'X-Job': '17' });
      response.write('so far');
    });
    const rig = await startRig({ allow: LOCAL, ...rigOptions });
    rig.renew();
    const run = rig.request({ url: origin.url }, options);
    await until('the beginning came', () => run.text(1) === 'so far');
    if (cause === 'drain') await rig.supervisor.shutdown();
    if (cause === 'cancel') rig.supervisor.stop(run.key, cause);
    expect(await run.outcome).toEqual({ ...STOPPED, cause });
    expect(resultOf(run)).toMatchObject({
      status: 206,
      headers: { 'x-job': '17' },
      body: 'so far',
      bodyBytes: 6,
      bodyTruncated: true,
    });
  });

  it('keeps the answer when it is stopped while there is no credit for it', async () => {
    const origin = await startOrigin((_request, response) => response.end(Buffer.alloc(INITIAL_CREDIT_BYTES * 2)));
    const rig = await startRig({ allow: LOCAL });
    const run = rig.request({ url: origin.url }, { credit: 'withheld' });
    await until('the credit is used up', () => run.spentCredit() >= INITIAL_CREDIT_BYTES);
    rig.supervisor.stop(run.key, 'cancel');
    expect(await run.outcome).toEqual({ ...STOPPED, cause: 'cancel' });
    expect(resultOf(run)).toMatchObject({ status: 200, bodyBytes: run.bytes(1).length, bodyTruncated: true });
  });

  it('ends at its timeout', async () => {
    const origin = await startOrigin(() => {});
    const rig = await startRig({ allow: LOCAL });
    const run = rig.request({ url: origin.url }, { timeoutMs: 300 });
    expect(await run.outcome).toEqual({ ...STOPPED, cause: 'timeout' });
    expect(run.chunks, 'nothing came, nothing is told').toEqual([]);
    await until('the server saw the close', () => origin.connections.closed === 1);
  });

  it('F109 stands still without credit, however much the server has to say', async () => {
    const origin = await startOrigin((request, response) => {
      if (request.url === '/short') {
        response.end();
        return;
      }
      const pump = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536)));
      };
      response.on('drain', pump);
      pump();
    });
    const rig = await startRig({ allow: LOCAL });
    const run = rig.request({ url: origin.url }, { credit: 'withheld' });
    await until('the credit is used up', () => run.spentCredit() >= INITIAL_CREDIT_BYTES);
    // Others go through the same process meanwhile, each of them a chance to read on.
    for (let others = 0; others < 20; others += 1) await rig.request({ url: `${origin.url}/short` }).outcome;
    expect(run.bytes(1).length).toBeLessThan(256 * 1024 + 65_537);
    rig.supervisor.grantCredit(run.key, 1_000_000);
    await until('more came', () => run.bytes(1).length >= 1_200_000);
    rig.supervisor.stop(run.key, 'cancel');
    expect(await run.outcome).toMatchObject({ cause: 'cancel' });
  });

  it('holds its result back until there is credit for it', async () => {
    let finish = () => {};
    const origin = await startOrigin((request, response) => {
      if (request.url === '/short') {
        response.end();
        return;
      }
      response.writeHead(200, { 'Content-Length': INITIAL_CREDIT_BYTES }).write(Buffer.alloc(200_000, 'x'));
      finish = () => response.end(Buffer.alloc(INITIAL_CREDIT_BYTES - 200_000, 'x'));
    });
    const rig = await startRig({ allow: LOCAL });
    const run = rig.request({ url: origin.url }, { credit: 'withheld' });
    // In two pieces, so that the last chunk, the one that uses up the credit, is not a small one behind it.
    await until('the first piece came', () => run.bytes(1).length === 200_000);
    finish();
    await until('the body came', () => run.bytes(1).length === INITIAL_CREDIT_BYTES);
    rig.supervisor.grantCredit(run.key, run.spentCredit() - INITIAL_CREDIT_BYTES);
    await rig.request({ url: `${origin.url}/short` }).outcome;
    expect(run.text(4)).toBe('');
    rig.supervisor.grantCredit(run.key, 1);
    expect(await run.outcome).toMatchObject({ verdict: { ok: true } });
    expect(resultOf(run)).toMatchObject({ bodyBytes: INITIAL_CREDIT_BYTES, bodyTruncated: true });
  });

  it('is bounded against headers without end, and informational answers without end', async () => {
    const long = await startSocketOrigin((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      const pump = () => {
        while (!socket.destroyed && socket.write(`x-a: ${'a'.repeat(1_000)}\r\n`));
      };
      socket.on('drain', pump);
      pump();
    });
    const hints = await startSocketOrigin((socket) => {
      socket.write('HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(50));
      socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
    });
    const rig = await startRig({ allow: LOCAL });
    const { verdict } = await rig.request({ url: long.url }).outcome;
    expect(verdict?.detail).toMatch(/^the headers of the answer are longer than 16 KiB/);
    const run = rig.request({ url: hints.url, followRedirects: 2 });
    expect(await run.outcome).toMatchObject({ verdict: { ok: true } });
    expect(resultOf(run)).toMatchObject({ status: 200, body: 'ok' });
  });

  it('is stopped at the deadline, and none goes out behind it', async () => {
    const origin = await startOrigin(() => {});
    const rig = await startRig({ allow: LOCAL, deadlineMs: 1_500, isRenewed: false });
    rig.renew();
    const run = rig.request({ url: origin.url });
    await until('the request arrived', () => origin.asked.length === 1);
    expect(await run.outcome).toEqual({ ...STOPPED, cause: 'deadline' });
    expect(await rig.request({ url: origin.url }).outcome).toEqual({ refused: 'deadline' });
    expect(origin.asked).toHaveLength(1);
  });

  it('ends as lost with its supervisor, and only when the requester is gone', async () => {
    const origin = await startOrigin(() => {});
    const rig = await startRig({ allow: LOCAL });
    const run = rig.request({ url: origin.url });
    await until('the request arrived', () => origin.asked.length === 1);
    const pgid = await run.pgid;
    process.kill(rig.pid, 'SIGKILL');
    expect(await run.outcome).toEqual({ ...STOPPED, cause: 'lost' });
    expect(livingMembers(pgid), 'the end was told while the request was under way').toEqual([]);
    await until('the server saw the close', () => origin.connections.closed === 1);
  });

  it('ends with the shutdown of its supervisor, and the requester with it', async () => {
    const origin = await startOrigin(() => {});
    const rig = await startRig({ allow: LOCAL });
    const run = rig.request({ url: origin.url });
    await until('the request arrived', () => origin.asked.length === 1);
    const pgid = await run.pgid;
    await rig.supervisor.shutdown();
    expect(await run.outcome).toEqual({ ...STOPPED, cause: 'drain' });
    expect(livingMembers(pgid)).toEqual([]);
  });

  it('is not told as stopped by a requester that stands still: that is killed first', async () => {
    const origin = await startOrigin(() => {});
    const rig = await startRig({ allow: LOCAL });
    const run = rig.request({ url: origin.url });
    await until('the request arrived', () => origin.asked.length === 1);
    const pgid = await run.pgid;
    process.kill(pgid, 'SIGSTOP');
    rig.supervisor.stop(run.key, 'cancel');
    expect(await run.outcome).toEqual({ ...STOPPED, cause: 'cancel' });
    expect(livingMembers(pgid), 'the end was told while the request was under way').toEqual([]);
    await until('the server saw the close', () => origin.connections.closed === 1);
  });

  it('a requester that is idle ends at once when its supervisor is killed', async () => {
    const origin = await startOrigin((_request, response) => response.end());
    const rig = await startRig({ allow: LOCAL });
    await rig.request({ url: origin.url }).outcome;
    const pid = await requesterOf(rig);
    process.kill(rig.pid, 'SIGKILL');
    await until('the requester is gone', () => !isRunning(pid), 2_000);
  });
});
