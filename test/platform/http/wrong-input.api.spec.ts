/** What a route can't take it refuses with a reason, on every route: derived from the OpenAPI document's own schemas. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../../src/kernel/ids.js';
import { type Document, resolved, type Schema } from '../../openapi-operations.js';
import { validatorOf } from '../../openapi-validator.js';
import { openSurface, type Surface } from '../../send.js';
import { documentOf, eachOf, expectProblem, type ForEachRoute, type Route, routesIn } from './routes.fixture.js';

const MIB = 1024 * 1024;
const json = { 'content-type': 'application/json' };

let surface: Surface;
let document: Document;
let routes: Route[];
let forEachRoute: ForEachRoute;
beforeAll(async () => {
  surface = await openSurface();
  document = await documentOf(surface);
  routes = await routesIn(surface);
  forEachRoute = eachOf(routes);
});
afterAll(() => surface.close());

/** One of each JSON type, numbers past every width of an integer, and texts that hold too much or nothing. */
const VALUES: readonly unknown[] = [
  ...[null, true, 'nonsense!', '', 'x'.repeat(70_000)],
  ...[7, -1, 1.5, 1e10, 2_147_483_647, -2_147_483_648, 2 ** 53, 1e300],
  ...[[], [7], [null], [[]], {}, { a: 1 }],
];

interface Wrong {
  readonly pointer: string;
  readonly body: unknown;
}

/** `body` with each of its declared members replaced by each value that its schema refuses. */
function* wrongs(schema: Schema, body: object, pointer = ''): Generator<Wrong> {
  for (const [name, member] of Object.entries<Schema>(resolved(schema, document).properties ?? {})) {
    const at = `${pointer}/${name}`;
    const faultsOf = validatorOf(document, member);
    for (const value of VALUES) {
      // Each item of a batch is answered by itself.
      const isBatch = name === 'runs' && Array.isArray(value) && value.length > 0;
      if (!isBatch && faultsOf(value).length > 0) yield { pointer: at, body: { ...body, [name]: value } };
    }
    const given: unknown = (body as Record<string, unknown>)[name];
    if (typeof given !== 'object' || given === null || Array.isArray(given)) continue;
    const choices: Schema[] = member.oneOf ?? member.allOf ?? [member];
    const shape = choices.find((choice) => validatorOf(document, choice)(given).length === 0) ?? {};
    for (const wrong of wrongs(shape, given, at))
      yield { pointer: wrong.pointer, body: { ...body, [name]: wrong.body } };
  }
}

describe('a body', () => {
  it('F144 with a member that its schema refuses is 422, and names that member', { timeout: 120_000 }, async () => {
    const tried = new Set<string>();
    for (const route of routes.filter(({ body }) => body === 'required')) {
      const path = route.path.replace('NOBODY', surface.queue);
      for (const example of route.examples) {
        for (const { pointer, body } of wrongs(route.bodySchema, example as object)) {
          const name = `${route.method} ${route.template} ${JSON.stringify(body).slice(0, 300)}`;
          const answer = await surface.send({ method: route.method, path, json: body });
          expectProblem(answer, name, 422);
          const pointers: string[] = answer.json.errors.map((fault: { pointer: string }) => fault.pointer);
          expect(
            pointers.some((found) => `${found}/`.startsWith(`${pointer}/`)),
            `${name}: ${pointers}`,
          ).toBe(true);
          tried.add(`${route.template} ${pointer}`);
        }
      }
    }
    expect([...tried]).toEqual(
      expect.arrayContaining([
        '/v1/runs /priority',
        '/v1/runs /spec/argv',
        '/v1/runs /spec/url',
        '/v1/runs/batch /runs',
      ]),
    );
    expect(tried.size).toBeGreaterThan(30);
  });

  it('S0x-08 of more than 1 MiB, or 16 MiB of a batch, is 413, whatever it holds', async () => {
    const limitOf = ({ template }: Route) => (template === '/v1/runs/batch' ? 16 * MIB : MIB);
    await forEachRoute(
      ({ method }) => ['POST', 'PUT'].includes(method),
      (route) => {
        const body = Buffer.alloc(limitOf(route) + 1, ' ');
        return surface.send({ method: route.method, path: route.path, body, headers: json });
      },
      (answer, name) => expectProblem(answer, name, 413),
    );
  });
});

