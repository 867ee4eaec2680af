/** Cancels and reruns by filter: what they mean, what they leave alone, and what a retry makes of them. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newId } from '../../src/kernel/ids.js';
import { type Answer, openSurface, type Request, type Surface } from '../send.js';
import { Holder } from './holder.fixture.js';

let root: Surface;
/** The surface with a queue of its own for each test. */
let surface: Surface;
beforeAll(async () => {
  root = await openSurface();
});
beforeEach(() => {
  surface = { ...root, queue: `q-${newId()}` };
});
afterAll(() => root.close());

async function submit(n: number, over: object = {}): Promise<string[]> {
  const runs = Array.from({ length: n }, () => ({ kind: 'noop', queue: surface.queue, ...over }));
  const { json } = await surface.send({ method: 'POST', path: '/v1/runs/batch', json: { runs } });
  return json.items.map((item: { run: { id: string } }) => item.run.id);
}

/** Runs that were canceled. */
async function ended(n: number): Promise<string[]> {
  const ids = await submit(n);
  await cancel({ filter: ours() });
  return ids;
}

const ours = (over: object = {}) => ({ queue: surface.queue, ...over });
const post = (path: string, json: object, rest: Partial<Request> = {}): Promise<Answer> =>
  surface.send({ method: 'POST', path: `/v1/runs/${path}`, json, ...rest });
const cancel = (json: object, rest?: Partial<Request>) => post('cancel', json, rest);
const rerun = (json: object, key?: string, rest?: Partial<Request>) =>
  post('rerun', json, { ...rest, ...(key === undefined ? {} : { headers: { 'idempotency-key': key } }) });
const show = async (id: string) => (await surface.send({ path: `/v1/runs/${id}` })).json;

async function statesOf(ids: readonly string[]): Promise<string[]> {
  return Promise.all(ids.map(async (id) => (await show(id)).state));
}

async function countRuns(): Promise<number> {
  const session = await surface.session();
  const { rows } = await session.query('select count(*)::integer as n from runs where queue = $1', [surface.queue]);
  return rows[0].n;
}

describe('F161 a cancel by filter', () => {
  it('ends what waits, asks the holders of what runs, and leaves others alone', async () => {
    const [first] = await submit(1);
    const holder = await Holder.register(surface);
    const hold = await holder.start();
    const [second] = await submit(1);
    await holder.claim();
    const waiting = await submit(3, { labels: { env: 'prod' } });
    const [later] = await submit(1, { notBefore: '2999-01-01T00:00:00Z' });
    const done = await submit(1);
    await surface.send({ method: 'POST', path: `/v1/runs/${done[0]}/cancel` });
    const [elsewhere] = await submit(1, { queue: `${surface.queue}-other` });

    const answer = await cancel({ filter: ours() });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.json).toEqual({ dryRun: false, matched: 6, canceled: 4, stopping: 2, next: null });
    expect(await statesOf([...waiting, later ?? ''])).toEqual(Array(4).fill('canceled'));
    expect(await statesOf([first ?? '', second ?? '', elsewhere ?? ''])).toEqual(['running', 'claimed', 'pending']);
    expect((await show(first ?? '')).cancelRequestedAt).toMatch(/Z$/);
    const run = await show(waiting[0] ?? '');
    expect(run.end).toMatchObject({ code: 'canceled', kind: 'requested', by: run.principal.id });

    const again = await cancel({ filter: ours() });
    expect(again.json).toEqual({ dryRun: false, matched: 2, canceled: 0, stopping: 2, next: null });
    expect(again.headers['audit-receipt']).toBeUndefined();
    await holder.finish(hold);
    expect((await show(first ?? '')).state).toBe('succeeded');
  });

  it('writes an entry for each run, of which the newest is the receipt, and the chain holds', async () => {
    const ids = await submit(3);
    const answer = await cancel({ filter: ours({ state: ['pending'] }) });
    const receipts = await Promise.all(ids.map(async (id) => (await show(id)).receipts.ended));
    expect(new Set(receipts).size).toBe(3);
    const seqOf = (receipt: string) => Number(receipt.split(':')[1]);
    const newest = [...receipts].sort((a, b) => seqOf(b) - seqOf(a))[0];
    expect(answer.headers['audit-receipt']).toBe(newest);
    expect((await surface.send({ path: '/v1/audit/verify' })).json).toMatchObject({ ok: true });
  });

  it('that runs dry counts, and changes nothing', async () => {
    const ids = await submit(3, { name: 'nightly backup' });
    await submit(2, { name: 'weekly backup' });
    const answer = await cancel({ filter: ours({ q: 'nightly', state: 'pending,running' }), dryRun: true });
    expect(answer.json).toEqual({ dryRun: true, matched: 3, canceled: 0, stopping: 0, next: null });
    expect(answer.headers['audit-receipt']).toBeUndefined();
    expect(new Set(await statesOf(ids))).toEqual(new Set(['pending']));
  });

  it('of more than one step ends all of them, each once', async () => {
    const ids = await submit(450);
    const answer = await cancel({ filter: ours() });
    expect(answer.json).toEqual({ dryRun: false, matched: 450, canceled: 450, stopping: 0, next: null });
    const session = await surface.session();
    const { rows } = await session.query(
      `select count(*)::integer as entries, count(distinct e.run_id)::integer as runs
       from audit_entries e join runs r on r.id = e.run_id where r.queue = $1 and e.action = 'run.ended'`,
      [surface.queue],
    );
    expect(rows).toEqual([{ entries: 450, runs: 450 }]);
    expect(ids).toHaveLength(450);
  });

  it('goes on behind its cursor, and never to what is newer', async () => {
    const older = await submit(2);
    const [place] = await submit(1);
    const newer = await submit(2);
    const list = await surface.send({ path: `/v1/runs?queue=${surface.queue}&limit=3` });
    expect(list.json.items.at(-1).id).toBe(place);
    const answer = await cancel({ filter: ours(), cursor: list.json.next });
    expect(answer.json).toMatchObject({ matched: 2, canceled: 2, next: null });
    expect(await statesOf(older)).toEqual(['canceled', 'canceled']);
    expect(await statesOf([place ?? '', ...newer])).toEqual(['pending', 'pending', 'pending']);
  });

  it('by states touches no run in another one', async () => {
    const [running] = await submit(1);
    const holder = await Holder.register(surface);
    await holder.start();
    const [waiting] = await submit(1);
    expect((await cancel({ filter: ours({ state: 'pending' }) })).json).toMatchObject({ canceled: 1, stopping: 0 });
    expect((await show(running ?? '')).cancelRequestedAt).toBeNull();
    expect(await statesOf([waiting ?? ''])).toEqual(['canceled']);
  });

  it('of another organization finds nothing', async () => {
    const ids = await submit(2);
    const { token } = await surface.stranger();
    const answer = await cancel({ filter: ours() }, { token });
    expect(answer.json).toMatchObject({ matched: 0, canceled: 0, next: null });
    const foreign = await rerun({ filter: { state: 'canceled' } }, undefined, { token });
    expect(foreign.json).toMatchObject({ matched: 0, items: [] });
    expect(await statesOf(ids)).toEqual(['pending', 'pending']);
  });
});

