/** Requests for an operation of the document: as it asks for them, and then broken in several ways at once. */
import fc from 'fast-check';
import type { OpenApi, Operation, Parameter, Things } from './document.js';
import { type Draft, mutations, percent } from './mutations.js';
import { allowedBy, type Json } from './values.js';
import type { WireRequest } from './wire.js';

export interface Source {
  readonly document: OpenApi;
  readonly things: Things;
  readonly token: string;
}

/** A request, and whether nothing was broken in it. */
export interface Attempt {
  readonly request: WireRequest;
  readonly isWellFormed: boolean;
}

export function attemptsAt(operation: Operation, source: Source): fc.Arbitrary<Attempt> {
  const broken = fc.array(mutations(operation, source.things), { minLength: 1, maxLength: 3 });
  const changes = fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, { weight: 3, arbitrary: broken });
  return fc.tuple(wellFormed(operation, source), changes).map(([draft, changed]) => ({
    request: written(changed.reduce((one, change) => change(one), draft)),
    isWellFormed: changed.length === 0,
  }));
}

function wellFormed(operation: Operation, source: Source): fc.Arbitrary<Draft> {
  const { parameters, template, method } = operation;
  const [inPath, inQuery, inHeaders] = (['path', 'query', 'header'] as const).map((place) =>
    parameters.filter((parameter) => parameter.in === place),
  );
  return fc
    .record({
      path: someOf(inPath ?? [], operation, source),
      query: someOf(inQuery ?? [], operation, source),
      headers: someOf(inHeaders ?? [], operation, source),
      json: bodyOf(operation, source),
    })
    .map(({ path, query, headers, json }) => ({
      method,
      path: template.replace(/\{(\w+)\}/g, (_, name) => percent(path.find(([one]) => one === name)?.[1] ?? '')),
      query: query.map(([name, value]) => `${percent(name)}=${percent(value)}`),
      headers: [
        ['Host', 'capstan'],
        ['Authorization', `Bearer ${source.token}`],
        ...(json === undefined ? [] : [['Content-Type', 'application/json'] as const]),
        ...headers,
      ],
      ...(json === undefined ? {} : { json }),
    }));
}

/** All parameters that are required and some of the others; a list is a parameter that is repeated. */
function someOf(
  parameters: readonly Parameter[],
  operation: Operation,
  source: Source,
): fc.Arbitrary<[string, string][]> {
  const chosen = parameters.map((parameter) => {
    const value = parameterValue(parameter, operation, source).map((one) => [one].flat().map(textOf));
    const given = value.map((all) => all.map((one): [string, string] => [parameter.name, one]));
    const none = { weight: 3, arbitrary: fc.constant<[string, string][]>([]) };
    return parameter.required ? given : fc.oneof(none, { weight: 1, arbitrary: given });
  });
  return fc.tuple(...chosen).map((all) => all.flat());
}

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Waiting longer would only cost time. */
const SHORT_WAITS = ['wait=1', 'wait=0', 'wait=-1', 'wait="1"', 'respond-async, wait=1', 'wait', 'wait=1.5', ',,;="'];

function parameterValue(parameter: Parameter, { template }: Operation, source: Source): fc.Arbitrary<Json> {
  const { name } = parameter;
  const { byList, cursors, receipts } = source.things;
  const examples = [parameter.example, ...Object.values(parameter.examples ?? {}).map(({ value }) => value)];
  const known: readonly unknown[] = examples.filter((value) => value !== undefined);
  if (name === 'Prefer') return fc.constantFrom(...SHORT_WAITS);
  if (name === 'cursor') return fc.constantFrom(...cursors);
  if (name === 'receipt') return fc.constantFrom(...receipts);
  const bySchema = allowedBy(parameter.schema, source);
  const given =
    known.length > 0 ? fc.oneof({ weight: 3, arbitrary: bySchema }, fc.constantFrom(...(known as Json[]))) : bySchema;
  if (parameter.in === 'header') return given.filter((value) => /^[\x20-\x7e]*$/.test(textOf(value)));
  if (parameter.in !== 'path') return given;
  const own = byList[template.replace(/\/\{.*$/, '')] ?? [];
  const others = Object.values(byList).flat();
  return fc.oneof(
    { weight: 8, arbitrary: own.length > 0 ? fc.constantFrom(...own) : bySchema },
    fc.constantFrom(...others),
    bySchema,
  );
}

function bodyOf({ body }: Operation, source: Source): fc.Arbitrary<Json | undefined> {
  if (!body?.schema) return fc.constant(undefined);
  const examples = [body.example, ...Object.values(body.examples ?? {}).map(({ value }) => value)];
  const known = examples.filter((value) => value !== undefined) as Json[];
  const made = allowedBy(body.schema, source);
  return known.length > 0 ? fc.oneof({ weight: 3, arbitrary: made }, fc.constantFrom(...known)) : made;
}

function written({ method, path, query, headers, json, text, bytes }: Draft): WireRequest {
  const body =
    bytes ??
    (text !== undefined ? Buffer.from(text) : json !== undefined ? Buffer.from(JSON.stringify(json)) : undefined);
  const target = query.length > 0 ? `${path}?${query.join('&')}` : path;
  return { method, target, headers, ...(body === undefined ? {} : { body }) };
}
