/** `GET /v1/audit` and `/v1/audit/receipts/{receipt}`, as callers meet them. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeId, newId } from '../../src/kernel/ids.js';
import { openSurface, type Surface } from '../send.js';

let surface: Surface;
let token: string;
let chain: string;
beforeAll(async () => {
  surface = await openSurface();
  const stranger = await surface.stranger();
  token = stranger.token;
  chain = encodeId('org', stranger.organizationId);
});
afterAll(() => surface.close());

const submit = () =>
  surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue: surface.queue }, token });
const list = (query = '') => surface.send({ path: `/v1/audit${query}`, token });

describe('the list', () => {
  it('shows what was recorded, newest first, each entry with its receipt', async () => {
    const made = await submit();
    const run = made.json.id as string;
    const canceled = await surface.send({ method: 'POST', path: `/v1/runs/${run}/cancel`, token });
    const { status, json } = await list();
    expect(status).toBe(200);
    expect(json.next).toBeNull();
    expect(json.items.map(({ seq, action }: { seq: number; action: string }) => [seq, action])).toEqual([
      [2, 'run.ended'],
      [1, 'run.submitted'],
    ]);
    const [ended, submitted] = json.items;
    expect(submitted).toEqual({
      seq: 1,
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      action: 'run.submitted',
      principal: expect.stringMatching(/^tok_/),
      principalName: 'stranger',
      object: run,
      run,
      payload: expect.objectContaining({ action: 'run.submitted', object: run, kind: 'noop' }),
      receipt: made.headers['audit-receipt'],
    });
    expect(ended.receipt).toBe(canceled.headers['audit-receipt']);
    expect(ended.payload).toMatchObject({ state: 'canceled', specDigest: submitted.payload.specDigest });
  });

  it('each filter leaves what it names, and pages lead on', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) ids.push((await submit()).json.id);
    const run = ids[3] ?? '';
    for (const query of [`?run=${run}`, `?object=${run}`, `?object=${run}&action=run.submitted`]) {
      const { json } = await list(query);
      expect(json.items.map(({ object }: { object: string }) => object)).toEqual([run]);
    }
    const { principal, at } = (await list(`?run=${run}`)).json.items[0];
    expect((await list(`?principal=${principal}&limit=200`)).json.items).toHaveLength(7);
    expect((await list('?principal=nobody')).json).toEqual({ items: [], next: null });
    expect((await list(`?before=${at}&run=${run}`)).json.items, 'excluded').toEqual([]);
    expect((await list(`?after=${at}&run=${run}`)).json.items, 'excluded').toEqual([]);
    const around = [Date.parse(at) - 1, Date.parse(at) + 1].map((ms) => new Date(ms).toISOString());
    expect((await list(`?after=${around[0]}&before=${around[1]}&run=${run}`)).json.items).toHaveLength(1);
    const seen: number[] = [];
    let path: string | undefined = '/v1/audit?action=run.submitted&limit=2';
    while (path !== undefined) {
      const { json, headers } = await surface.send({ path, token });
      seen.push(...json.items.map(({ seq }: { seq: number }) => seq));
      path = /<([^>]+)>; rel="next"/.exec(headers.link ?? '')?.[1];
      expect(path === undefined).toBe(json.next === null);
    }
    expect(seen).toEqual([7, 6, 5, 4, 3, 1]);
  });

  it.each([
    'action=Run',
    'action=run..ended',
    'action=a&action=b',
    'principal=',
    'object=a%22b',
    'object=a%5Cb',
    'object=a%00b',
    `run=${'x'.repeat(26)}`,
    'run=tok_01h455vb4pex5vsknk084sn02q',
    'after=yesterday',
    'before=2030-02-31T00:00:00Z',
    'after=2030-01-02T00:00:00Z&before=2030-01-02T00:00:00Z',
    'limit=0',
    'limit=201',
    'limit=1e1',
    'cursor=',
    'cursor=AAAA',
    `cursor=${Buffer.from('org_other 5').toString('base64url')}`,
    'chain=org_x',
    'actor=x',
  ])('refuses %s, and says which parameter it was', async (query) => {
    const { status, json } = await list(`?${query}`);
    expect([status, json.code]).toEqual([422, 'invalid_input']);
    expect(query).toContain(json.errors[0].pointer.slice(1));
  });

  it('a cursor leads on in its own chain alone', async () => {
    const { next } = (await list('?limit=1')).json;
    expect((await list(`?limit=1&cursor=${next}`)).status).toBe(200);
    const elsewhere = await surface.send({ path: `/v1/audit?cursor=${next}` });
    expect([elsewhere.status, elsewhere.json.errors[0].pointer]).toEqual([422, '?cursor']);
    const damaged = `${next.slice(0, -1)}${next.endsWith('A') ? 'B' : 'A'}`;
    expect((await list(`?cursor=${damaged}`)).status).toBe(422);
  });

  it('the installation’s chain is for its admins alone', async () => {
    const { status, json } = await surface.send({ path: '/v1/audit?chain=installation&action=organization.created' });
    expect(status).toBe(200);
    expect(json.items.at(-1)).toMatchObject({
      principal: 'system',
      run: null,
      receipt: expect.stringMatching(/^ins_/),
    });
    expect((await list('?chain=installation')).status).toBe(403);
  });
});

describe('a receipt', () => {
  const ask = (receipt: string, as = token) =>
    surface.send({ path: `/v1/audit/receipts/${encodeURIComponent(receipt)}`, token: as });

  it('S4x-02 that an answer bore holds, and names its entry', async () => {
    const made = await submit();
    const receipt = made.headers['audit-receipt'] ?? '';
    const { status, json } = await ask(receipt);
    expect(status).toBe(200);
    expect(json).toEqual({ receipt, holds: true, entry: expect.objectContaining({ object: made.json.id, receipt }) });
    // Colons need no escaping in a path.
    expect((await surface.send({ path: `/v1/audit/receipts/${receipt}`, token })).json).toEqual(json);
  });

  it('S4x-02 of an entry that there never was is missing', async () => {
    const receipt = `${chain}:999999:${'a'.repeat(64)}`;
    expect((await ask(receipt)).json).toEqual({ receipt, holds: false, reason: 'missing', entry: null });
  });

  it('of somebody else, and what is none, is not found', async () => {
    const receipt = (await submit()).headers['audit-receipt'] ?? '';
    for (const text of [receipt.slice(0, -1), `${receipt}0`, 'x', newId(), receipt.toUpperCase(), `${receipt}%00`]) {
      expect((await ask(text)).status, text).toBe(404);
    }
    const { token: other } = await surface.stranger();
    expect((await ask(receipt, other)).status).toBe(404);
    expect((await ask(receipt, surface.token)).status).toBe(404);
  });

  it('of the installation holds for everybody, and shows its entry to admins', async () => {
    const { json } = await surface.send({ path: '/v1/audit?chain=installation&limit=1' });
    const [{ receipt }] = json.items;
    expect((await ask(receipt)).json).toEqual({ receipt, holds: true, entry: null });
    expect((await ask(receipt, surface.token)).json).toEqual({ receipt, holds: true, entry: json.items[0] });
  });
});
