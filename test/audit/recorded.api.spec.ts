/** What can't be recorded isn't done: 503, nothing changed, and the same request is taken once entries can be written. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { installationChain } from '../../src/audit/audit.sql.js';
import { LAST_SEQ } from '../../src/audit/chain.js';
import { encodeId } from '../../src/kernel/ids.js';
import { type Answer, type LocalSurface, openLocalSurface } from '../send.js';
import { CALLS, type Call } from './coverage.fixture.js';

let surface: LocalSurface;
beforeAll(async () => {
  surface = await openLocalSurface();
});
afterAll(() => surface.close());

const CHANGED = [
  'runs',
  'live_runs',
  'run_events',
  'idempotency_keys',
  'workers',
  'tokens',
  'audit_heads',
  'audit_entries',
];

/** All that a request could change. */
async function everything(): Promise<Record<string, unknown[]>> {
  const session = await surface.session();
  const tables: Record<string, unknown[]> = {};
  for (const table of CHANGED) {
    tables[table] = (await session.query(`select t::text from ${table} t order by 1`)).rows;
  }
  await session.end();
  return tables;
}

/** Holds the locks of both chains, as somebody who is paused in the middle of his transaction would. */
async function lockChains(): Promise<() => Promise<void>> {
  const chains = [await installationChain(surface.pool), encodeId('org', surface.organizationId)];
  const session = await surface.session();
  await session.query(
    'select pg_advisory_lock(1129337940, lock_key) from audit_heads where chain_id = any ($1::text[])',
    [chains],
  );
  return () => session.end();
}

describe('while no entry can be written', () => {
  const recorded = CALLS.filter(({ entry }) => entry !== null);

  it('S4x-01 every call that must make one is answered 503 and changes nothing; reads go on; later it is taken', {
    timeout: 60_000,
  }, async () => {
    const readable = (
      await surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue: surface.queue } })
    ).json.id;
    const prepared: { call: Call; send: () => Promise<Answer> }[] = [];
    for (const call of recorded) {
      const { request } = await call.prepare(surface);
      prepared.push({ call, send: () => surface.send(request) });
    }
    const before = await everything();
    const unlock = await lockChains();
    let isOver = false;
    const refused = Promise.all(prepared.map(async ({ call, send }) => ({ call, answer: await send() }))).finally(
      () => {
        isOver = true;
      },
    );
    let reads = 0;
    while (!isOver) {
      expect((await surface.send({ path: `/v1/runs/${readable}` })).status).toBe(200);
      reads += 1;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    for (const { call, answer } of await refused) {
      const label = `${call.operationId} of ${call.what}`;
      expect({ status: answer.status, code: answer.json.code }, label).toEqual({ status: 503, code: 'unavailable' });
      expect(Number(answer.headers['retry-after']), label).toBeGreaterThan(0);
      expect(answer.headers['audit-receipt'], label).toBeUndefined();
    }
    expect(reads).toBeGreaterThan(0);
    expect(await everything()).toEqual(before);
    await unlock();
    for (const { call, send } of prepared) expect((await send()).status, call.what).toBe(call.status);
  });
});

it("S4-56 a chain without numbers stops its own organization alone: 503, though others' runs are sent with its", async () => {
  const { token, organizationId } = await surface.stranger();
  const chain = encodeId('org', organizationId);
  const session = await surface.session();
  await session.query(`set session_replication_role = 'replica'`);
  await session.query(`update audit_heads set seq = $2, link = sha256('x') where chain_id = $1`, [chain, LAST_SEQ]);
  const request = { method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue: surface.queue } };
  const all = [...Array(8)].map((_, n) => surface.send(n % 2 ? request : { ...request, token }));
  const answers = await Promise.all(all);
  expect(answers.map(({ status }) => status)).toEqual([503, 201, 503, 201, 503, 201, 503, 201]);
  expect(answers[0]?.json).toMatchObject({
    code: 'unavailable',
    detail: expect.stringContaining('nothing was changed'),
  });
  expect(answers[0]?.headers['retry-after']).toBe('60');
  const { rows } = await session.query('select 1 from runs where organization_id = $1', [organizationId]);
  expect(rows).toEqual([]);
  await session.end();
});
