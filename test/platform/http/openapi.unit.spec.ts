import { describe, expect, it } from 'vitest';
import { openApiText } from '../../openapi.js';
import { examplesOf, responseOf, routesOf } from '../../openapi-operations.js';
import { validatorOf } from '../../openapi-validator.js';

const text = await openApiText();
const document = JSON.parse(text);
const routes = routesOf(document);
const operations = routes.map(({ operation }) => operation);

it('the document is OpenAPI 3.1, made anew the same each time', async () => {
  expect(document.openapi).toBe('3.1.0');
  expect(await openApiText()).toBe(text);
});

it('every reference in it leads somewhere, and nothing of the older ways to say null is left', () => {
  const names = [...text.matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name ?? '');
  expect(names.length).toBeGreaterThan(10);
  for (const name of names) expect(document.components.schemas, name).toHaveProperty(name);
  expect(text).not.toContain('"nullable"');
  expect(text).not.toMatch(/"\w+Dto"/);
});

it('each operation has a name of its own and may answer with a problem', () => {
  const ids = operations.map((operation) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
  for (const { operationId, responses } of operations) expect(responses, operationId).toHaveProperty('default');
});

it('what a request holds is closed: a member that it does not name is refused', () => {
  for (const name of ['Submit', 'NoopSpec', 'CommandSpec', 'ScriptSpec']) {
    expect(document.components.schemas[name], name).toMatchObject({ type: 'object', additionalProperties: false });
  }
  expect(document.components.schemas.Run).not.toHaveProperty('additionalProperties');
});

it('a member that may be null says so among its types', () => {
  const { Submit, End } = document.components.schemas;
  expect(Submit.properties.name.type).toEqual(['string', 'null']);
  expect(End.properties.kind.enum).toContain(null);
});

describe.each(routes.map((route) => [route.name, route] as const))('%s', (_, route) => {
  const { method, template, operation } = route;
  const isMutating = !['GET', 'HEAD', 'OPTIONS'].includes(method);

  it('says who may call it, and which entries it makes when it changes something', () => {
    expect(operation['x-permission']).toBeOneOf(['none', 'token', 'installation']);
    expect(operation.security?.length === 0, 'as `security` has it').toBe(operation['x-permission'] === 'none');
    const entries = operation['x-entry'] ?? [];
    if (isMutating) expect(entries.length, 'x-entry').toBeGreaterThan(0);
    for (const action of entries) expect(action).toMatch(/^[a-z]+\.[a-z_]+$/);
    for (const [status, { headers }] of Object.entries(operation.responses)) {
      expect('Audit-Receipt' in (headers ?? {}), status).toBe(entries.length > 0 && status.startsWith('2'));
    }
  });

  it('is described for a person: a summary of one line, its group, each parameter and each answer', () => {
    expect(operation.summary).toMatch(/^\p{Lu}.{5,80}[^.]$/u);
    expect(document.tags.map(({ name }: { name: string }) => name)).toEqual(
      expect.arrayContaining([...operation.tags]),
    );
    for (const { name, description } of operation.parameters) expect(description, name).toBeTruthy();
    for (const status of Object.keys(operation.responses)) {
      expect(responseOf(document, operation, status)?.description, status).toBeTruthy();
    }
  });

  it('has an example of each body, asked and answered, and each is true to its schema', () => {
    const bodies = [
      ['requestBody', operation.requestBody],
      ...Object.keys(operation.responses).map((status) => [status, responseOf(document, operation, status)] as const),
    ] as const;
    for (const [where, body] of bodies) {
      for (const [type, media] of Object.entries(body?.content ?? {})) {
        if (!type.endsWith('json') || where === 'default') continue;
        const examples = examplesOf(media);
        expect(examples.length, `${where} ${type}`).toBeGreaterThan(0);
        const faultsOf = validatorOf(document, media.schema ?? {});
        for (const [name, value] of examples) expect(faultsOf(value), `${where} ${type} ${name}`).toEqual([]);
      }
    }
  });

  it('names the problems that its form tells of', () => {
    const statuses = Object.keys(operation.responses);
    expect(statuses).toContain('default');
    expect(statuses.includes('401')).toBe(operation['x-permission'] !== 'none');
    expect(statuses.includes('404')).toBe(template.includes('{'));
    if (operation['x-permission'] === 'installation') expect(statuses).toContain('403');
    if (operation.requestBody) expect(statuses).toEqual(expect.arrayContaining(['400', '413', '415', '422']));
  });
});
