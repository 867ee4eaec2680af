/** Every POST that makes runs, as a caller sends it: what must hold for one of them must hold for all. */
import type { Request } from '../send.js';

export interface Told {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what the test is about
  readonly json: any;
}

export type Send = (request: Request) => Promise<Told>;

export interface Creation {
  readonly request: Request;
  /** Another one that the same key may not come with. */
  readonly other: Request;
  /** How many runs it makes. */
  readonly makes: number;
}

export interface Creating {
  readonly operationId: string;
  /** Puts what it needs into a queue of its own. */
  readonly prepare: (send: Send, queue: string) => Promise<Creation>;
  /** The status of the first answer, and of a replay. */
  readonly status: readonly [first: number, again: number];
  readonly idsOf: (told: Told) => readonly string[];
}

const post = (path: string, json?: object): Request => ({
  method: 'POST',
  path: `/v1/runs${path}`,
  ...(json === undefined ? {} : { json }),
});

async function canceled(send: Send, queue: string, n: number): Promise<string[]> {
  const runs = Array.from({ length: n }, () => ({ kind: 'noop', queue }));
  const made = await send(post('/batch', { runs }));
  if (made.status !== 200) throw new Error(`nothing was made: ${made.status}`);
  await send(post('/cancel', { filter: { queue } }));
  return made.json.items.map((item: { run: { id: string } }) => item.run.id);
}

export const CREATING: readonly Creating[] = [
  {
    operationId: 'submitRun',
    prepare: async (_, queue) => ({
      request: post('', { kind: 'noop', queue }),
      other: post('', { kind: 'noop', queue, name: 'other' }),
      makes: 1,
    }),
    status: [201, 200],
    idsOf: ({ json }) => [json.id],
  },
  {
    operationId: 'rerunRun',
    prepare: async (send, queue) => {
      const [id, other] = await canceled(send, queue, 2);
      return { request: post(`/${id}/rerun`), other: post(`/${other}/rerun`), makes: 1 };
    },
    status: [201, 200],
    idsOf: ({ json }) => [json.id],
  },
  {
    operationId: 'submitRuns',
    prepare: async (_, queue) => {
      const runs = Array.from({ length: 20 }, (_, i) => ({ kind: 'noop', queue, name: `r${i}` }));
      return { request: post('/batch', { runs }), other: post('/batch', { runs: runs.slice(1) }), makes: 20 };
    },
    status: [200, 200],
    idsOf: ({ json }) => json.items.map((item: { run?: { id: string } }) => item.run?.id),
  },
  {
    operationId: 'rerunRuns',
    prepare: async (send, queue) => {
      await canceled(send, queue, 20);
      const filter = { queue, state: 'canceled' };
      return { request: post('/rerun', { filter, limit: 20 }), other: post('/rerun', { filter, limit: 7 }), makes: 20 };
    },
    status: [200, 200],
    idsOf: ({ json }) => json.items.map((item: { id: string }) => item.id),
  },
];

/** The request with an `Idempotency-Key`. */
export function under(key: string, request: Request): Request {
  return { ...request, headers: { 'idempotency-key': key } };
}
