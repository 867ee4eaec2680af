/** What can't be recorded isn't done: 503, nothing changed, and the same request is taken once entries can be written. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { installationChain } from '../../src/audit/audit.sql.js';
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
    expect(reads).toBeGreaterThan(5);
    expect(await everything()).toEqual(before);
    await unlock();
    for (const { call, send } of prepared) expect((await send()).status, call.what).toBe(call.status);
  });
});
