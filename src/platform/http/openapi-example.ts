/**
 * Examples of the OpenAPI document, put together from those of the members: so each stands once, beside what it is an
 * example of. What can't be told from them is left out, which the test that validates every example finds.
 */

export type Schema = Readonly<Record<string, unknown>>;
export type Schemas = Readonly<Record<string, Schema>>;

const INSTANT = '2030-01-31T08:00:00.000Z';
const REF = '#/components/schemas/';

/** An example of a shape: its own, or one made of its members; undefined when there is none. */
export function exampleOf(schema: Schema, schemas: Schemas): unknown {
  if ('example' in schema) return schema.example;
  if (typeof schema.$ref === 'string') return exampleOf(schemas[schema.$ref.slice(REF.length)] ?? {}, schemas);
  if (Array.isArray(schema.allOf)) return Object.assign({}, ...schema.allOf.map((part) => exampleOf(part, schemas)));
  const choices = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(choices)) return exampleOf(choices[0] ?? {}, schemas);
  return ofType(schema, schemas);
}

function ofType(schema: Schema, schemas: Schemas): unknown {
  if (Array.isArray(schema.type)) return null;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  switch (schema.type) {
    case 'object':
      return ofMembers(schema, schemas);
    case 'array':
      return isSchema(schema.items) ? [exampleOf(schema.items, schemas)] : [];
    case 'boolean':
      return false;
    case 'integer':
      return schema.default ?? schema.minimum ?? 1;
    case 'string':
      return schema.format === 'date-time' ? INSTANT : schema.default;
    case undefined:
      return null;
    default:
      return undefined;
  }
}

/** The required members, and of the others those that have an example. */
function ofMembers({ properties, required }: Schema, schemas: Schemas): Record<string, unknown> {
  const needed: readonly unknown[] = Array.isArray(required) ? required : [];
  const members: [string, unknown][] = isSchema(properties) ? Object.entries(properties) : [];
  return Object.fromEntries(
    members.flatMap(([name, member]) => {
      if (!isSchema(member) || !(needed.includes(name) || 'example' in member)) return [];
      const example = exampleOf(member, schemas);
      return example === undefined ? [] : [[name, example]];
    }),
  );
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
