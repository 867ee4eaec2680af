/** How long ended runs are kept, as callers ask and say it; a run that was removed, as callers meet it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../src/kernel/ids.js';
import { openSurface, type Request, type Surface } from '../send.js';

let surface: Surface;
/** An organization of its own: others that share the server keep their runs. */
let token: string;
beforeAll(async () => {
  surface = await openSurface();
});
beforeAll(async () => {
  ({ token } = await surface.stranger());
});
afterAll(() => surface.close());

const send = (request: Partial<Request>) => surface.send({ path: '/v1/retention', token, ...request });
const put = (retention: unknown, headers: Record<string, string> = {}) =>
  send({ method: 'PUT', json: { retention }, headers });

describe('S1-26 how long ended runs are kept', () => {
  it('is what the installation says until the organization says something, and again when it takes that back', async () => {
    const before = await send({});
    expect(before).toMatchObject({ status: 200, json: { isDefault: true, etag: '"default"' } });
    const said = await put('14d');
    expect(said).toMatchObject({ status: 200, json: { retention: '14d', isDefault: false } });
    expect((await send({})).json).toEqual(said.json);
    expect(said.headers.etag).toBe(said.json.etag);
    const back = await put(null);
    expect(back.json).toEqual(before.json);
  });

  it('is of each organization alone', async () => {
    await put('7d');
    const other = await surface.stranger();
    expect((await send({ token: other.token })).json).toMatchObject({ isDefault: true });
    expect((await send({})).json).toMatchObject({ retention: '7d', isDefault: false });
  });

  it.each([
    ['1 day', '1d'],
    ['24 hours', '24h'],
    ['365 days', '365d'],
  ])('may be %s', async (_, retention) => {
    expect((await put(retention)).status).toBe(200);
  });

  it.each([
    '0',
    '0d',
    '366d',
    '23h',
    '86399999ms',
    '8761h',
    '30',
    'd',
    '',
    '-1d',
    '1.5d',
    ' 1d',
    '1D',
    '1d\u0000',
    '٣d',
    '999999999999d',
    30,
    0,
    366,
    86_400_000,
    true,
    [],
    ['30d'],
    {},
    undefined,
  ])('is never %j', async (retention) => {
    await put('9d');
    const { status, json } = await put(retention);
    expect({ status, code: json.code, at: json.errors?.[0]?.pointer }).toEqual({
      status: 422,
      code: 'invalid_input',
      at: '/retention',
    });
    expect((await send({})).json).toMatchObject({ retention: '9d' });
  });

  it('is changed only while it is as it was seen, where that is asked for', async () => {
    const { etag } = (await put('20d')).json;
    expect((await put('21d', { 'if-match': etag })).status).toBe(200);
    const late = await put('22d', { 'if-match': etag });
    expect(late).toMatchObject({ status: 412, json: { code: 'precondition_failed' } });
    expect(late.json.detail).toContain('21d');
    expect((await send({})).json).toMatchObject({ retention: '21d' });
  });

  it('is recorded with who said it, once', async () => {
    await put('33d');
    const first = await put('34d');
    const again = await put('34d');
    expect(again.headers['audit-receipt']).toBe(first.headers['audit-receipt']);
    const { items } = (await send({ path: '/v1/audit?action=retention.changed&limit=2' })).json;
    expect(items.map(({ payload }: { payload: object }) => payload)).toMatchObject([
      { action: 'retention.changed', retention: '34d' },
      { action: 'retention.changed', retention: '33d' },
    ]);
  });

  it('ends as one of them said when many say something at once', async () => {
    const said = Array.from({ length: 12 }, (_, i) => `${40 + i}d`);
    const answers = await Promise.all(said.map((retention) => put(retention)));
    expect(answers.map(({ status }) => status)).toEqual(said.map(() => 200));
    const { retention } = (await send({})).json;
    const { items } = (await send({ path: '/v1/audit?action=retention.changed&limit=1' })).json;
    expect(items[0].payload.retention).toBe(retention);
  });
});

describe('a run that was removed', () => {
  /** As a removal leaves it: the record is gone, and the entries and the key are there. */
  async function removed(json: object, headers: Record<string, string> = {}): Promise<string> {
    const made = await send({ method: 'POST', path: '/v1/runs', json, headers });
    const { id } = made.json;
    await send({ method: 'POST', path: `/v1/runs/${id}/cancel` });
    const session = await surface.session();
    const { rows } = await session.query(
      `select run_id from audit_entries where claim like '%"object":"' || $1 || '"%' limit 1`,
      [id],
    );
    for (const table of ['ended_runs', 'run_events']) {
      await session.query(`delete from ${table} where run_id = $1`, [rows[0].run_id]);
    }
    await session.query('delete from runs where id = $1', [rows[0].run_id]);
    await session.end();
    return id;
  }

  it('is unknown to every route that names a run', async () => {
    const id = await removed({ kind: 'noop', queue: surface.queue });
    for (const path of ['', '/events', '/output', '/stream', '/why']) {
      expect((await send({ path: `/v1/runs/${id}${path}` })).status, path).toBe(404);
    }
    for (const path of ['/cancel', '/rerun']) {
      expect((await send({ method: 'POST', path: `/v1/runs/${id}${path}` })).status, path).toBe(404);
    }
  });

  it('S1-25 its entries are there to be read and bundled', async () => {
    const id = await removed({ kind: 'noop', queue: surface.queue });
    const { items } = (await send({ path: `/v1/audit?object=${id}` })).json;
    expect(items.map(({ action }: { action: string }) => action)).toEqual(['run.ended', 'run.submitted']);
  });

  it('its key answers 410 and makes nothing', async () => {
    const headers = { 'idempotency-key': newId() };
    const json = { kind: 'noop', queue: surface.queue };
    await removed(json, headers);
    const again = await send({ method: 'POST', path: '/v1/runs', json, headers });
    expect(again).toMatchObject({ status: 410, json: { code: 'run_removed' } });
  });

  it('its id makes no other run', async () => {
    const id = newId();
    const json = { kind: 'noop', queue: surface.queue, id };
    await removed(json);
    const again = await send({ method: 'POST', path: '/v1/runs', json });
    expect(again).toMatchObject({ status: 410, json: { code: 'run_removed' } });
    const { json: batch } = await send({
      method: 'POST',
      path: '/v1/runs/batch',
      json: { runs: [json, { kind: 'noop', queue: surface.queue }] },
    });
    expect(batch.items.map(({ status }: { status: number }) => status)).toEqual([410, 201]);
  });
});
