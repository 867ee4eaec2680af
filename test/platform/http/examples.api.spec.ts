/**
 * The examples of the OpenAPI document, sent as they stand to an application of its own: what it answers is what the
 * document says, and what it records is what `x-entry` says.
 */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../../src/kernel/ids.js';
import { OPENAPI_FILE } from '../../../src/platform/http/product.js';
import { giveKey, keyOf } from '../../audit/signing.fixture.js';
import { type Document, examplesOf, type Route, responseOf, routesOf } from '../../openapi-operations.js';
import { validatorOf } from '../../openapi-validator.js';
import { Holder } from '../../runs/holder.fixture.js';
import { type Answer, type LocalSurface, openLocalSurface, type Request } from '../../send.js';

const document: Document = JSON.parse(await readFile(OPENAPI_FILE, 'utf8'));
const routes = routesOf(document);

let surface: LocalSurface;
beforeAll(async () => {
  surface = await openLocalSurface();
  await giveKey(surface, keyOf(7));
});
afterAll(() => surface.close());

const submitted = document.paths['/v1/runs']?.post?.requestBody?.content['application/json']?.examples?.command?.value;

async function submit(rest: object = {}): Promise<string> {
  const json = { ...(submitted as object), ...rest };
  const answer = await surface.send({ method: 'POST', path: '/v1/runs', json });
  expect(answer.status, answer.text).toBe(201);
  return answer.json.id;
}

/** A run like the example that has failed. */
async function failedRun(): Promise<string> {
  const own = { ...surface, queue: `q-${newId()}` };
  const id = await submit({ queue: own.queue });
  const holder = await Holder.register(own);
  const detail = 'exit code 7';
  await holder.finish(await holder.start(), {
    state: 'failed',
    code: 'tool_failed',
    kind: null,
    detail,
    exitCode: 7,
    signal: null,
  });
  return id;
}

const worker = async () => (await Holder.register({ ...surface, queue: `q-${newId()}` })).id;

async function drainedWorker(): Promise<string> {
  const id = await worker();
  await surface.send({ method: 'POST', path: `/v1/workers/${id}/drain` });
  return id;
}

async function receipt(): Promise<string> {
  return (await surface.send({ path: `/v1/runs/${await submit()}` })).json.receipts.submitted;
}

/** What a path names, and what a body means: made first. Routes that are not here need nothing. */
const PREPARE: Readonly<Record<string, () => Promise<string>>> = {
  'GET /v1/runs/{id}': submit,
  'GET /v1/runs/{id}/why': submit,
  'GET /v1/runs/{id}/events': submit,
  'GET /v1/runs/{id}/output': submit,
  'GET /v1/runs/{id}/stream': failedRun,
  'POST /v1/runs/{id}/cancel': submit,
  'POST /v1/runs/{id}/rerun': failedRun,
  'POST /v1/runs/cancel': submit,
  'POST /v1/runs/rerun': failedRun,
  'GET /v1/audit/receipts/{receipt}': receipt,
  'GET /v1/workers': worker,
  'GET /v1/workers/{id}': worker,
  'POST /v1/workers/{id}/drain': worker,
  'POST /v1/workers/{id}/undrain': drainedWorker,
  'PUT /v1/queues/{name}': async () => `q-${newId()}`,
};

/** One request for each example of a body; one for a route without. */
function requestsOf({ method, template, operation }: Route): (readonly [string, (named: string) => Request])[] {
  const media = operation.requestBody?.content['application/json'];
  const bodies = media ? examplesOf(media).map(([name, json]) => [name, { json }] as const) : [['', {}] as const];
  return bodies.map(([name, body]) => [
    name,
    (named) => ({ method, path: template.replace(/\{\w+\}/, named), ...body }),
  ]);
}

function expectAsDocumented({ operation, name }: Route, answer: Answer): void {
  const [type = ''] = (answer.headers['content-type'] ?? '').split(';');
  const response = responseOf(document, operation, String(answer.status));
  expect(answer.status, `${name}: ${answer.text.slice(0, 300)}`).toBeLessThan(300);
  expect(Object.keys(response?.content ?? {}), `${name}: ${answer.status}`).toContain(type);
  const schema = response?.content?.[type]?.schema ?? {};
  if (type.endsWith('json')) expect(validatorOf(document, schema)(answer.json), name).toEqual([]);
}

async function expectRecorded({ operation }: Route, answer: Answer): Promise<void> {
  const actions = operation['x-entry'] ?? [];
  const given = answer.headers['audit-receipt'];
  if (actions.length === 0) return expect(given).toBeUndefined();
  const { json } = await surface.send({ path: `/v1/audit/receipts/${given}` });
  expect(json).toMatchObject({ holds: true });
  expect(actions).toContain(json.entry.action);
}

/** A call that only counts records nothing. */
const isTrial = ({ json }: Request) => typeof json === 'object' && json !== null && 'dryRun' in json;

describe.each(routes.map((route) => [route.name, route] as const))('%s', (_, route) => {
  it.each(requestsOf(route))('answers its example %s as the document says, and records what it says', async (_, of) => {
    const named = await PREPARE[route.name]?.();
    expect(route.template.includes('{') && named === undefined, 'PREPARE makes what its path names').toBe(false);
    const request = of(named ?? '');
    const answer = await surface.send(request);
    expectAsDocumented(route, answer);
    if (!isTrial(request)) await expectRecorded(route, answer);
  });
});

it('x-permission is what the guard goes by: without a token, with any, with one of the installation', async () => {
  const { token: stranger } = await surface.stranger();
  for (const { method, template, name, operation } of routes) {
    const path = template.replace('{name}', 'q-nobody').replace(/\{\w+\}/, newId());
    const statusFor = async (token: string | null) => (await surface.send({ method, path, token })).status;
    const permission = operation['x-permission'];
    if (permission === 'none') expect(await statusFor(null), name).toBe(200);
    else expect(await statusFor(null), name).toBe(401);
    if (permission === 'installation') expect(await statusFor(stranger), name).toBe(403);
    else expect([401, 403], name).not.toContain(await statusFor(stranger));
  }
});
