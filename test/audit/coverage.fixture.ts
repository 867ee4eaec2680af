/**
 * One or more calls for every route that changes something, by its operation: what has to be there first, and which
 * entries it must make. A route without a row here has nobody who says what it records.
 */
import { generateKeyPairSync, randomInt } from 'node:crypto';
import { encodeId, newId } from '../../src/kernel/ids.js';
import { Holder } from '../runs/holder.fixture.js';
import type { Answer, Request, Surface } from '../send.js';

export interface Prepared {
  readonly request: Request;
  /** The receipt that it must answer with, when all it asks for was done before. */
  readonly repeats?: string;
}

export interface Call {
  readonly operationId: string;
  readonly what: string;
  readonly prepare: (surface: Surface) => Promise<Prepared>;
  readonly status: number;
  /** Whose chain gets an entry, and what it says; null when nothing may be written. */
  readonly entry: readonly [chain: 'organization' | 'installation', action: string] | null;
}

const post = (path: string, rest: Partial<Request> = {}): Request => ({ method: 'POST', path, ...rest });

/** Sends what must succeed. */
async function done(surface: Surface, request: Request): Promise<Answer> {
  const answer = await surface.send(request);
  if (answer.status >= 300) throw new Error(`${request.path}: ${answer.status} ${answer.text}`);
  return answer;
}

const receiptOf = ({ headers }: Answer): string => headers['audit-receipt'] ?? 'none was given';

function submission(surface: Surface, key?: string): Request {
  const json = { kind: 'noop', queue: surface.queue };
  return post('/v1/runs', { json, ...(key === undefined ? {} : { headers: { 'idempotency-key': key } }) });
}

/** A request that was sent once, and is to be sent again. */
async function sentOnce(surface: Surface, request: Request): Promise<Prepared> {
  return { request, repeats: receiptOf(await done(surface, request)) };
}

const pendingRun = async (surface: Surface): Promise<string> => (await done(surface, submission(surface))).json.id;

/** A run that its worker has started: in a queue of its own, since it takes the oldest. */
async function runningRun(surface: Surface): Promise<{ id: string; end: () => Promise<void> }> {
  const own = { ...surface, queue: `q-${newId()}` };
  const holder = await Holder.register(own);
  const id = await pendingRun(own);
  const hold = await holder.start();
  return { id, end: () => holder.finish(hold) };
}

async function endedRun(surface: Surface): Promise<string> {
  const { id, end } = await runningRun(surface);
  await end();
  return id;
}

function batch(surface: Surface, key?: string): Request {
  const json = { runs: [{ kind: 'noop', queue: surface.queue }] };
  return post('/v1/runs/batch', { json, ...(key === undefined ? {} : { headers: { 'idempotency-key': key } }) });
}

/** All of the surface's queue. */
function byFilter(what: 'cancel' | 'rerun', { queue }: Surface, key?: string): Request {
  const headers = key === undefined ? {} : { headers: { 'idempotency-key': key } };
  return post(`/v1/runs/${what}`, { json: { filter: { queue } }, ...headers });
}

/** A surface whose queue has one run, which was canceled. */
async function canceledIn(surface: Surface): Promise<Surface> {
  const own = { ...surface, queue: `q-${newId()}` };
  await done(own, cancelOf(await pendingRun(own)));
  return own;
}

async function worker(surface: Surface): Promise<string> {
  return encodeId('wrk', (await Holder.register({ ...surface, queue: `q-${newId()}` })).id);
}

const drainOf = (id: string) => post(`/v1/workers/${id}/drain`);
const undrainOf = (id: string) => post(`/v1/workers/${id}/undrain`);
const cancelOf = (id: string) => post(`/v1/runs/${id}/cancel`);

function queuePut(paused: boolean, name = `q-${newId()}`): Request {
  return { method: 'PUT', path: `/v1/queues/${name}`, json: { paused, reason: 'to see' } };
}

/** Another time each, which no other run of this file says. */
function retentionPut(): Request {
  return { method: 'PUT', path: '/v1/retention', json: { retention: `${300 * 86_400_000 + randomInt(10_000_000)}ms` } };
}

/** The name of a queue that was paused. */
async function pausedQueue(surface: Surface): Promise<string> {
  return (await done(surface, queuePut(true))).json.name;
}

function rotation(): Request {
  const { x = '' } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
  return post('/v1/audit/key', { json: { publicKey: Buffer.from(x, 'base64url').toString('base64') } });
}

