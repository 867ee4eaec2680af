import { afterAll, beforeAll, expect, it } from 'vitest';
import { type LocalSurface, openLocalSurface } from '../send.js';

let surface: LocalSurface;
beforeAll(async () => {
  surface = await openLocalSurface();
});
afterAll(() => surface.close());

const submit = () => surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue: surface.queue } });

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
