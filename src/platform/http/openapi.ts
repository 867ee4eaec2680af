/**
 * Builds the OpenAPI 3.1 document from the code. Only generating and checking load this: a server hands out the file
 * that was checked in.
 */
import type { INestApplication } from '@nestjs/common';
import type { OpenAPIObject } from '@nestjs/swagger';
import { PROBLEMS } from '../../kernel/problems.js';
import { applyNotes } from './document.js';
import { productVersion } from './product.js';

const DESCRIPTION = `Prefix \`/v1\`; JSON with camelCase members; instants are RFC 3339 in UTC with milliseconds; ids are
TypeIDs such as \`run_…\`, and a plain UUID is taken as well. Members and parameters that aren't described here are
refused with 422, never ignored. Errors are RFC 9457 \`application/problem+json\`. Every answer bears \`X-Request-Id\` (the
caller's own when it is 1 to 128 visible ASCII characters) and \`Capstan-Replica\`; every change bears \`Audit-Receipt\`.`;

/** What `@Open()` leaves on an operation; it doesn't get into the document. */
const OPEN_MARK = 'x-open';

type Schema = Record<string, unknown>;
type Operation = Record<string, unknown> & { responses: Record<string, unknown> };

/** The document of an application: the same code gives the same text. */
export async function buildOpenApi(app: INestApplication): Promise<string> {
  const swagger = await import('@nestjs/swagger');
  applyNotes(swagger);
  const config = new swagger.DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('Capstan')
    .setDescription(DESCRIPTION.replaceAll('\n', ' '))
    .setVersion(productVersion())
    .setLicense('Apache-2.0', 'https://www.apache.org/licenses/LICENSE-2.0')
    .addBearerAuth({ type: 'http', scheme: 'bearer' }, 'token')
    .addSecurityRequirements('token')
    .build();
  const document = swagger.SwaggerModule.createDocument(app, config, {
    operationIdFactory: (_controller, method) => method,
  });
  // In the document a shape is called what it is; that it crosses the wire goes without saying.
  const text = JSON.stringify(completed(document), null, 2);
  return `${text.replace(/"(#\/components\/schemas\/)?(\w+)Dto"/g, '"$1$2"')}\n`;
}

/** Adds what holds for every operation and shape, and puts them in an order of their own. */
function completed(document: OpenAPIObject): OpenAPIObject {
  const schemas = (document.components?.schemas ?? {}) as Record<string, Schema>;
  for (const path of Object.values(document.paths)) {
    for (const operation of Object.values(path) as Operation[]) {
      completeOperation(operation);
      for (const name of referencedBy(operation.requestBody, schemas)) {
        const schema = schemas[name];
        if (schema) schema.additionalProperties = false;
      }
    }
  }
  sayNullable(schemas);
  schemas.Problem = PROBLEM_SCHEMA;
  document.components = { ...document.components, schemas: sorted(schemas) as never };
  document.paths = sorted(document.paths);
  return document;
}

function completeOperation(operation: Operation): void {
  if (operation[OPEN_MARK] === true) operation.security = [];
  delete operation[OPEN_MARK];
  operation.responses.default = PROBLEM_RESPONSE;
}

/** The names of all schemas that something refers to, directly or through others. */
function referencedBy(value: unknown, schemas: Readonly<Record<string, Schema>>): Set<string> {
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

const PROBLEM_RESPONSE = {
  description: 'A problem: the request was not carried out, or not wholly.',
  content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
};

const PROBLEM_SCHEMA: Schema = {
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
