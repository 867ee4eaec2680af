/**
 * Builds the OpenAPI 3.1 document from the code. Only generating and checking load this: a server hands out the file
 * that was checked in.
 */
import type { INestApplication } from '@nestjs/common';
import type { OpenAPIObject } from '@nestjs/swagger';
import { PROBLEMS } from '../../kernel/problems.js';
import { applyNotes } from './document.js';
import { exampleOf, type Schema, type Schemas } from './openapi-example.js';
import { addProblems, type Operation, type Parameter } from './openapi-problems.js';
import type { Permission } from './permission.js';
import { productVersion } from './product.js';

const DESCRIPTION = `Prefix \`/v1\`; JSON with camelCase members; instants are RFC 3339 in UTC with milliseconds; ids are
TypeIDs such as \`run_…\`, and a plain UUID is taken as well. Members and parameters that aren't described here are
refused with 422, never ignored. Errors are RFC 9457 \`application/problem+json\`. Every answer bears \`X-Request-Id\` (the
caller's own when it is 1 to 128 visible ASCII characters) and \`Capstan-Replica\`; every change bears \`Audit-Receipt\`.
Bodies may have 1 MiB, those of a batch 16 MiB. Of each operation \`x-permission\` says who may call it (\`none\`: anybody;
\`token\`; \`installation\`: a token of its admins) and \`x-entry\` which entries it appends to an audit chain.`;

const TOKEN =
  'The first one is in the file `admin-token` of the data directory, or was given in `CAPSTAN_BOOTSTRAP_TOKEN`.';

/** In the order in which the document is read. */
const TAGS: readonly (readonly [name: string, description: string])[] = [
  ['runs', 'Submit, follow, cancel and repeat runs.'],
  ['queues', 'What waits where; pause and resume.'],
  ['retention', 'How long ended runs are kept.'],
  ['workers', 'Who executes runs; taking one out of service and back.'],
  ['audit', 'What was recorded: listed, recomputed, exported with a signature.'],
  ['installation', 'What runs here, and how it is.'],
];

type MutableSchema = Record<string, unknown>;

/** The document of an application: the same code gives the same text. */
export async function buildOpenApi(app: INestApplication): Promise<string> {
  const swagger = await import('@nestjs/swagger');
  applyNotes(swagger);
  const builder = new swagger.DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('Capstan')
    .setDescription(DESCRIPTION.replaceAll('\n', ' '))
    .setVersion(productVersion())
    .setLicense('Apache-2.0', 'https://www.apache.org/licenses/LICENSE-2.0')
    .addServer('/', 'Where this document came from.')
    .addBearerAuth({ type: 'http', scheme: 'bearer', description: TOKEN }, 'token')
    .addSecurityRequirements('token');
  for (const [name, description] of TAGS) builder.addTag(name, description);
  const document = swagger.SwaggerModule.createDocument(app, builder.build(), {
    operationIdFactory: (_controller, method) => method,
  });
  // In the document a shape is called what it is; that it crosses the wire goes without saying.
  const text = JSON.stringify(completed(document), null, 2);
  return `${text.replace(/"(#\/components\/schemas\/)?(\w+)Dto"/g, '"$1$2"')}\n`;
}

/** Adds what holds for every operation and shape, and puts them in an order of their own. */
function completed(document: OpenAPIObject): OpenAPIObject {
  const schemas = (document.components?.schemas ?? {}) as Record<string, MutableSchema>;
  // The class of members that have several shapes, as the generator calls it.
  delete schemas.Object;
  sayNullable(schemas);
  schemas.Problem = PROBLEM_SCHEMA;
  const responses: Record<string, unknown> = {};
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const operation of Object.values(operations) as Operation[]) {
      completeOperation(operation, schemas);
      addProblems(path, operation, responses);
    }
  }
  const headers = { AuditReceipt: RECEIPT_HEADER };
  document.components = {
    ...document.components,
    headers,
    responses: sorted(responses) as never,
    schemas: sorted(schemas) as never,
  };
  document.paths = sorted(document.paths);
  return document;
}

function completeOperation(operation: Operation, schemas: Record<string, MutableSchema>): void {
  operation['x-permission'] ??= 'token' satisfies Permission;
  if (operation['x-permission'] === 'none') operation.security = [];
  for (const name of referencedBy(operation.requestBody, schemas)) {
    const schema = schemas[name];
    if (schema) schema.additionalProperties = false;
  }
  addExample(operation.requestBody, schemas);
  operation.parameters?.forEach(completeParameter);
  for (const [status, response] of Object.entries(operation.responses)) {
    addExample(response, schemas);
    if ('x-entry' in operation && status.startsWith('2')) {
      const own = response.headers as object | undefined;
      response.headers = { ...own, 'Audit-Receipt': { $ref: '#/components/headers/AuditReceipt' } };
    }
  }
}

/**
 * The example of a parameter that may be left out is one of several: `/docs` would send a single one unasked. Beside
 * `oneOf` the generator also asks for the class of the member.
 */
function completeParameter({ required, schema }: Parameter): void {
  if (schema && 'oneOf' in schema) delete schema.allOf;
  if (required || !schema || !('example' in schema)) return;
  schema.examples = [schema.example];
  delete schema.example;
}

/** Where what crosses the wire as JSON has no example of its own, one made of its members'. */
function addExample(body: unknown, schemas: Schemas): void {
  const { content = {} } = (body ?? {}) as { content?: Record<string, Record<string, unknown>> };
  for (const [type, media] of Object.entries(content)) {
    if (!type.endsWith('json') || 'example' in media || 'examples' in media) continue;
    const example = exampleOf((media.schema ?? {}) as Schema, schemas);
    if (example !== undefined) media.example = example;
  }
}

/** The names of all schemas that something refers to, directly or through others. */
function referencedBy(value: unknown, schemas: Schemas): Set<string> {
  const found = new Set<string>();
  const visit = (text: string) => {
    for (const [, name = ''] of text.matchAll(/#\/components\/schemas\/(\w+)/g)) {
      if (found.has(name)) continue;
      found.add(name);
      visit(JSON.stringify(schemas[name] ?? {}));
    }
  };
  visit(JSON.stringify(value ?? {}));
  return found;
}

/** `nullable` as OpenAPI 3.1 has it: `null` among the types, and among the values where they are listed. */
function sayNullable(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if ('nullable' in value && value.nullable === true && 'type' in value) {
    Object.assign(value, { type: [value.type, 'null'] });
    if ('enum' in value && Array.isArray(value.enum)) value.enum = [...value.enum, null];
    delete value.nullable;
  }
  for (const member of Object.values(value)) sayNullable(member);
}

function sorted<T>(record: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}

const RECEIPT_HEADER = {
  description: '`chain:seq:link` of the audit entry: the one written now, or by the request that this one repeats.',
  schema: { type: 'string', example: 'org_01h455vb4pex5vsknk084sn02q:7:9f2c…' },
} as const;

const PROBLEM_SCHEMA: MutableSchema = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'code', 'requestId'],
  properties: {
    type: { type: 'string', format: 'uri' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    code: { type: 'string', enum: Object.keys(PROBLEMS) },
    errors: {
      type: 'array',
      items: {
        type: 'object',
        required: ['pointer', 'message'],
        properties: {
          pointer: { type: 'string', description: 'JSON pointer into the body, or `?name` for a parameter.' },
          message: { type: 'string' },
        },
      },
    },
    requestId: { type: 'string' },
  },
};
