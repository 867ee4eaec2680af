import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeId, encodeId, newId } from '../../src/kernel/ids.js';
import { type Answer, openSurface, type Surface } from '../send.js';
import { Holder } from './holder.fixture.js';

let surface: Surface;
beforeAll(async () => {
  surface = await openSurface();
});
afterAll(() => surface.close());

async function submit(body: object): Promise<string> {
  const answer = await surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', ...body } });
  expect(answer.status, answer.text).toBe(201);
  return answer.json.id;
}

function list(query: Record<string, string | string[]>): Promise<Answer> {
  const parameters = new URLSearchParams(
    Object.entries(query).flatMap(([name, values]) => [values].flat().map((value): [string, string] => [name, value])),
  );
  return surface.send({ path: `/v1/runs?${parameters}` });
}

async function idsOf(query: Record<string, string | string[]>): Promise<string[]> {
  const answer = await list(query);
  expect(answer.status, answer.text).toBe(200);
  return answer.json.items.map((run: { id: string }) => run.id);
}

/** All ids in the order of the pages, as a caller walks them. */
async function walk(query: Record<string, string>): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const answer = await list({ ...query, ...(cursor === '' ? {} : { cursor }) });
    expect(answer.status, answer.text).toBe(200);
    ids.push(...answer.json.items.map((run: { id: string }) => run.id));
    cursor = answer.json.next;
  }
  return ids;
}

/** Runs that were all created at one instant, newest first: submitted, then moved there together. */
async function makeTwins(queue: string, count: number): Promise<string[]> {
  for (let left = count; left > 0; left -= 25) {
    await Promise.all(Array.from({ length: Math.min(25, left) }, () => submit({ queue })));
  }
  const session = await surface.session();
  const at = '2026-01-02T03:04:05.678Z';
  await session.query("update live_runs set created_at = $2, run_day = '2026-01-02' where queue = $1", [queue, at]);
  const moved = await session.query('update runs set created_at = $2 where queue = $1 returning id', [queue, at]);
  expect(moved.rowCount).toBe(count);
  return moved.rows
    .map((row: { id: string }) => row.id)
    .sort()
    .reverse()
    .map((id) => encodeId('run', id));
}

describe('1,000 runs of one instant', () => {
  let queue: string;
  let twins: string[];
  beforeAll(async () => {
    queue = `${surface.queue}-twins`;
    twins = await makeTwins(queue, 1_000);
  });

  it.each(['1', '7', '50', '199', '200'])(
    'walking them at limit=%s sees each once, in one order',
    {
      timeout: 120_000,
    },
    async (limit) => {
      expect(await walk({ queue, limit })).toEqual(twins);
    },
  );

  it('what is submitted meanwhile neither repeats nor hides one', async () => {
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const answer = await list({ queue, limit: '100', ...(cursor === '' ? {} : { cursor }) });
      seen.push(...answer.json.items.map((run: { id: string }) => run.id));
      cursor = answer.json.next;
      await submit({ queue });
    }
    expect(seen).toEqual(twins);
  });

  it('the Link header names the next page with the same filters, and is absent on the last', async () => {
    const first = await list({ queue: `${queue}`, limit: '200', state: 'pending' });
    const [, next = ''] = /^<(\/v1\/runs\?[^>]+)>; rel="next"$/.exec(first.headers.link ?? '') ?? [];
    const parameters = new URL(next, 'http://x').searchParams;
    expect(Object.fromEntries(parameters)).toEqual({ queue, limit: '200', state: 'pending', cursor: first.json.next });
    const second = await surface.send({ path: next });
    expect(second.json.items).toHaveLength(200);
    const last = await list({ queue: `${surface.queue}-none` });
    expect(last.json).toEqual({ items: [], next: null });
    expect(last.headers.link).toBeUndefined();
  });
});

it('a page holds 50 runs unless it says otherwise', async () => {
  const queue = `${surface.queue}-fifty`;
  await makeTwins(queue, 51);
  expect((await list({ queue })).json.items).toHaveLength(50);
});

it('F083 a list shows no payload, however large the runs are', async () => {
  const queue = `${surface.queue}-large`;
  for (let i = 0; i < 3; i += 1) {
    await submit({ queue, kind: 'command', spec: { argv: ['cat'], stdin: 'x'.repeat(200_000) } });
  }
  const answer = await list({ queue });
  expect(answer.json.items).toHaveLength(3);
  expect(answer.bytes.length).toBeLessThan(10_000);
  for (const run of answer.json.items) expect(Object.keys(run)).not.toEqual(expect.arrayContaining(['spec']));
});

