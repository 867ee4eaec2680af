import { expect, it } from 'vitest';
import { openApiText } from '../../openapi.js';

interface Operation {
  readonly operationId: string;
  readonly responses: Readonly<Record<string, unknown>>;
}

const text = await openApiText();
const document = JSON.parse(text);
const operations = Object.values<Record<string, Operation>>(document.paths).flatMap((path) => Object.values(path));

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
