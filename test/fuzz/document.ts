/** The operations of the document that a server hands out, and what its own answers name. */
import { randomBytes } from 'node:crypto';
import { send, type WireAnswer, type WireRequest } from './wire.js';

export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly oneOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly maxProperties?: number;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly example?: unknown;
  readonly examples?: readonly unknown[];
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header' | 'cookie';
  readonly required?: boolean;
  readonly schema: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value?: unknown }>>;
}

export interface MediaType {
  readonly schema?: Schema;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value?: unknown }>>;
}

type Content = Readonly<Record<string, MediaType>>;

interface OperationObject {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
}

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

export interface Operation {
  readonly id: string;
  /** As the document writes it: lower case. */
  readonly verb: string;
  readonly method: string;
  readonly template: string;
  readonly parameters: readonly Parameter[];
  readonly body: MediaType | undefined;
  readonly responses: OperationObject['responses'];
}

export function operationsOf(document: OpenApi): Operation[] {
  return Object.entries(document.paths).flatMap(([template, operations]) =>
    Object.entries(operations).map(([verb, operation]) => ({
      id: operation.operationId,
      verb,
      method: verb.toUpperCase(),
      template,
      parameters: operation.parameters ?? [],
      body: operation.requestBody?.content['application/json'],
      responses: operation.responses,
    })),
  );
}

/** What there is in the server, by the names its own answers give. */
export interface Things {
  /** Ids or names by the list that shows them, such as `/v1/runs`. */
  readonly byList: Readonly<Record<string, readonly string[]>>;
  readonly cursors: readonly string[];
  readonly receipts: readonly string[];
  readonly queues: readonly string[];
}

/** The queue that the server's worker serves: nothing that is generated gets into it, so nothing generated is executed. */
export const SERVED = `served-${randomBytes(6).toString('hex')}`;
/** Queues that nobody serves. */
const UNSERVED = ['default', 'q', 'nobody.serves_this-0'];

export function requestOf(token: string, method: string, target: string, json?: unknown): WireRequest {
  const headers: [string, string][] = [
    ['Host', 'capstan'],
    ['Authorization', `Bearer ${token}`],
  ];
  if (json === undefined) return { method, target, headers };
  return {
    method,
    target,
    headers: [...headers, ['Content-Type', 'application/json']],
    body: Buffer.from(JSON.stringify(json)),
  };
}

/** Makes runs of several kinds and states, then asks every list what there is. */
export async function makeThings(port: number, token: string, operations: readonly Operation[]): Promise<Things> {
  const ask = async (method: string, target: string, json?: unknown) => {
    const answer = await send(port, requestOf(token, method, target, json));
    if (answer.status >= 300) throw new Error(`${method} ${target}: ${answer.status} ${answer.body}`);
    return answer;
  };
  const submitted = await Promise.all(runs().map((run) => ask('POST', '/v1/runs', run)));
  await ask('PUT', '/v1/queues/q', { paused: true, reason: 'for the fuzzer' });
  const lists = operations.filter(({ verb, template }) => verb === 'get' && /^\/v1\/[^{]+$/.test(template));
  const byList: Record<string, string[]> = {};
  const cursors: string[] = [];
  const receipts = submitted.map(({ headers }) => headers['audit-receipt'] ?? '');
  for (const { template, parameters } of lists) {
    if (!parameters.some(({ name }) => name === 'cursor')) continue;
    byList[template] = itemsOf(await ask('GET', template))
      .map(({ id, name }) => id ?? name ?? '')
      .filter(Boolean);
    const { next } = JSON.parse(String((await ask('GET', `${template}?limit=1`)).body)) as { next: string | null };
    if (next !== null) cursors.push(next);
  }
  return { byList, cursors, receipts, queues: UNSERVED };
}

function itemsOf(answer: WireAnswer): { id?: string; name?: string }[] {
  return (JSON.parse(String(answer.body)) as { items: { id?: string; name?: string }[] }).items;
}

function runs(): object[] {
  const command = (script: string) => ({ kind: 'command', queue: SERVED, spec: { argv: ['sh', '-c', script] } });
  return [
    { kind: 'noop', queue: SERVED, labels: { env: 'prod' } },
    { kind: 'noop', queue: SERVED, name: 'nightly backup' },
    command('echo out; echo err >&2'),
    command('printf "a\\0\\377b"; exit 7'),
    command('sleep 600'),
    { kind: 'noop', queue: 'q', labels: { env: 'prod' } },
    { kind: 'noop', queue: 'q', notBefore: '2999-01-01T00:00:00Z' },
    { kind: 'script', queue: 'default', spec: { interpreter: 'sh', content: 'true' } },
  ];
}
