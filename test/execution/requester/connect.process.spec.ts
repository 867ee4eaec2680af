/** Where connections really go, with names that resolve to what the test says and real servers at the other end. */
import { createServer as createSecureServer } from 'node:https';
import { describe, expect, it, onTestFinished } from 'vitest';
import { addressRule } from '../../../src/execution/requester/addresses.js';
import type { Lookup } from '../../../src/execution/requester/connect.js';
import { Exchange } from '../../../src/execution/requester/exchange.js';
import type { HttpRequest, Verdict } from '../../../src/execution/supervisor/plan.js';
import { requestOf, until } from '../supervisor/rig.js';
import { CERTIFICATE, PRIVATE_KEY } from './certificate.fixture.js';
import { type Origin, startOrigin } from './origin.fixture.js';

interface Made {
  readonly verdict: Verdict;
  readonly body: string;
  /** Names that were looked up, in order. */
  readonly lookups: readonly string[];
}

/** Answers each lookup with the next of `answers`, the last one again and again. */
function lookupOf(answers: readonly string[][], seen: string[]): Lookup {
  return (name, _options, callback) => {
    const addresses = answers[Math.min(seen.length, answers.length - 1)] ?? [];
    seen.push(name);
    setImmediate(() =>
      callback(
        null,
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      ),
    );
  };
}

function make(http: Partial<HttpRequest>, allow: readonly string[], answers: readonly string[][]): Promise<Made> {
  const lookups: string[] = [];
  let body = '';
  return new Promise((resolve) => {
    const request = { type: 'request', key: 1, runId: 'run_1', fence: 1, http: requestOf(http) } as const;
    new Exchange(request, {
      isAllowed: addressRule(allow),
      lookup: lookupOf(answers, lookups),
      userAgent: 'test',
      onBody: (bytes) => {
        body += bytes.toString();
      },
      onResult: () => {},
      onDone: (verdict) => resolve({ verdict, body, lookups }),
      mayRead: () => true,
    }).start();
  });
}

/** Servers on one port, at two addresses of this machine. */
async function twoOrigins(first: (port: number) => string): Promise<{ outer: Origin; inner: Origin }> {
  const inner = await startOrigin((_request, response) => response.end('secret'), '127.0.0.1');
  const outer = await startOrigin(
    (_request, response) => response.writeHead(302, { Location: first(inner.port) }).end(),
    '127.0.0.2',
    inner.port,
  );
  return { outer, inner };
}

describe('a name', () => {
  it('that stands for something else the second time gets no second request', async () => {
    const { outer, inner } = await twoOrigins((port) => `http://rebind.test:${port}/again`);
    const url = `http://rebind.test:${inner.port}/`;
    const { verdict, lookups } = await make({ url, followRedirects: 5 }, ['127.0.0.2'], [['127.0.0.2'], ['127.0.0.1']]);
    expect(outer.asked).toHaveLength(1);
    expect(verdict).toMatchObject({ code: 'denied', detail: expect.stringContaining('rebind.test (127.0.0.1)') });
    expect(inner.connections.opened).toBe(0);
    expect(lookups).toEqual(['rebind.test', 'rebind.test']);
  });

  it('is looked up once for each connection, so that what was checked is what is connected to', async () => {
    const { outer, inner } = await twoOrigins(() => '/');
    const answers = [['127.0.0.2'], ['127.0.0.1']];
    const { verdict, lookups } = await make({ url: `http://rebind.test:${inner.port}/` }, ['127.0.0.2'], answers);
    expect(verdict.detail).toBe('HTTP status 302 (expected 2xx)');
    expect(lookups).toHaveLength(1);
    expect(outer.asked).toHaveLength(1);
    expect(inner.connections.opened).toBe(0);
  });

  it('with several addresses is tried at the allowed ones only', async () => {
    const inner = await startOrigin((_request, response) => response.end('secret'), '127.0.0.1');
    const outer = await startOrigin((_request, response) => response.end('public'), '127.0.0.3', inner.port);
    const answers = [['127.0.0.1', '169.254.169.254', '127.0.0.3']];
    const { verdict, body } = await make({ url: `http://mixed.test:${inner.port}/` }, ['127.0.0.3'], answers);
    expect(verdict.ok).toBe(true);
    expect(body).toBe('public');
    expect(outer.asked).toHaveLength(1);
    expect(inner.connections.opened).toBe(0);
  });

  it('with no allowed address, or none at all, is denied', async () => {
    const inner = await startOrigin((_request, response) => response.end('secret'));
    const url = `http://inner.test:${inner.port}/`;
    for (const answer of [['127.0.0.1', '::1'], ['::ffff:127.0.0.1'], []]) {
      expect((await make({ url }, [], [answer])).verdict.code, `answer ${answer}`).toBe('denied');
    }
    expect(inner.connections.opened).toBe(0);
  });

  it('that leads past the check is found out by the socket before a byte is sent', async () => {
    const inner = await startOrigin((_request, response) => response.end('secret'));
    // The kernel takes 0.0.0.0 for the loopback address.
    const { verdict } = await make({ url: `http://zero.test:${inner.port}/` }, ['0.0.0.0'], [['0.0.0.0']]);
    expect(verdict).toMatchObject({ code: 'denied', detail: expect.stringContaining('127.0.0.1') });
    await until('the connection is closed', () => inner.connections.closed === inner.connections.opened);
    expect(inner.asked).toEqual([]);
  });
});

describe('a literal address', () => {
  it('that is denied is not connected to, and looked up by nobody', async () => {
    const inner = await startOrigin((_request, response) => response.end('secret'));
    const { verdict, lookups } = await make({ url: `http://127.0.0.1:${inner.port}/` }, [], [['8.8.8.8']]);
    expect(verdict.code).toBe('denied');
    expect(inner.connections.opened).toBe(0);
    expect(lookups).toEqual([]);
  });
});

describe('https', () => {
  async function startSecureOrigin() {
    const asked: string[] = [];
    const shaken = { hands: 0 };
    const server = createSecureServer({ cert: CERTIFICATE, key: PRIVATE_KEY }, (request, response) => {
      asked.push(request.url ?? '');
      response.end('ok');
    });
    server.on('tlsClientError', () => {
      shaken.hands += 1;
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    return { port: address.port, asked, shaken };
  }

  it('sends nothing to a server whose certificate nobody known has signed', async () => {
    const origin = await startSecureOrigin();
    const { verdict } = await make({ url: `https://127.0.0.1:${origin.port}/` }, ['127.0.0.1'], []);
    expect(verdict.detail).toBe(
      "the server's certificate is self-signed (DEPTH_ZERO_SELF_SIGNED_CERT); nothing was sent",
    );
    expect(origin.asked).toEqual([]);
  });

  it('does not even shake hands with an address that is denied', async () => {
    const origin = await startSecureOrigin();
    for (const [url, answers] of [
      [`https://127.0.0.1:${origin.port}/`, []],
      [`https://inner.test:${origin.port}/`, [['127.0.0.1']]],
    ] as const) {
      expect(
        (
          await make(
            { url },
            [],
            answers.map((answer) => [...answer]),
          )
        ).verdict.code,
      ).toBe('denied');
    }
    expect(origin.shaken.hands).toBe(0);
  });

  it('to a server that speaks none is a failure', async () => {
    const plain = await startOrigin((_request, response) => response.end());
    const { verdict } = await make({ url: `https://127.0.0.1:${plain.port}/` }, ['127.0.0.1'], []);
    expect(verdict).toMatchObject({ code: 'tool_failed', detail: expect.stringMatching(/; nothing was sent$/) });
    expect(plain.asked).toEqual([]);
  });
});
