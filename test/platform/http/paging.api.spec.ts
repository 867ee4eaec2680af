/** Every list that has pages, walked to its end: rows of one instant too, each exactly once, at any size of a page. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../../src/kernel/ids.js';
import { Holder } from '../../runs/holder.fixture.js';
import { openSurface, type Surface } from '../../send.js';
import { routesIn } from './routes.fixture.js';

const ROWS = 120;

let surface: Surface;
beforeAll(async () => {
  surface = await openSurface();
});
afterAll(() => surface.close());

interface List {
  /** Its first page, without a limit. */
  readonly path: string;
  readonly token?: string;
  readonly idOf: (item: Record<string, unknown>) => string;
  /** In the order of the list; others may have rows in between. */
  readonly rows: readonly string[];
}

/** Runs of one statement and so of one instant, in a queue or an organization of their own, newest first. */
async function submitMany(queue: string, token?: string): Promise<string[]> {
  const runs = Array.from({ length: ROWS }, () => ({ kind: 'noop', queue }));
  const whose = token === undefined ? {} : { token };
  const answer = await surface.send({ method: 'POST', path: '/v1/runs/batch', json: { runs }, ...whose });
  expect(answer.status, answer.text).toBe(200);
  const made: { id: string; createdAt: string }[] = answer.json.items.map((item: { run: object }) => item.run);
  expect(new Set(made.map(({ createdAt }) => createdAt)).size, 'they have one instant').toBe(1);
  return made
    .map(({ id }) => id)
    .sort()
    .reverse();
}

/** Events of one instant, and as many that are a microsecond apart. */
async function reportMany(queue: string): Promise<{ id: string; seqs: string[] }> {
  const { id } = (await surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue } })).json;
  const session = await surface.session();
  const { rows } = await session.query<{ seq: string }>(
    `with live as (
       update live_runs set event_seq = event_seq + 2 * $2::int
       where queue = $1
       returning run_day, run_id, event_seq - 2 * $2::int as seq
     )
     insert into run_events (run_day, run_id, seq, type, at, data)
     select run_day, run_id, seq + n, 'x', now() + greatest(n - $2::int, 0) * interval '1 microsecond', '{}'
     from live, generate_series(1, 2 * $2::int) n
     returning seq`,
    [queue, ROWS / 2],
  );
  return { id, seqs: rows.map(({ seq }) => String(seq)) };
}

/** Workers of one instant, each with a queue of its own. */
async function registerMany(prefix: string): Promise<{ ids: string[]; queues: string[] }> {
  const queues = Array.from({ length: ROWS }, (_, i) => `${prefix}-${String(i).padStart(4, '0')}`);
  const holders: Holder[] = [];
  for (const queue of queues) holders.push(await Holder.register({ ...surface, queue }));
  const session = await surface.session();
  const ids = holders.map(({ id }) => id);
  await session.query(`update workers set started_at = date_trunc('milliseconds', now()) where id = any ($1)`, [ids]);
  return { ids, queues };
}

const idOf = (item: Record<string, unknown>) => String(item.id);

const LISTS: Readonly<Record<string, () => Promise<List>>> = {
  '/v1/runs': async () => {
    const queue = `q-${newId()}`;
    return { path: `/v1/runs?queue=${queue}`, idOf, rows: await submitMany(queue) };
  },
  '/v1/runs/{id}/events': async () => {
    const { id, seqs } = await reportMany(`q-${newId()}`);
    return { path: `/v1/runs/${id}/events?`, idOf: ({ seq }) => String(seq), rows: seqs };
  },
  '/v1/audit': async () => {
    const { token } = await surface.stranger();
    await submitMany(`q-${newId()}`, token);
    const rows = Array.from({ length: ROWS }, (_, i) => String(ROWS - i));
    return { path: '/v1/audit?', token, idOf: ({ seq }) => String(seq), rows };
  },
  '/v1/queues': async () => {
    const { queues } = await registerMany(`q-${newId()}`);
    return { path: '/v1/queues?', idOf: ({ name }) => String(name), rows: queues };
  },
  '/v1/workers': async () => {
    const { ids } = await registerMany(`q-${newId()}`);
    const shown = await Promise.all(ids.map(async (id) => (await surface.send({ path: `/v1/workers/${id}` })).json.id));
    return { path: '/v1/workers?', idOf, rows: shown.sort().reverse() };
  },
};

it('F140 every route that gives a cursor is walked here', async () => {
  const lists = (await routesIn(surface)).filter(({ query }) => query.some(({ name }) => name === 'cursor'));
  expect(lists.map(({ template }) => template).sort()).toEqual(Object.keys(LISTS).sort());
});

describe.each(Object.entries(LISTS))('F140 %s', (_, make) => {
  let list: List;
  beforeAll(async () => {
    list = await make();
  });

  it.each([1, 2, 50, 200])('at limit=%i shows each row exactly once, in one order, and ends', async (limit) => {
    const seen: string[] = [];
    const cursors = new Set<string>();
    for (let cursor: string | null = ''; cursor !== null; ) {
      const path = `${list.path}&limit=${limit}${cursor === '' ? '' : `&cursor=${cursor}`}`;
      const answer = await surface.send({ path, ...(list.token === undefined ? {} : { token: list.token }) });
      expect(answer.status, answer.text).toBe(200);
      expect(answer.json.items.length).toBeLessThanOrEqual(limit);
      seen.push(...answer.json.items.map(list.idOf));
      cursor = answer.json.next;
      if (cursor !== null) expect(cursors.has(cursor), 'a cursor leads on, never back').toBe(false);
      cursors.add(cursor ?? '');
    }
    const own = new Set(list.rows);
    expect(seen.filter((id) => own.has(id))).toEqual(list.rows);
  });
});

it('F140 what a list is ordered by is kept as fine as a cursor tells it, and no finer', async () => {
  const queue = `q-${newId()}`;
  await submitMany(queue);
  await Holder.register({ ...surface, queue });
  const session = await surface.session();
  const { rows } = await session.query(
    `select date_trunc('milliseconds', at) = at as is_whole
     from (select created_at from runs where queue = $1
           union all select started_at from workers where queues = array[$1]) t (at)`,
    [queue],
  );
  expect(rows).toHaveLength(ROWS + 1);
  expect(rows.every((row) => row.is_whole)).toBe(true);
});
