import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { newId } from '../../src/kernel/ids.js';
import { startIfHeld } from '../../src/runs/claim.sql.js';
import { openSurface, type Surface } from '../send.js';
import { Holder } from './holder.fixture.js';

let root: Surface;
let surface: Surface;
beforeAll(async () => {
  root = await openSurface();
});
beforeEach(() => {
  surface = { ...root, queue: `q-${newId()}` };
});
afterAll(() => root.close());

interface EventJson {
  readonly seq: number | null;
  readonly type: string;
  readonly at: string;
  readonly data: Record<string, unknown>;
}

async function pending(): Promise<{ id: string; holder: Holder }> {
  const json = { kind: 'noop', queue: surface.queue };
  const { id } = (await surface.send({ method: 'POST', path: '/v1/runs', json })).json;
  return { id, holder: await Holder.register(surface) };
}

const list = (id: string, query = '') => surface.send({ path: `/v1/runs/${id}/events${query}` });

/** All pages, and how many there were. */
async function walk(id: string, limit: number, between: () => Promise<unknown> = async () => undefined) {
  const items: EventJson[] = [];
  let path: string | undefined = `/v1/runs/${id}/events?limit=${limit}`;
  let pages = 0;
  while (path !== undefined) {
    const answer = await surface.send({ path });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.json.items.length).toBeLessThanOrEqual(limit);
    items.push(...answer.json.items);
    path = /<(.*)>; rel="next"/.exec(answer.headers.link ?? '')?.[1];
    expect(path === undefined).toBe(answer.json.next === null);
    pages += 1;
    await between();
  }
  return { items, pages };
}

/** What a tool would have reported. */
async function report(id: string, types: readonly string[]): Promise<void> {
  const session = await surface.session();
  await session.query(
    `with live as (
       update live_runs set event_seq = event_seq + $2 where run_id = $1 returning run_day, run_id, event_seq - $2 as seq
     )
     insert into run_events (run_day, run_id, seq, type, at, data)
     select run_day, run_id, seq + n, type, clock_timestamp(), jsonb_build_object('n', n)
     from live, unnest($3::text[]) with ordinality as t (type, n)`,
    [id, types.length, types],
  );
}

it('tell what happened, oldest first, the claim and the start where their instants put them', async () => {
  const { id, holder } = await pending();
  const hold = await holder.start();
  await report(hold.runId, ['progress', 'message']);
  await holder.finish(hold);
  const { json } = await list(id);
  const run = (await surface.send({ path: `/v1/runs/${id}` })).json;
  expect(json.next).toBeNull();
  expect(json.items.map(({ seq, type }: EventJson) => [seq, type])).toEqual([
    [1, 'run.submitted'],
    [null, 'run.claimed'],
    [null, 'run.started'],
    [2, 'progress'],
    [3, 'message'],
    [4, 'run.ended'],
  ]);
  expect(json.items[1]).toEqual({
    seq: null,
    type: 'run.claimed',
    at: run.claimedAt,
    data: { worker: run.worker.id, workerName: 'test-holder', fence: 1 },
  });
  expect(json.items[2]).toEqual({
    seq: null,
    type: 'run.started',
    at: run.startedAt,
    data: { worker: run.worker.id, fence: 1 },
  });
  expect(json.items[3].data).toEqual({ n: 1 });
  expect(json.items[5]).toMatchObject({ at: run.endedAt, data: { state: 'succeeded', code: 'ok' } });
});

it.each([1, 2, 3, 7])('are each seen once in a walk of pages of %i', async (limit) => {
  const { id, holder } = await pending();
  const hold = await holder.start();
  await report(
    hold.runId,
    Array.from({ length: 20 }, (_, i) => `type.${i}`),
  );
  await holder.finish(hold);
  const whole = (await list(id, '?limit=200')).json.items;
  expect(whole).toHaveLength(24);
  const { items, pages } = await walk(id, limit);
  expect(items).toEqual(whole);
  expect(pages).toBe(Math.ceil(24 / limit));
});

it('are each seen once in a walk during which the run goes on', async () => {
  const { id, holder } = await pending();
  const hold = await holder.claim();
  await report(hold.runId, ['a', 'b', 'c', 'd']);
  let turn = 0;
  const { items } = await walk(id, 1, async () => {
    turn += 1;
    if (turn === 3) await startIfHeld(surface.pool, holder.id, [hold]);
    if (turn === 5) await holder.finish(hold);
  });
  expect(items.map(({ type }) => type)).toEqual([
    'run.submitted',
    'run.claimed',
    'a',
    'b',
    'c',
    'd',
    'run.started',
    'run.ended',
  ]);
});

it('that are large come in pages of bounded size, without the caller’s doing', async () => {
  const { id, holder } = await pending();
  const hold = await holder.start();
  const session = await surface.session();
  await session.query(
    `with live as (update live_runs set event_seq = 21 where run_id = $1 returning run_day, run_id)
     insert into run_events (run_day, run_id, seq, type, at, data)
     select run_day, run_id, 1 + n, 'message', clock_timestamp(), jsonb_build_object('text', repeat('x', 100000))
     from live, generate_series(1, 20) as n`,
    [hold.runId],
  );
  await holder.finish(hold);
  const first = await list(id, '?limit=200');
  expect(first.bytes.length).toBeLessThan(700_000);
  const { items } = await walk(id, 200);
  expect(items.map(({ seq }) => seq).filter((seq) => seq !== null)).toEqual(
    Array.from({ length: 22 }, (_, i) => i + 1),
  );
});

it.each(['limit=0', 'limit=201', 'limit=x', 'cursor=x', 'cursor=', `cursor=${'A'.repeat(500)}`, 'since=1'])(
  'with ?%s are refused',
  async (query) => {
    const { id } = await pending();
    const answer = await list(id, `?${query}`);
    expect(answer.status).toBe(422);
    expect(answer.json.errors[0].pointer).toBe(`?${query.split('=')[0]}`);
  },
);

it('a cursor that was changed is refused', async () => {
  const { id, holder } = await pending();
  await holder.start();
  const { next } = (await list(id, '?limit=1')).json;
  expect((await list(id, `?limit=1&cursor=${next}`)).status).toBe(200);
  for (const cursor of [`${next}A`, next.slice(1), Buffer.from('01 1 1').toString('base64url')]) {
    expect((await list(id, `?limit=1&cursor=${cursor}`)).status, cursor).toBe(422);
  }
});
