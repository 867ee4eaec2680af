/** Values by their schemas, biased to what stands at a limit. */
import fc from 'fast-check';
import type { OpenApi, Schema, Things } from './document.js';

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

interface Context {
  readonly document: OpenApi;
  readonly things: Things;
}

/** Longer texts and lists say nothing more; a body has at most 1 MiB, a batch 16. */
const LONGEST = 300_000;
const MOST_ITEMS = 1_000;

/** A value that the schema allows. */
export function allowedBy(schema: Schema, context: Context): fc.Arbitrary<Json> {
  const examples = [schema.example, ...(schema.examples ?? [])].filter((one) => one !== undefined) as Json[];
  const made = madeOf(schema, context);
  return examples.length > 0 ? fc.oneof({ weight: 3, arbitrary: made }, fc.constantFrom(...examples)) : made;
}

function madeOf(schema: Schema, context: Context): fc.Arbitrary<Json> {
  if (schema.$ref !== undefined) return allowedBy(referenced(schema.$ref, context.document), context);
  if (schema.enum) return fc.constantFrom(...(schema.enum as Json[]));
  if (schema.const !== undefined) return fc.constant(schema.const as Json);
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) return fc.oneof(...choices.map((choice) => allowedBy(choice, context)));
  if (schema.allOf?.[0]) return allowedBy(schema.allOf[0], context);
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? ['object']);
  return fc.oneof(...types.map((type) => ofType(type, schema, context)));
}

function referenced(ref: string, { components }: OpenApi): Schema {
  const schema = components.schemas[ref.split('/').at(-1) ?? ''];
  if (!schema) throw new Error(`the document has no ${ref}`);
  return schema;
}

function ofType(type: string, schema: Schema, context: Context): fc.Arbitrary<Json> {
  switch (type) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
    case 'number':
      return numbers(schema);
    case 'string':
      return strings(schema, context);
    case 'array':
      return lists(schema, context);
    default:
      return objects(schema, context);
  }
}

function numbers({ minimum = -(2 ** 53) + 1, maximum = 2 ** 53 - 1 }: Schema): fc.Arbitrary<number> {
  return fc.oneof(fc.constantFrom(minimum, maximum), fc.integer({ min: minimum, max: maximum }));
}

const INSTANTS = [
  '0001-01-01T00:00:00Z',
  '1970-01-01T00:00:00.000Z',
  '2000-02-29T12:00:00+14:00',
  '2016-12-31T23:59:60Z',
  '9999-12-31T23:59:59.999999999Z',
];

function strings(schema: Schema, { things }: Context): fc.Arbitrary<string> {
  const { minLength = 0, maxLength = 200, pattern, format } = schema;
  if (format === 'date-time') return fc.oneof(fc.constantFrom(...INSTANTS), instants());
  if (pattern !== undefined) return matching(pattern, maxLength, things);
  const longest = Math.min(maxLength, LONGEST);
  return fc.oneof(
    { weight: 4, arbitrary: fc.string({ minLength, maxLength: Math.min(maxLength, 20) }) },
    { weight: 2, arbitrary: fc.string({ unit: 'grapheme', minLength, maxLength: Math.min(maxLength, 20) }) },
    { weight: 3, arbitrary: fc.constantFrom(...named(things)) },
    fc.constantFrom('x'.repeat(longest), '🦉'.repeat(Math.ceil(longest / 4)), ' '.repeat(Math.max(minLength, 1))),
    fc.constantFrom('a:b', 'x:', '15m', '0', '-1', '%', "'", '\\', '\u202e', '\ufeff', '\u0130', '\u00df', 'A\u030a'),
  );
}

/** All names of what there is. */
function named({ byList, queues }: Things): string[] {
  return [...queues, ...Object.values(byList).flatMap((names) => names.slice(0, 3))];
}

/** A pattern that nothing generated leaves by accident: the only queues are those that nobody serves. */
function matching(pattern: string, maxLength: number, { queues }: Things): fc.Arbitrary<string> {
  const known = queues.filter((name) => new RegExp(pattern).test(name));
  const made = fc.stringMatching(new RegExp(pattern)).filter((text) => text.length <= maxLength);
  return known.length > 0 ? fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...known) }, made) : made;
}

function instants(): fc.Arbitrary<string> {
  return fc.date({ min: new Date(0), max: new Date('2999-01-01'), noInvalidDate: true }).map((at) => at.toISOString());
}

function lists(schema: Schema, context: Context): fc.Arbitrary<Json[]> {
  const { minItems = 0, maxItems = 200, items = {}, uniqueItems = false } = schema;
  const item = allowedBy(items, context);
  const few = { minLength: minItems, maxLength: Math.max(minItems, Math.min(maxItems, 4)) };
  const short = uniqueItems
    ? fc.uniqueArray(item, { ...few, selector: (one) => JSON.stringify(one) })
    : fc.array(item, few);
  if (uniqueItems) return short;
  const many = fc.oneof({ weight: 9, arbitrary: fc.constant(20) }, fc.constant(MOST_ITEMS));
  const long = fc.tuple(item, many).map(([one, times]) => Array<Json>(Math.min(maxItems, times)).fill(one));
  return fc.oneof({ weight: 30, arbitrary: short }, long);
}

function objects(schema: Schema, context: Context): fc.Arbitrary<{ [name: string]: Json }> {
  const { properties = {}, required = [], additionalProperties = false, maxProperties = 32 } = schema;
  const members = Object.entries(properties);
  const made = fc.record(Object.fromEntries(members.map(([name, member]) => [name, allowedBy(member, context)])), {
    requiredKeys: [...required],
    noNullPrototype: true,
  });
  if (typeof additionalProperties !== 'object') return made;
  const names = fc.oneof(fc.stringMatching(/^[A-Za-z][A-Za-z0-9._/-]{0,62}$/), fc.constantFrom('env', 'PATH', 'X-A'));
  const others = fc.dictionary(names, allowedBy(additionalProperties, context), {
    maxKeys: Math.min(4, maxProperties),
    noNullPrototype: true,
  });
  return fc.tuple(made, others).map(([one, other]) => ({ ...other, ...one }));
}