export const CALLS: readonly Call[] = [
  {
    operationId: 'submitRun',
    what: 'a new run',
    prepare: async (surface) => ({ request: submission(surface, newId()) }),
    status: 201,
    entry: ['organization', 'run.submitted'],
  },
  {
    operationId: 'submitRun',
    what: 'the same key again',
    prepare: (surface) => sentOnce(surface, submission(surface, newId())),
    status: 200,
    entry: null,
  },
  {
    operationId: 'submitRun',
    what: 'the same id again',
    prepare: (surface) =>
      sentOnce(surface, post('/v1/runs', { json: { id: newId(), kind: 'noop', queue: surface.queue } })),
    status: 200,
    entry: null,
  },
  {
    operationId: 'rerunRun',
    what: 'an ended run',
    prepare: async (surface) => ({ request: post(`/v1/runs/${await endedRun(surface)}/rerun`) }),
    status: 201,
    entry: ['organization', 'run.submitted'],
  },
  {
    operationId: 'rerunRun',
    what: 'the same key again',
    prepare: async (surface) =>
      sentOnce(surface, post(`/v1/runs/${await endedRun(surface)}/rerun`, { headers: { 'idempotency-key': newId() } })),
    status: 200,
    entry: null,
  },
  {
    operationId: 'cancelRun',
    what: 'a pending run',
    prepare: async (surface) => ({ request: cancelOf(await pendingRun(surface)) }),
    status: 200,
    entry: ['organization', 'run.ended'],
  },
  {
    operationId: 'cancelRun',
    what: 'a run that was canceled while pending',
    prepare: async (surface) => sentOnce(surface, cancelOf(await pendingRun(surface))),
    status: 200,
    entry: null,
  },
  {
    operationId: 'cancelRun',
    what: 'a running run',
    prepare: async (surface) => ({ request: cancelOf((await runningRun(surface)).id) }),
    status: 202,
    entry: ['organization', 'run.cancel_requested'],
  },
  {
    operationId: 'cancelRun',
    what: 'a run that is being stopped',
    prepare: async (surface) => sentOnce(surface, cancelOf((await runningRun(surface)).id)),
    status: 202,
    entry: null,
  },
  {
    operationId: 'submitRuns',
    what: 'a batch',
    prepare: async (surface) => ({ request: batch(surface) }),
    status: 200,
    entry: ['organization', 'run.submitted'],
  },
  {
    operationId: 'submitRuns',
    what: 'the same key again',
    prepare: (surface) => sentOnce(surface, batch(surface, newId())),
    status: 200,
    entry: null,
  },
  {
    operationId: 'cancelRuns',
    what: 'a pending run',
    prepare: async (surface) => {
      const own = { ...surface, queue: `q-${newId()}` };
      await pendingRun(own);
      return { request: byFilter('cancel', own) };
    },
    status: 200,
    entry: ['organization', 'run.ended'],
  },
  {
    operationId: 'cancelRuns',
    what: 'a running run',
    prepare: async (surface) => {
      const own = { ...surface, queue: `q-${newId()}` };
      await pendingRun(own);
      await (await Holder.register(own)).start();
      return { request: byFilter('cancel', own) };
    },
    status: 200,
    entry: ['organization', 'run.cancel_requested'],
  },
  {
    operationId: 'rerunRuns',
    what: 'an ended run',
    prepare: async (surface) => ({ request: byFilter('rerun', await canceledIn(surface)) }),
    status: 200,
    entry: ['organization', 'run.submitted'],
  },
  {
    operationId: 'rerunRuns',
    what: 'the same key again',
    prepare: async (surface) => sentOnce(surface, byFilter('rerun', await canceledIn(surface), newId())),
    status: 200,
    entry: null,
  },
  {
    operationId: 'drainWorker',
    what: 'a live worker',
    prepare: async (surface) => ({ request: drainOf(await worker(surface)) }),
    status: 200,
    entry: ['installation', 'worker.draining'],
  },
  {
    operationId: 'drainWorker',
    what: 'a drained worker',
    prepare: async (surface) => sentOnce(surface, drainOf(await worker(surface))),
    status: 200,
    entry: null,
  },
  {
    operationId: 'undrainWorker',
    what: 'a drained worker',
    prepare: async (surface) => {
      const id = await worker(surface);
      await done(surface, drainOf(id));
      return { request: undrainOf(id) };
    },
    status: 200,
    entry: ['installation', 'worker.undrained'],
  },
  {
    operationId: 'undrainWorker',
    what: 'a worker that was put back',
    prepare: async (surface) => {
      const id = await worker(surface);
      await done(surface, drainOf(id));
      return sentOnce(surface, undrainOf(id));
    },
    status: 200,
    entry: null,
  },
  {
    operationId: 'putQueue',
    what: 'a pause of an open queue',
    prepare: async () => ({ request: queuePut(true) }),
    status: 200,
    entry: ['installation', 'queue.paused'],
  },
  {
    operationId: 'putQueue',
    what: 'a pause of a paused queue',
    prepare: (surface) => sentOnce(surface, queuePut(true)),
    status: 200,
    entry: null,
  },
  {
    operationId: 'putQueue',
    what: 'a resume of a paused queue',
    prepare: async (surface) => ({ request: queuePut(false, await pausedQueue(surface)) }),
    status: 200,
    entry: ['installation', 'queue.resumed'],
  },
  {
    operationId: 'putQueue',
    what: 'a resume of a queue that was resumed',
    prepare: async (surface) => sentOnce(surface, queuePut(false, await pausedQueue(surface))),
    status: 200,
    entry: null,
  },
  {
    operationId: 'putRetention',
    what: 'another time',
    prepare: async () => ({ request: retentionPut() }),
    status: 200,
    entry: ['organization', 'retention.changed'],
  },
  {
    operationId: 'putRetention',
    what: 'the same time again',
    prepare: (surface) => sentOnce(surface, retentionPut()),
    status: 200,
    entry: null,
  },
  {
    operationId: 'rotateAuditKey',
    what: 'another key',
    prepare: async () => ({ request: rotation() }),
    status: 200,
    entry: ['installation', 'audit.key_rotated'],
  },
  {
    operationId: 'rotateAuditKey',
    what: 'the current key',
    prepare: (surface) => sentOnce(surface, rotation()),
    status: 200,
    entry: null,
  },
];

/** Operations that change something, from the document that the routes are checked against. */
export function mutatingOperations(document: {
  paths: Record<string, Record<string, { operationId: string }>>;
}): string[] {
  return Object.values(document.paths).flatMap((methods) =>
    Object.entries(methods).flatMap(([method, { operationId }]) =>
      ['post', 'put', 'patch', 'delete'].includes(method) ? [operationId] : [],
    ),
  );
}
