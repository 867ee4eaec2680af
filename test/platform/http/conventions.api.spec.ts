/** What holds for every route, now and later: the routes come from the OpenAPI document. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openSurface, type Surface } from '../../send.js';
import { eachOf, expectProblem, type ForEachRoute, type Route, routesIn } from './routes.fixture.js';

let surface: Surface;
let routes: Route[];
let forEachRoute: ForEachRoute;
beforeAll(async () => {
  surface = await openSurface();
  routes = await routesIn(surface);
  forEachRoute = eachOf(routes);
});
afterAll(() => surface.close());

it('the document names the routes that there are', () => {
  const names = routes.map(({ method, template }) => `${method} ${template}`);
  expect(names).toEqual(expect.arrayContaining(['POST /v1/runs', 'GET /v1/runs', 'GET /v1/runs/{id}', 'GET /metrics']));
  expect(
    routes
      .filter((route) => route.isOpen)
      .map((route) => route.template)
      .sort(),
  ).toEqual(['/healthz', '/openapi.json', '/readyz']);
});

describe('credentials', () => {
  it.each([
    ['none', null, undefined],
    ['an unknown token', 'cap_unknown', undefined],
    ['another scheme', null, 'Basic Og=='],
    ['an empty token', null, 'Bearer '],
    ['two tokens', null, 'Bearer a b'],
    ['a token with a letter that is none', null, 'Bearer caf\u00e9'],
    ['a token without end', null, `Bearer ${'x'.repeat(4_000)}`],
  ])('%s: 401 on every closed route, whatever the body is', async (_, token, authorization) => {
    const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
    await forEachRoute(
      (route) => !route.isOpen,
      ({ method, path }) =>
        surface.send({
          method,
          path,
          token,
          headers,
          ...(method === 'POST' ? { body: Buffer.from('{"no json') } : {}),
        }),
      (answer, name) => {
        expectProblem(answer, name, 401);
        expect(answer.headers['www-authenticate'], name).toBe('Bearer realm="capstan"');
      },
    );
  });

  it('an open route asks for none', async () => {
    await forEachRoute(
      (route) => route.isOpen,
      ({ method, path }) => surface.send({ method, path, token: null }),
      (answer, name) => expect(answer.status, name).toBe(200),
    );
    expect((await surface.send({ path: '/', token: null })).status).toBe(200);
  });

  it('the scheme may be written in any case', async () => {
    const headers = { authorization: `bEARER ${surface.token}` };
    expect((await surface.send({ path: '/v1/version', token: null, headers })).status).toBe(200);
  });
});

it('every answer bears the request’s id, who answered, and what keeps browsers from guessing', async () => {
  await forEachRoute(
    () => true,
    ({ method, path }) => surface.send({ method, path, headers: { 'x-request-id': 'abc-123' } }),
    (answer, name) => {
      expect(answer.headers['x-request-id'], name).toBe('abc-123');
      expect(answer.headers['capstan-replica'], name).toMatch(/^[A-Za-z0-9][A-Za-z0-9._-]*$/);
      expect(answer.headers, name).toMatchObject({
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-store',
      });
      expect(answer.headers['x-powered-by'], name).toBeUndefined();
      // A balancer may say its own name.
      expect([undefined, 'nginx'], name).toContain(answer.headers.server?.split('/')[0]);
    },
  );
});

it('an unknown parameter is refused on every route of the API', async () => {
  await forEachRoute(
    (route) => route.template.startsWith('/v1/') && !route.hasParameters && route.body === 'none',
    ({ method, path }) => surface.send({ method, path: `${path}?surprise=1` }),
    (answer, name) => {
      expectProblem(answer, name, 422);
      expect(answer.json.errors, name).toEqual([{ pointer: '?surprise', message: 'unknown member' }]);
    },
  );
  const { id } = (
    await surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue: surface.queue } })
  ).json;
  await forEachRoute(
    (route) => route.hasParameters,
    ({ method, template, body }) => {
      const path = template.replace('{id}', id).replace('{name}', surface.queue);
      return surface.send({ method, path: `${path}?surprise=1`, ...(body === 'required' ? { json: {} } : {}) });
    },
    (answer, name) => expectProblem(answer, name, 422),
  );
});

it('an unknown member of a body is refused, and so is one that every object has by birth', async () => {
  await forEachRoute(
    (route) => route.body === 'required',
    ({ method, path }) => surface.send({ method, path, json: { surprise: 1, toString: 2, hasOwnProperty: 3 } }),
    (answer, name) => {
      expectProblem(answer, name, 422);
      const pointers = answer.json.errors.map((error: { pointer: string }) => error.pointer);
      expect(pointers, name).toEqual(expect.arrayContaining(['/surprise', '/toString', '/hasOwnProperty']));
    },
  );
});

it('what a path names is unknown: 404', async () => {
  await forEachRoute(
    // With a body to be looked at, what is wrong with that may be told first.
    (route) => route.hasParameters && route.body === 'none',
    ({ method, path }) => surface.send({ method, path }),
    (answer, name) => expectProblem(answer, name, 404),
  );
  for (const path of [
    '/v1',
    '/v1/',
    '/v1/nothing',
    '/nothing',
    '/v1/runs/',
    '/V1/runs',
    '//v1/runs',
    '/v1/runs/x/y/z',
  ]) {
    expectProblem(await surface.send({ path }), path, 404);
  }
});

it.each(['PATCH', 'OPTIONS', 'DELETE'])('%s is 405 where it is not possible, and names what is', async (method) => {
  await forEachRoute(
    (route) => route.method !== method,
    ({ path }) => surface.send({ method, path }),
    (answer, name, route) => {
      expectProblem(answer, name, 405);
      expect(answer.headers.allow?.split(', '), name).toContain(route.method);
    },
  );
});

it('HEAD is answered as GET is, without the body, unless the answer itself would be recorded', async () => {
  for (const { method, template, path, entries } of routes) {
    if (method !== 'GET') continue;
    const head = await surface.send({ method: 'HEAD', path });
    expect(head.bytes, template).toHaveLength(0);
    if (entries.length === 0) expect(head.status, template).toBe((await surface.send({ path })).status);
    else expect([head.status, head.headers.allow], template).toEqual([405, 'GET']);
  }
});

const json = { 'content-type': 'application/json' };
const bodies: [string, number, { body?: string | Buffer; headers?: Record<string, string> }][] = [
  ['no body', 415, {}],
  ['an empty body', 400, { body: '', headers: json }],
  ['no Content-Type', 415, { body: Buffer.from('{"kind":"noop"}') }],
  ['a form', 415, { body: 'kind=noop', headers: { 'content-type': 'application/x-www-form-urlencoded' } }],
  ['text', 415, { body: '{"kind":"noop"}', headers: { 'content-type': 'text/plain' } }],
  ['a broken Content-Type', 415, { body: '{"kind":"noop"}', headers: { 'content-type': 'json' } }],
  ['another character set', 415, { body: '{}', headers: { 'content-type': 'application/json; charset=latin1' } }],
  ['a compressed body', 415, { body: Buffer.from([0x1f, 0x8b]), headers: { ...json, 'content-encoding': 'gzip' } }],
  ['no JSON', 400, { body: '{"kind":', headers: json }],
  ['two values', 400, { body: '{} {}', headers: json }],
  ['a list', 400, { body: '[]', headers: json }],
  ['null', 400, { body: 'null', headers: json }],
  ['a text', 400, { body: '"noop"', headers: json }],
  ['bytes that are no UTF-8', 400, { body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), headers: json }],
  ['a byte order mark', 400, { body: '\ufeff{"kind":"noop"}', headers: json }],
  ['65 levels', 400, { body: `${'{"a":'.repeat(65)}1${'}'.repeat(65)}`, headers: json }],
  ['half a million brackets', 400, { body: '['.repeat(500_000), headers: json }],
];
it.each(bodies)('S0x-08 %s is %i on every route that takes a body', async (_, status, rest) => {
  await forEachRoute(
    (route) => route.body === 'required',
    ({ method, path }) => surface.send({ method, path, ...rest }),
    (answer, name) => expectProblem(answer, name, status),
  );
});

it('JSON may name its character set, in any case', async () => {
  const body = JSON.stringify({ kind: 'noop', queue: surface.queue });
  for (const type of [
    'application/json; charset=utf-8',
    'Application/JSON;charset="UTF-8"',
    'application/json ; x=y',
  ]) {
    const answer = await surface.send({ method: 'POST', path: '/v1/runs', body, headers: { 'content-type': type } });
    expect(answer.status, `${type}: ${answer.text}`).toBe(201);
  }
});

it.each([
  ['visible ASCII of up to 128 characters', 'x'.repeat(128), true],
  ['a longer one', 'x'.repeat(129), false],
  ['a space', 'a b', false],
  ['letters beyond ASCII', 'caf\u00e9', false],
  ['nothing', '', false],
])('a request id of %s', async (_, id, isKept) => {
  const answer = await surface.send({ path: '/v1/version', headers: { 'x-request-id': id } });
  if (isKept) expect(answer.headers['x-request-id']).toBe(id);
  else expect(answer.headers['x-request-id']).toMatch(/^req_[0-9a-z]{26}$/);
});

it('a version, and the replica that answers', async () => {
  const answer = await surface.send({ path: '/v1/version' });
  expect(answer.json).toEqual({
    name: 'capstan',
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    schema: expect.stringMatching(/^\d{4}_/),
    node: expect.stringMatching(/^\d+\./),
    replica: { name: answer.headers['capstan-replica'], id: expect.toBeOneOf([null, expect.stringMatching(/^wrk_/)]) },
  });
});

it('the first page helps a person on and loads nothing from elsewhere', async () => {
  const answer = await surface.send({ path: '/', token: null });
  expect(answer.headers['content-type']).toBe('text/html; charset=utf-8');
  expect(answer.text).toContain('admin-token');
  expect(answer.text).toContain('capstan run');
  expect(answer.text).toContain('<a href="/docs">');
  expect(answer.text).not.toMatch(/<script|src=|<link|@import|url\(/);
  expect(answer.headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'sha256-/);
});