describe('F084 a call without input', () => {
  const isWithoutInput = ({ method, body }: Route) => method === 'POST' && body === 'none';

  it.each([
    ['nothing at all', {}],
    ['an announced length of nothing', { headers: { 'content-length': '0' } }],
    ['an empty body that says JSON', { body: '', headers: json }],
    ['an empty body that says text', { body: '', headers: { 'content-type': 'text/plain' } }],
    ['{}', { body: '{}', headers: json }],
    ['{} with a character set', { body: ' {} ', headers: { 'content-type': 'application/json;charset=utf-8' } }],
  ])('takes %s: it only finds nobody', async (_, rest) => {
    await forEachRoute(
      isWithoutInput,
      ({ method, path }) => surface.send({ method, path, ...rest }),
      (answer, name) => expectProblem(answer, name, 404),
    );
  });

  it.each([
    ['a text', 415, { body: 'x', headers: { 'content-type': 'text/plain' } }],
    ['a form', 415, { body: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } }],
    ['no JSON', 400, { body: '{', headers: json }],
    ['a list', 400, { body: '[]', headers: json }],
    ['a member', 422, { body: '{"force":true}', headers: json }],
  ])('refuses %s with %i', async (_, status, rest) => {
    await forEachRoute(
      isWithoutInput,
      ({ method, path }) => surface.send({ method, path, ...rest }),
      (answer, name) => expectProblem(answer, name, status),
    );
  });
});

describe('a parameter of the query', () => {
  const refused = (schema: Schema) => ['date-time'].includes(schema.format) || schema.enum || schema.type === 'integer';

  async function expectRefused(route: Route, query: string, pointer: string): Promise<void> {
    const name = `GET ${route.template}?${query}`;
    const answer = await surface.send({ path: `${route.path}?${query}` });
    expectProblem(answer, name, 422);
    expect(answer.json.errors, name).toContainEqual({ pointer, message: expect.any(String) });
  }

  it('is refused where its schema says that it is no such thing', async () => {
    let tried = 0;
    for (const route of routes) {
      for (const { name } of route.query.filter(({ schema }) => refused(schema))) {
        for (const value of ['nonsense', '', '-1', '1e1', '99999999999999999999', '%00', '%F0%9F%92%A5']) {
          await expectRefused(route, `${name}=${value}`, `?${name}`);
          tried += 1;
        }
        await expectRefused(route, `${name}=1&${name}=1`, `?${name}`);
      }
    }
    expect(tried).toBeGreaterThan(100);
  });

  it('S0x-08 a page has 1 to 200 rows, and a cursor is what the same list gave', async () => {
    const lists = routes.filter(({ query }) => query.some(({ name }) => name === 'cursor'));
    expect(lists.map(({ template }) => template)).toEqual(
      expect.arrayContaining(['/v1/runs', '/v1/runs/{id}/events', '/v1/audit', '/v1/queues', '/v1/workers']),
    );
    for (const list of lists) {
      for (const limit of ['0', '201', '01', '1.0', '+1', '%201'])
        await expectRefused(list, `limit=${limit}`, '?limit');
      for (const cursor of ['', 'x', 'AAAA', `${'A'.repeat(300)}`, '%00', 'eyJhIjoxfQ==']) {
        await expectRefused(list, `cursor=${cursor}`, '?cursor');
      }
    }
  });
});

describe('what a path names', () => {
  const DAMAGED = [
    'x',
    'run_',
    'wrk_',
    'run_0',
    `run_${'z'.repeat(26)}`,
    'null',
    '0',
    '-1',
    '1e9',
    '*',
    '%00',
    '%2e%2e',
  ];
  const MORE = ['%F0%9F%92%A5', '%22', '%27%20or%201=1', `${'x'.repeat(200)}`, '01890000-0000-7000-8000-00000000000'];

  it('is 404 when it can be nobody’s name', async () => {
    for (const named of [...DAMAGED, ...MORE]) {
      await forEachRoute(
        ({ template }) => template.includes('{id}') || template.includes('{receipt}'),
        ({ method, template }) => surface.send({ method, path: template.replace(/\{\w+\}/, named) }),
        (answer, name) => expectProblem(answer, `${name} of ${named}`, 404),
      );
    }
  });

  it('is 400 when its encoding is broken', async () => {
    await forEachRoute(
      ({ hasParameters }) => hasParameters,
      ({ method, template }) => surface.send({ method, path: template.replace(/\{\w+\}/, '%zz') }),
      (answer, name) => expectProblem(answer, name, 400),
    );
  });

  it('is 404 to another organization, on every route of a run, and in no list of its own', async () => {
    const submitted = await surface.send({
      method: 'POST',
      path: '/v1/runs',
      json: { kind: 'noop', queue: `q-${newId()}` },
    });
    const { id, receipts } = submitted.json;
    const { token } = await surface.stranger();
    await forEachRoute(
      ({ template }) => template.startsWith('/v1/runs/{id}') || template.includes('{receipt}'),
      ({ method, template }) => {
        const path = template.replace('{id}', id).replace('{receipt}', receipts.submitted);
        return surface.send({ method, path, token });
      },
      (answer, name) => expectProblem(answer, name, 404),
    );
    for (const path of ['/v1/runs', '/v1/audit']) {
      expect((await surface.send({ path, token })).json, path).toEqual({ items: [], next: null });
    }
    expect((await surface.send({ path: `/v1/runs/${id}` })).json.state).toBe('pending');
  });
});
