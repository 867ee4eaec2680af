/** What an answer must be, whatever was asked: the conventions of the surface, and the document's own schemas. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { PROBLEMS } from '../../src/kernel/problems.js';
import type { OpenApi, Operation } from './document.js';
import { MAX_ANSWER_BYTES, type WireAnswer, type WireRequest } from './wire.js';

/** A replica whose key was replaced says so, and for how long: the one 503 that a caller can bring about. */
const EXPECTED_503 = ['signing_key_missing', 'signing_key_superseded'];
const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';
/** Of the server’s inside. Nothing that is sent holds any of these. */
const INSIDE =
  /\n {2,}at |node_modules|file:\/\/|\.[jt]s:\d|\bselect .* from\b|\binsert into\b|\bupdate .* set\b|SQLSTATE|postgres|violates|invalid input syntax|ECONN|TypeError|RangeError/i;
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

export class Verdict {
  private readonly ajv: Ajv2020;

  constructor(
    document: OpenApi,
    private readonly token: string,
  ) {
    this.ajv = new Ajv2020({
      strict: false,
      logger: false,
      allErrors: true,
      formats: { 'date-time': INSTANT, uri: URL.canParse },
    });
    this.ajv.addSchema(document, 'document');
  }

  /** All that is wrong with an answer; empty when nothing is. */
  faultsOf(operation: Operation | undefined, request: WireRequest, answer: WireAnswer): string[] {
    const { status, headers, body } = answer;
    const faults = [...this.generalFaults(answer)];
    const type = headers['content-type'] ?? '';
    if (request.method === 'HEAD') return faults;
    const media = type.split(';')[0] ?? '';
    const documented = operation?.responses[status]?.content;
    const isProblem = status >= 400 && documented?.[media] === undefined;
    if (isProblem) return [...faults, ...this.problemFaults(answer)];
    if (!operation || status >= 300 || !documented) return faults;
    if (!(media in documented)) return [...faults, `${status} of type ${type}, which is not documented`];
    if (media !== 'application/json') return faults;
    const pointer = [
      'paths',
      operation.template,
      operation.verb,
      'responses',
      String(status),
      'content',
      media,
      'schema',
    ];
    return [...faults, ...this.schemaFaults(pointer, body)];
  }

  private *generalFaults({ status, headers, body, isWhole }: WireAnswer): Generator<string> {
    if (status >= 500) {
      const code = /"code":"(\w+)"/.exec(body.toString('latin1'))?.[1] ?? '';
      if (status !== 503 || !EXPECTED_503.includes(code)) yield `${status} ${code}`;
    }
    if ((status === 503 || status === 429) && !/^\d+$/.test(headers['retry-after'] ?? ''))
      yield `${status} without Retry-After`;
    const isStream = headers['content-type']?.startsWith('text/event-stream') ?? false;
    if (!isWhole && !isStream) yield 'the answer was broken off';
    if (body.length > MAX_ANSWER_BYTES) yield `an answer of ${body.length} bytes`;
    if (body.includes(this.token)) yield 'the answer holds the token';
    for (const name of ['x-request-id', 'capstan-replica']) {
      if (headers[name] === undefined) yield `no ${name}`;
    }
  }

  /** What is wrong with a problem document. */
  problemFaults({ status, headers, body }: WireAnswer): string[] {
    const text = body.toString('utf8');
    if (headers['content-type'] !== PROBLEM_TYPE)
      return [`a problem of type ${headers['content-type']}: ${text.slice(0, 200)}`];
    const faults = this.schemaFaults(['components', 'schemas', 'Problem'], body);
    if (faults.length > 0) return faults;
    const problem = JSON.parse(text) as {
      code: keyof typeof PROBLEMS;
      status: number;
      title: string;
      type: string;
      requestId: string;
    };
    const known = PROBLEMS[problem.code];
    if (problem.status !== status || known.status !== status)
      faults.push(`${status} says it is ${problem.status} ${problem.code}`);
    if (problem.title !== known.title || problem.type !== `urn:capstan:problem:${problem.code}`)
      faults.push(`a title or type of its own: ${text}`);
    if (problem.requestId !== headers['x-request-id'])
      faults.push(`the id of the request is ${problem.requestId} and ${headers['x-request-id']}`);
    const inside = INSIDE.exec(text)?.[0];
    if (inside !== undefined) faults.push(`it tells of the server's inside: ${inside}`);
    if (text.length > 100_000) faults.push(`a problem of ${text.length} bytes`);
    return faults;
  }

  private schemaFaults(pointer: readonly string[], body: Buffer): string[] {
    const ref = `document#/${pointer.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')}`;
    const validate = this.ajv.getSchema(ref) ?? this.ajv.compile({ $id: ref.replace('#', '/of'), $ref: ref });
    let value: unknown;
    try {
      value = JSON.parse(body.toString('utf8'));
    } catch {
      return [`no JSON: ${body.subarray(0, 200)}`];
    }
    if (validate(value)) return [];
    const told = (validate.errors ?? []).slice(0, 5).map(({ instancePath, message }) => `${instancePath} ${message}`);
    return [`not as documented: ${told.join('; ')}: ${body.subarray(0, 600)}`];
  }
}