describe('F161 a filter that might mean more than was thought is refused', () => {
  const refused: [string, object, string][] = [
    ['none', {}, '/filter'],
    ['an empty one', { filter: {} }, '/filter'],
    ['a text', { filter: 'state:pending' }, '/filter'],
    ['a list', { filter: [] }, '/filter'],
    ['an unknown member', { filter: { queues: 'x' } }, '/filter/queues'],
    ['null for a member', { filter: { state: 'pending', queue: null } }, '/filter/queue'],
    ['no states', { filter: { state: [] } }, '/filter/state'],
    ['null for a state', { filter: { state: null } }, '/filter/state'],
    ['no labels', { filter: { label: [] } }, '/filter/label'],
    ['a label that is none', { filter: { label: ['env'] } }, '/filter/label'],
    ['an object for a label', { filter: { label: { env: 'prod' } } }, '/filter/label'],
    ['an object that has no text', { filter: { state: { toString: 1, valueOf: 2 } } }, '/filter/state'],
    ['a number', { filter: { queue: 7 } }, '/filter/queue'],
    ['an unknown state', { filter: { state: 'done' } }, '/filter/state'],
    [
      'instants that leave nothing',
      { filter: { createdAfter: '2030-01-02T00:00:00Z', createdBefore: '2030-01-01T00:00:00Z' } },
      '/filter/createdBefore',
    ],
    ['a text for dryRun', { filter: { queue: 'x' }, dryRun: 'true' }, '/dryRun'],
    ['null for dryRun', { filter: { queue: 'x' }, dryRun: null }, '/dryRun'],
    ['a damaged cursor', { filter: { queue: 'x' }, cursor: 'AAAA' }, '/cursor'],
    ['an unknown member beside it', { filter: { queue: 'x' }, force: true }, '/force'],
  ];
  it.each(refused)('%s', async (_, json, pointer) => {
    for (const path of ['cancel', 'rerun']) {
      const answer = await post(path, json);
      expect(answer.status, answer.text).toBe(422);
      expect(answer.json.errors.map((error: { pointer: string }) => error.pointer)).toEqual([pointer]);
    }
  });

  it('states that are not meant', async () => {
    const ended = await cancel({ filter: { state: 'pending,failed' } });
    expect([ended.status, ended.json.errors[0].pointer]).toEqual([422, '/filter/state']);
    const live = await rerun({ filter: { state: ['failed', 'running'] } });
    expect([live.status, live.json.errors[0].pointer]).toEqual([422, '/filter/state']);
  });

  it.each([0, 1_001, 1.5, '5', null])('%s for the limit of a rerun', async (limit) => {
    const answer = await rerun({ filter: ours(), limit });
    expect([answer.status, answer.json.errors[0].pointer]).toEqual([422, '/limit']);
  });
});

