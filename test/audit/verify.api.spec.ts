import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { AuditService } from '../../src/audit/audit.service.js';
import { type LocalSurface, openLocalSurface } from '../send.js';

let surface: LocalSurface;
beforeAll(async () => {
  surface = await openLocalSurface();
});
afterAll(() => surface.close());

const submitAs = (token: string) =>
  surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue: surface.queue }, token });
const submit = () => submitAs(surface.token);

it('the chain of the caller’s organization verifies up to its head, which the newest receipt names', async () => {
  const receipt = (await submit()).headers['audit-receipt'];
  const { json } = await surface.send({ path: '/v1/audit/verify' });
  expect(json).toEqual({
    ok: true,
    chain: expect.stringMatching(/^org_/),
    entries: json.head.seq,
    head: { seq: expect.any(Number), link: expect.stringMatching(/^[0-9a-f]{64}$/) },
    anchors: 0,
    tookMs: expect.any(Number),
  });
  expect(`${json.chain}:${json.head.seq}:${json.head.link}`).toBe(receipt);
});

it('each organization sees its own chain', async () => {
  const { token } = await surface.stranger();
  const [ours, theirs] = await Promise.all([
    surface.send({ path: '/v1/audit/verify' }),
    surface.send({ path: '/v1/audit/verify', token }),
  ]);
  expect(theirs.json.chain).not.toBe(ours.json.chain);
  expect(theirs.json).toMatchObject({ ok: true, entries: 0 });
});

it('of a window only its entries are counted, and what is no window is refused', async () => {
  const stranger = await surface.stranger();
  for (let n = 0; n < 3; n += 1) await submitAs(stranger.token);
  const ask = (query: string) => surface.send({ path: `/v1/audit/verify?${query}`, token: stranger.token });
  expect((await ask('from=2&to=3')).json).toMatchObject({ ok: true, entries: 2, head: { seq: 3 } });
  expect((await ask('to=99')).json).toMatchObject({ ok: true, entries: 3 });
  for (const query of [
    'from=0',
    'from=-1',
    'from=x',
    'to=1.5',
    'from=3&to=2',
    'from=4',
    'from=1&from=2',
    'chain=',
    'seq=1',
  ]) {
    const { status, json } = await ask(query);
    expect([status, json.code], query).toEqual([422, 'invalid_input']);
  }
});

it('the installation’s chain is verified for its admins alone', async () => {
  const { json } = await surface.send({ path: '/v1/audit/verify?chain=installation' });
  expect(json).toMatchObject({ ok: true, chain: expect.stringMatching(/^ins_/) });
  const { token } = await surface.stranger();
  const refused = await surface.send({ path: '/v1/audit/verify?chain=installation', token });
  expect([refused.status, refused.json.code]).toEqual([403, 'forbidden']);
  expect((await surface.send({ path: '/v1/audit/verify?chain=org_x' })).status).toBe(422);
});

describe('asked for events', () => {
  const headers = { accept: 'text/event-stream' };
  const eventsIn = (text: string) =>
    text
      .split('\n\n')
      .filter((block) => block.startsWith('event:'))
      .map((block) => {
        const [name = '', data = ''] = block.split('\n');
        return [name.slice(7), JSON.parse(data.slice(6))] as const;
      });

  it('the answer tells of its progress, and last its result', async () => {
    const { token } = await surface.stranger();
    for (let n = 0; n < 2; n += 1) await submitAs(token);
    const answer = await surface.send({ path: '/v1/audit/verify', headers, token, overTheWire: true });
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({ 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    const plain = await surface.send({ path: '/v1/audit/verify', token });
    expect(eventsIn(answer.text)).toEqual([
      ['progress', { verified: 2, of: 2 }],
      ['result', { ...plain.json, tookMs: expect.any(Number) }],
    ]);
  });

  it('what is wrong before it begins is a problem like any other', async () => {
    const { token } = await surface.stranger();
    const refused = await surface.send({ path: '/v1/audit/verify?from=7', headers, token, overTheWire: true });
    expect([refused.status, refused.json.code]).toEqual([422, 'invalid_input']);
    const path = '/v1/audit/verify?chain=installation';
    expect((await surface.send({ path, headers, token, overTheWire: true })).status).toBe(403);
  });

  it('what goes wrong afterwards breaks it off without a result', async () => {
    const { token } = await surface.stranger();
    await submitAs(token);
    const verify = vi.spyOn(surface.app.get(AuditService), 'verify');
    verify.mockImplementationOnce(async (_chain, _range, asking) => {
      asking?.onProgress?.({ verified: 1, of: 2 });
      throw new Error('the database went away');
    });
    const broken = surface.send({ path: '/v1/audit/verify', headers, token, overTheWire: true });
    await expect(broken).rejects.toThrow(/aborted|hang up/);
  });

  it('whoever goes away ends the recomputation that nobody else waits for', async () => {
    const base = await surface.base();
    const { token } = await surface.stranger();
    const verify = vi.spyOn(surface.app.get(AuditService), 'verify');
    const aborted = new Promise<void>((resolve) => {
      verify.mockImplementationOnce(async (_chain, _range, asking) => {
        asking?.onProgress?.({ verified: 1, of: 2 });
        await new Promise<void>((end) => asking?.signal?.addEventListener('abort', () => end()));
        resolve();
        throw new Error('nobody waits');
      });
    });
    const leaving = new AbortController();
    const answer = await fetch(`${base}/v1/audit/verify`, {
      headers: { ...headers, authorization: `Bearer ${token}` },
      signal: leaving.signal,
    });
    expect(answer.status).toBe(200);
    leaving.abort();
    await aborted;
  });
});

it('a broken chain is an answer, not an error: 200 that says where, and appending goes on', async () => {
  await submit();
  const { head } = (await surface.send({ path: '/v1/audit/verify' })).json;
  await submit();
  const session = await surface.session();
  await session.query('alter table audit_entries disable trigger all');
  const { rowCount } = await session.query(
    `update audit_entries set claim = replace(claim, 'run.submitted', 'run.submittee')
     where seq = $1 and chain_id like 'org_%' and claim like '%run.submitted%'`,
    [head.seq],
  );
  expect(rowCount).toBe(1);
  const answer = await surface.send({ path: '/v1/audit/verify' });
  expect(answer.status).toBe(200);
  expect(answer.json).toMatchObject({ ok: false, brokenAt: head.seq, check: 'link', entries: head.seq - 1 });
  expect((await submit()).status).toBe(201);
});
