/** The spec of kind `http` as it comes in: completed with its defaults, or refused with a pointer for each fault. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, openSurface, type Surface } from '../send.js';

let surface: Surface;
beforeAll(async () => {
  surface = await openSurface();
});
afterAll(() => surface.close());

const URL_ = 'https://example.com/a?b=1';

function submit(spec: object): Promise<Answer> {
  return surface.send({ method: 'POST', path: '/v1/runs', json: { queue: surface.queue, kind: 'http', spec } });
}

function pointersOf(answer: Answer): string[] {
  expect(answer.status, answer.text.slice(0, 500)).toBe(422);
  return answer.json.errors.map((error: { pointer: string }) => error.pointer);
}

it('a request needs a URL and nothing else, and is stored complete', async () => {
  const answer = await submit({ url: URL_ });
  expect(answer.status).toBe(201);
  expect(answer.json).toMatchObject({ kind: 'http', output: null });
  expect(answer.json.spec).toEqual({
    method: 'GET',
    url: URL_,
    headers: {},
    body: null,
    expectedStatus: null,
    followRedirects: 0,
  });
  const whole = {
    method: 'PATCH',
    url: 'HTTP://EXAMPLE.com:8080',
    headers: { 'X-Size': 'gr\u00f6\u00dfe\tx' },
    body: 'größe',
    expectedStatus: [200, 404],
    followRedirects: 10,
  };
  expect((await submit(whole)).json.spec).toEqual(whole);
});

it('every fault of a request is reported at once, with a pointer to its place', async () => {
  const answer = await submit({
    method: 'get',
    url: 'ftp://example.com/',
    headers: { Host: 'a', 'a b': '1', A: '1', a: '2', B: 1, C: 'x\ny' },
    body: 1,
    expectedStatus: [200, 99, 200],
    followRedirects: 11,
    timeout: '1s',
  });
  expect(pointersOf(answer).sort()).toEqual(
    [
      '/spec/method',
      '/spec/url',
      '/spec/headers/Host',
      '/spec/headers/a b',
      '/spec/headers/a',
      '/spec/headers/B',
      '/spec/headers/C',
      '/spec/body',
      '/spec/expectedStatus/1',
      '/spec/expectedStatus/2',
      '/spec/followRedirects',
      '/spec/timeout',
    ].sort(),
  );
});

it.each([
  undefined,
  null,
  1,
  '',
  '/relative',
  'example.com',
  '//example.com',
  'http:example.com',
  'http:/example.com',
  'http://',
  'file:///etc/passwd',
  'ftp://example.com/',
  'javascript:alert(1)',
  'http://user@example.com/',
  'http://user:word@example.com/',
  'http://:word@example.com/',
  'http://example.com/#part',
  'http://example.com/#',
  ' http://example.com/',
  'http://example.com/a b',
  'http://example.com/\r\nHost: evil',
  'http://exa\tmple.com/',
  'http://example.com:99999/',
  'http://[::1/',
  'http://256.1.1.1/',
  `http://example.com/${'x'.repeat(8_192)}`,
  `http://example.com/${'ü'.repeat(4_000)}`,
])('a URL that cannot be meant is refused: %j', async (url) => {
  expect(pointersOf(await submit({ url }))).toEqual(['/spec/url']);
});

it.each([
  'Connection',
  'content-length',
  'Expect',
  'HOST',
  'Keep-Alive',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'Proxy-Authorization',
  'Proxy-Anything',
  'Capstan-Run-Id',
  'capstan-anything',
  'bad name',
  'bad:name',
  'gr\u00f6\u00dfe',
  '',
])('a header that is not the caller’s is refused: %s', async (name) => {
  expect(pointersOf(await submit({ url: URL_, headers: { [name]: 'x' } }))).toEqual([`/spec/headers/${name}`]);
});

it.each(['a\r\nB: c', 'a\u0000', '\u007f', '€', 1, null, ['a'], 'x'.repeat(8_193)])(
  'a header’s value that cannot be sent is refused: %j',
  async (value) => {
    expect(pointersOf(await submit({ url: URL_, headers: { A: value } }))).toEqual(['/spec/headers/A']);
  },
);

it('the number of headers is bounded', async () => {
  const headers = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`h${i}`, '1']));
  expect((await submit({ url: URL_, headers: headers(64) })).status).toBe(201);
  expect(pointersOf(await submit({ url: URL_, headers: headers(65) }))).toEqual(['/spec/headers']);
});

it('GET and HEAD have no body, the others may', async () => {
  for (const method of ['GET', 'HEAD']) {
    expect(pointersOf(await submit({ url: URL_, method, body: '' }))).toEqual(['/spec/body']);
    expect((await submit({ url: URL_, method, body: null })).status).toBe(201);
  }
  expect(pointersOf(await submit({ url: URL_, body: 'x' }))).toEqual(['/spec/body']);
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    expect((await submit({ url: URL_, method, body: '' })).status).toBe(201);
  }
  expect(pointersOf(await submit({ url: URL_, method: 'CONNECT' }))).toEqual(['/spec/method']);
  expect(pointersOf(await submit({ url: URL_, method: 'TRACE' }))).toEqual(['/spec/method']);
});

it('expected statuses are statuses, and some', async () => {
  expect((await submit({ url: URL_, expectedStatus: [100, 599] })).status).toBe(201);
  for (const expectedStatus of [[], 200, '2xx', Array.from({ length: 65 }, (_, i) => 200 + i)]) {
    expect(pointersOf(await submit({ url: URL_, expectedStatus }))).toEqual(['/spec/expectedStatus']);
  }
  expect(pointersOf(await submit({ url: URL_, expectedStatus: [200.5] }))).toEqual(['/spec/expectedStatus/0']);
  expect(pointersOf(await submit({ url: URL_, expectedStatus: [600] }))).toEqual(['/spec/expectedStatus/0']);
});
