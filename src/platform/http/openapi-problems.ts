/**
 * Which problems an operation of the OpenAPI document may be answered with: what its form tells (a body, a parameter, who
 * may call it) and what its handler says with `@Refuses()`.
 */
import { PROBLEMS, type ProblemCode } from '../../kernel/problems.js';
import { REFUSES_MARK } from './refuses.js';

export interface Parameter {
  readonly in: string;
  readonly name: string;
  readonly required?: boolean;
  readonly schema?: Record<string, unknown>;
}

export type Operation = Record<string, unknown> & {
  responses: Record<string, Record<string, unknown>>;
  parameters?: readonly Parameter[];
};

const PROBLEM_CONTENT = { schema: { $ref: '#/components/schemas/Problem' } };
const MEDIA_TYPE = 'application/problem+json';

const PROBLEM_RESPONSE = {
  description: 'A problem: the request was not carried out, or not wholly.',
  content: { [MEDIA_TYPE]: PROBLEM_CONTENT },
};

/**
 * Adds the answers to an operation. Those that many share are kept in `shared`, by their codes, and referred to; a status
 * that the handler documents with a body of its own may have a problem as well.
 */
export function addProblems(path: string, operation: Operation, shared: Record<string, unknown>): void {
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of codesOf(path, operation)) {
    const { status } = PROBLEMS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  for (const [status, codes] of byStatus) {
    const own = operation.responses[status];
    if (own) {
      own.content = { ...(own.content as object), ...problemAnswer(codes).content };
      continue;
    }
    const name = codes.join('.');
    shared[name] ??= problemAnswer(codes);
    operation.responses[status] = { $ref: `#/components/responses/${name}` };
  }
  operation.responses.default = PROBLEM_RESPONSE;
  delete operation[REFUSES_MARK];
}

function codesOf(path: string, operation: Operation): ProblemCode[] {
  const parameters = operation.parameters ?? [];
  const [hasBody, permission] = [operation.requestBody !== undefined, operation['x-permission']];
  const has = (place: string, name?: string) =>
    parameters.some((parameter) => parameter.in === place && (name === undefined || parameter.name === name));
  const isInstallation = permission === 'installation' || has('query', 'chain');
  const said = operation[REFUSES_MARK];
  return [
    ...when(hasBody, 'malformed_request'),
    ...when(has('header', 'Idempotency-Key'), 'idempotency_key_invalid'),
    ...when(permission !== 'none', 'unauthorized'),
    ...when(isInstallation, 'forbidden'),
    ...when(path.includes('{'), 'not_found'),
    ...when(hasBody, 'body_too_large', 'unsupported_media_type'),
    ...when(hasBody || has('query'), 'invalid_input'),
    ...when(has('header', 'Idempotency-Key'), 'idempotency_key_reused', 'run_removed'),
    ...(Array.isArray(said) ? (said as ProblemCode[]) : []),
    ...when(permission !== 'none', 'unavailable'),
  ];
}

function when(condition: boolean, ...codes: ProblemCode[]): ProblemCode[] {
  return condition ? codes : [];
}

function problemAnswer(codes: readonly ProblemCode[]): { description: string; content: object } {
  const description = codes.map((code) => `\`${code}\`: ${PROBLEMS[code].title}.`).join(' ');
  const examples = Object.fromEntries(codes.map((code) => [code, { value: problemExample(code) }]));
  return { description, content: { [MEDIA_TYPE]: { ...PROBLEM_CONTENT, examples } } };
}

function problemExample(code: ProblemCode): Record<string, unknown> {
  const { status, title } = PROBLEMS[code];
  const fault = { pointer: '/spec/argv/0', message: 'must be a string' };
  return {
    type: `urn:capstan:problem:${code}`,
    title,
    status,
    detail: code === 'invalid_input' ? `${fault.pointer}: ${fault.message}` : title,
    code,
    ...(code === 'invalid_input' ? { errors: [fault] } : {}),
    requestId: 'req_01h455vb4pex5vsknk084sn02q',
  };
}