describe('filters', () => {
  it('by state, as a list or repeated, in either spelling of canceled', async () => {
    const queue = `${surface.queue}-states`;
    const [ends, runs, cancels, waits] = [
      await submit({ queue, priority: 9 }),
      await submit({ queue, priority: 8 }),
      await submit({ queue }),
      await submit({ queue }),
    ];
    const holder = await Holder.register({ ...surface, queue });
    await holder.finish(await holder.start());
    await holder.start();
    await surface.send({ method: 'POST', path: `/v1/runs/${cancels}/cancel` });
    const by = (state: string | string[]) => idsOf({ queue, state });
    expect(await by('succeeded')).toEqual([ends]);
    expect(await by('running')).toEqual([runs]);
    expect(await by('pending')).toEqual([waits]);
    expect(await by('canceled')).toEqual([cancels]);
    expect(await by('cancelled')).toEqual([cancels]);
    expect(await by('running,cancelled')).toEqual([cancels, runs]);
    expect(await by(['pending', 'succeeded'])).toEqual([waits, ends]);
    expect(await by('held')).toEqual([]);
    expect(await idsOf({ queue })).toEqual([waits, cancels, runs, ends]);
  });

  it('by kind, queue and origin', async () => {
    const queue = `${surface.queue}-kinds`;
    const noop = await submit({ queue });
    const command = await submit({ queue, kind: 'command', spec: { argv: ['x'] } });
    expect(await idsOf({ queue, kind: 'noop' })).toEqual([noop]);
    expect(await idsOf({ queue, kind: 'command' })).toEqual([command]);
    expect(await idsOf({ queue, kind: 'script' })).toEqual([]);
    expect(await idsOf({ queue, origin: 'api' })).toEqual([command, noop]);
    expect(await idsOf({ queue, origin: 'schedule' })).toEqual([]);
  });

  it('by labels: all of those named, values with colons included', async () => {
    const queue = `${surface.queue}-labels`;
    const both = await submit({ queue, labels: { a: '1', url: 'http://x:80/' } });
    const one = await submit({ queue, labels: { a: '1', b: '' } });
    expect(await idsOf({ queue, label: 'a:1' })).toEqual([one, both]);
    expect(await idsOf({ queue, label: ['a:1', 'url:http://x:80/'] })).toEqual([both]);
    expect(await idsOf({ queue, label: 'b:' })).toEqual([one]);
    expect(await idsOf({ queue, label: 'a:2' })).toEqual([]);
  });

  it('by instants, both ends excluded, in any offset', async () => {
    const queue = `${surface.queue}-instants`;
    const twins = await makeTwins(queue, 1);
    const at = (createdAfter: string, createdBefore: string) => idsOf({ queue, createdAfter, createdBefore });
    expect(await at('2026-01-02T03:04:05.677Z', '2026-01-02T03:04:05.679Z')).toEqual(twins);
    expect(await at('2026-01-02T05:04:05.677+02:00', '2026-01-02T01:04:05.679-02:00')).toEqual(twins);
    expect(await at('2026-01-02T03:04:05.678Z', '2026-01-02T03:04:06Z')).toEqual([]);
    expect(await at('2026-01-02T03:04:05Z', '2026-01-02T03:04:05.678Z')).toEqual([]);
  });

  it('by words of the name: whole ones, all of them, in any case and order, whatever stands between them', async () => {
    const queue = `${surface.queue}-words`;
    const names = ['Nightly backup: db-17 (prod)', 'nightly_backup/db17', 'Sauvegarde é été', 'backups'];
    const [spaced, joined, accented, many] = await Promise.all(names.map((name) => submit({ queue, name })));
    await submit({ queue });
    const by = async (q: string) => (await idsOf({ queue, q })).sort();
    expect(await by('nightly')).toEqual([spaced, joined].sort());
    expect(await by('BACKUP, nightly')).toEqual([spaced, joined].sort());
    expect(await by('db 17')).toEqual([spaced]);
    expect(await by('db-17')).toEqual([spaced]);
    expect(await by('db17')).toEqual([joined]);
    expect(await by('backup')).toEqual([spaced, joined].sort());
    expect(await by('backups')).toEqual([many]);
    expect(await by('été')).toEqual([accented]);
    expect(await by('prod nightly staging')).toEqual([]);
    expect(await by(`'x' | !(prod) & :*`)).toEqual([]);
    expect(await by(`(prod) & !db:*`)).toEqual([spaced]);
  });

  it('by who made them, and by the run whose children they are', async () => {
    const queue = `${surface.queue}-principals`;
    const id = await submit({ queue });
    const { principal } = (await surface.send({ path: `/v1/runs/${id}` })).json;
    expect(await idsOf({ queue, principal: principal.id })).toEqual([id]);
    expect(await idsOf({ queue, principal: encodeId('tok', newId()) })).toEqual([]);
    const child = await submit({ queue });
    const session = await surface.session();
    const uuids = [child, id].map((name) => decodeId('run', name));
    await session.query('update runs set parent_id = $2, root_id = $2 where id = $1', uuids);
    expect(await idsOf({ parent: id })).toEqual([child]);
    expect(await idsOf({ parent: id, state: 'pending' })).toEqual([child]);
    expect(await idsOf({ parent: child })).toEqual([]);
  });

  it('never show another organization’s runs', async () => {
    const queue = `${surface.queue}-theirs`;
    const { token } = await surface.stranger();
    const json = { kind: 'noop', queue };
    const theirs = await surface.send({ method: 'POST', path: '/v1/runs', token, json });
    expect(await idsOf({ queue })).toEqual([]);
    const seen = await surface.send({ path: `/v1/runs?queue=${queue}`, token });
    expect(seen.json.items.map((run: { id: string }) => run.id)).toEqual([theirs.json.id]);
  });
});