describe('F161 a rerun by filter', () => {
  it('makes a new run of each ended one, and of no other', async () => {
    const spec = { argv: ['true'], env: { TZ: 'UTC' } };
    const ids = await submit(2, {
      kind: 'command',
      name: 'again',
      priority: 7,
      timeout: '1m',
      labels: { a: 'b' },
      spec,
    });
    await cancel({ filter: ours() });
    const [live] = await submit(1);
    const answer = await rerun({ filter: ours() });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.json).toMatchObject({ dryRun: false, matched: 2, next: null });
    expect(answer.json.items.map(({ rerunOf }: { rerunOf: string }) => rerunOf).sort()).toEqual([...ids].sort());
    for (const { rerunOf, id } of answer.json.items) {
      const [before, now] = [await show(rerunOf), await show(id)];
      expect(now).toMatchObject({ state: 'pending', rerunOf, rootId: id, name: 'again', priority: 7, timeout: '1m' });
      expect(now).toMatchObject({ spec: before.spec, labels: before.labels, queue: before.queue, kind: 'command' });
    }
    const last = await show(answer.json.items.at(-1).id);
    expect(answer.headers['audit-receipt']).toBe(last.receipts.submitted);
    expect(await statesOf([live ?? ''])).toEqual(['pending']);
  });

  it('that runs dry counts, and makes nothing', async () => {
    await ended(3);
    const answer = await rerun({ filter: ours(), dryRun: true }, newId());
    expect(answer.json).toEqual({ dryRun: true, matched: 3, items: [], next: null });
    expect(await countRuns()).toBe(3);
  });

  it('goes on where its limit was', async () => {
    const ids = await ended(5);
    const filter = ours({ state: 'canceled' });
    const found: string[] = [];
    let cursor: string | null = null;
    do {
      const { json } = await rerun({ filter, limit: 2, cursor });
      found.push(...json.items.map(({ rerunOf }: { rerunOf: string }) => rerunOf));
      cursor = json.next;
    } while (cursor !== null);
    expect(found.sort()).toEqual([...ids].sort());
    expect(await countRuns()).toBe(10);
  });

  it('of what matches nothing makes nothing, and leaves no key', async () => {
    const key = newId();
    const first = await rerun({ filter: ours() }, key);
    expect(first.json).toEqual({ dryRun: false, matched: 0, items: [], next: null });
    await ended(1);
    expect((await rerun({ filter: ours({ state: 'canceled' }) }, key)).json.items).toHaveLength(1);
  });

  it('S4-110 with a key makes nothing twice: the same request names what it made', async () => {
    await ended(4);
    const [key, json] = [newId(), { filter: ours({ state: 'canceled' }), limit: 3 }];
    const first = await rerun(json, key);
    expect(first.json.items).toHaveLength(3);
    expect(first.json.next).not.toBeNull();
    expect(first.headers['idempotency-replayed']).toBeUndefined();
    await cancel({ filter: ours() });
    const again = await rerun(json, key);
    expect([again.status, again.json]).toEqual([200, first.json]);
    expect(again.headers['idempotency-replayed']).toBe('true');
    expect(again.headers['audit-receipt']).toBe(first.headers['audit-receipt']);
    expect(await countRuns()).toBe(7);
    expect((await rerun({ ...json, limit: 2 }, key)).json.code).toBe('idempotency_key_reused');
    expect((await rerun(json, 'st:1')).json.code).toBe('idempotency_key_invalid');
  });

  it('F093 20 at once with one key make one set', async () => {
    await ended(5);
    const [key, json] = [newId(), { filter: ours({ state: 'canceled' }) }];
    const answers = await Promise.all(Array.from({ length: 20 }, () => rerun(json, key, { overTheWire: true })));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(answers.map((answer) => JSON.stringify(answer.json))).size).toBe(1);
    expect(answers.filter(({ headers }) => headers['idempotency-replayed'] === undefined)).toHaveLength(1);
    expect(await countRuns()).toBe(10);
  });

  it('whose runs were removed is 410, and makes none', async () => {
    await ended(2);
    const [key, json] = [newId(), { filter: ours({ state: 'canceled' }) }];
    await rerun(json, key);
    const session = await surface.session();
    await session.query('update idempotency_keys set run_ids = array[$2::uuid] where key = $1', [key, newId()]);
    const answer = await rerun(json, key);
    expect([answer.status, answer.json.code]).toEqual([410, 'run_removed']);
    expect(await countRuns()).toBe(4);
  });

  it('S4-112 without a key each request makes new runs', async () => {
    await ended(1);
    const filter = ours({ state: 'canceled' });
    const [one, other] = [await rerun({ filter }), await rerun({ filter })];
    expect(one.json.items[0].id).not.toBe(other.json.items[0].id);
  });
});