describe('what a list does not understand is 422, never clamped or ignored', () => {
  it.each([
    ['?limit', { limit: '0' }],
    ['?limit', { limit: '201' }],
    ['?limit', { limit: '-1' }],
    ['?limit', { limit: '1.5' }],
    ['?limit', { limit: '1e2' }],
    ['?limit', { limit: ' 5' }],
    ['?limit', { limit: '' }],
    ['?limit', { limit: ['1', '2'] }],
    ['?state', { state: 'done' }],
    ['?state', { state: 'pending,' }],
    ['?state', { state: '' }],
    ['?kind', { kind: 'shell' }],
    ['?kind', { kind: ['noop', 'command'] }],
    ['?queue', { queue: 'A B' }],
    ['?queue', { queue: ['a', 'b'] }],
    ['?origin', { origin: 'cron' }],
    ['?label', { label: 'a' }],
    ['?label', { label: ':a' }],
    ['?label', { label: ['a:1', 'a:2'] }],
    ['?q', { q: '' }],
    ['?q', { q: ' -:*' }],
    ['?q', { q: 'x'.repeat(201) }],
    ['?q', { q: ['a', 'b'] }],
    ['?principal', { principal: '' }],
    ['?principal', { principal: 'admin' }],
    ['?principal', { principal: ['a', 'b'] }],
    ['?parent', { parent: 'wrk_01h455vb4pex5vsknk084sn02q' }],
    ['?createdAfter', { createdAfter: 'yesterday' }],
    ['?createdBefore', { createdAfter: '2026-01-02T00:00:00Z', createdBefore: '2026-01-01T00:00:00Z' }],
    ['?cursor', { cursor: '' }],
    ['?cursor', { cursor: 'x' }],
    ['?template', { template: 'x' }],
    ['?constructor', { constructor: 'x' }],
    ['?__proto__', { ['__proto__']: 'x' }],
  ] as [string, Record<string, string | string[]>][])('%s in %j', async (pointer, query) => {
    const answer = await list(query);
    expect(answer.status, answer.text).toBe(422);
    expect(answer.json.errors.map((error: { pointer: string }) => error.pointer)).toContain(pointer);
  });

  it('a cursor of which any one character was changed', async () => {
    const queue = `${surface.queue}-damage`;
    await makeTwins(queue, 3);
    const cursor: string = (await list({ queue, limit: '1' })).json.next;
    await fc.assert(
      fc.asyncProperty(fc.nat(cursor.length - 1), fc.constantFrom(...'ABCxyz019-_ %='), async (at, letter) => {
        fc.pre(cursor[at] !== letter);
        const damaged = cursor.slice(0, at) + letter + cursor.slice(at + 1);
        const { status } = await list({ queue, cursor: damaged });
        // Some changes name another instant or run: that is a cursor again, of somewhere else.
        expect([200, 422]).toContain(status);
      }),
      { numRuns: 100 },
    );
    for (const damaged of [cursor.slice(1), cursor.slice(0, -1), `${cursor}A`, `${cursor}=`, ` ${cursor}`]) {
      expect((await list({ queue, cursor: damaged })).status, damaged).toBe(422);
    }
  });

  it('random queries are answered 200 or 422 and nothing else', async () => {
    const names = [
      'state',
      'kind',
      'queue',
      'origin',
      'label',
      'createdAfter',
      'limit',
      'cursor',
      'q',
      'principal',
      'parent',
      '__proto__',
    ];
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom(...names), fc.string({ unit: 'binary', maxLength: 30 })), { maxLength: 4 }),
        async (pairs) => {
          const query = pairs.map(([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`).join('&');
          expect([200, 422]).toContain((await surface.send({ path: `/v1/runs?${query}` })).status);
        },
      ),
      { numRuns: 200 },
    );
  });
});

it('an id that names nothing is 404, in each way of writing it', async () => {
  for (const id of [newId(), encodeId('run', newId()), 'run_1', 'x', encodeId('org', newId())]) {
    const answer = await surface.send({ path: `/v1/runs/${id}` });
    expect(answer.status, id).toBe(404);
    expect(answer.json.code).toBe('not_found');
  }
});
