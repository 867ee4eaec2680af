import { afterAll, beforeAll, expect, it } from 'vitest';
import { AccessService } from '../../src/access/access.service.js';
import { findOrganization } from '../../src/access/access.sql.js';
import { AuditService } from '../../src/audit/audit.service.js';
import { installationChain } from '../../src/audit/audit.sql.js';
import { encodeId, newId } from '../../src/kernel/ids.js';
import { digestOf } from '../../src/kernel/json.js';
import { systemTiming } from '../../src/platform/time.js';
import { cancelIfLive } from '../../src/runs/cancel.sql.js';
import { claimIfLive, promoteDue, pulse, releaseIfHeld, startIfHeld } from '../../src/runs/claim.sql.js';
import { findOwnEnds, finishIfHeld } from '../../src/runs/finish.sql.js';
import { appendOutputIfHeld, readOutput } from '../../src/runs/output.sql.js';
import { findRun, listRuns } from '../../src/runs/read.sql.js';
import { findOrphans, settleIfOrphaned } from '../../src/runs/settle.sql.js';
import { findKeys, findRuns, submitIfNew } from '../../src/runs/submit.sql.js';
import { findExpired, leaveIfAlive, listWorkers, reapIfExpired, registerIfNew } from '../../src/runs/worker.sql.js';
import { createDatabase, type TestDatabase } from '../database.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await createDatabase();
});
afterAll(async () => db.drop());

it('goes through', async () => {
  const pool = db.pool();
  const access = new AccessService(pool, systemTiming);
  await access.prepare();
  await access.prepare();
  expect(await access.bootstrap('x'.repeat(30))).toBe(true);
  expect(await access.bootstrap('y'.repeat(30))).toBe(false);
  const caller = await access.authenticate('x'.repeat(30));
  expect(caller).toBeDefined();
  const org = (await findOrganization(pool, 'default'))!;
  const ins = (await installationChain(pool))!;
  const mk = (over: object = {}) => {
    const id = newId();
    return {
      id,
      organizationId: org.id,
      chain: encodeId('org', org.id),
      object: encodeId('run', id),
      kind: 'noop' as const,
      name: null,
      queue: 'default',
      priority: 0,
      labels: { a: 'b' },
      spec: { x: 1 },
      specDigest: digestOf({}),
      timeoutMs: null,
      notBefore: null,
      origin: 'api' as const,
      principal: caller!.principal,
      rerunOf: null,
      traceparent: null,
      key: null,
      requestDigest: 'd',
      ...over,
    };
  };
  const a = mk(),
    b = mk({ key: 'k1' }),
    c = mk({ key: 'k1' }),
    d = mk({ priority: 5, queue: 'gpu' }),
    e = mk({ notBefore: new Date(Date.now() + 500).toISOString() });
  const done = await submitIfNew(pool, [a, b, d, e]);
  console.log(done);
  expect(await submitIfNew(pool, [a, c])).toEqual([]);
  expect(await findKeys(pool, [{ organizationId: org.id, key: 'k1' }])).toHaveLength(1);
  expect(await findRuns(pool, [a.id])).toHaveLength(1);
  const w = { id: newId(), name: 'w1', kind: 'replica' as const, slots: 4, queues: ['default'], version: '0' };
  console.log(await registerIfNew(pool, w, 30000, { chain: ins, object: encodeId('wrk', w.id) }));
  console.log(await pulse(pool, w.id, ['*'], 1e9), await pulse(pool, w.id, ['default'], 1e9));
  const claimed = await claimIfLive(pool, w.id, ['*'], 10);
  expect(claimed.map((r) => r.runId)).toEqual([d.id, a.id, b.id]);
  expect(await claimIfLive(pool, w.id, ['default'], 10)).toEqual([]);
  expect(await startIfHeld(pool, w.id, claimed)).toHaveLength(3);
  expect(await startIfHeld(pool, w.id, claimed)).toHaveLength(3);
  expect(
    await appendOutputIfHeld(pool, w.id, claimed[0]!, 1, { stream: 1, at: new Date(), data: Buffer.from([0, 255]) }),
  ).toBe(true);
  expect(
    await appendOutputIfHeld(pool, w.id, claimed[0]!, 1, { stream: 1, at: new Date(), data: Buffer.from([0, 255]) }),
  ).toBe(true);
  const fin = {
    ...claimed[0]!,
    chain: encodeId('org', org.id),
    object: d.object,
    worker: encodeId('wrk', w.id),
    workerName: 'w1',
    outcome: {
      state: 'failed' as const,
      code: 'tool_failed' as const,
      kind: null,
      detail: 'exit code 7',
      exitCode: 7,
      signal: null,
    },
    output: { q: 1 },
    outputDigest: 'sha256:00',
  };
  expect(await finishIfHeld(pool, w.id, [fin])).toEqual([{ runId: d.id }]);
  expect(await finishIfHeld(pool, w.id, [fin])).toEqual([]);
  expect(await findOwnEnds(pool, w.id, [fin])).toEqual([{ runId: d.id }]);
  console.log(
    await cancelIfLive(
      pool,
      [a, e].map((r) => ({
        runId: r.id,
        organizationId: org.id,
        chain: r.chain,
        object: r.object,
        kind: 'requested' as const,
        detail: 'x',
        by: 'tok',
        byName: 'n',
      })),
    ),
  );
  console.log(
    await cancelIfLive(
      pool,
      [a, e].map((r) => ({
        runId: r.id,
        organizationId: org.id,
        chain: r.chain,
        object: r.object,
        kind: 'requested' as const,
        detail: 'x',
        by: 'tok',
        byName: 'n',
      })),
    ),
  );
  const f = mk(),
    g = mk({ notBefore: new Date(Date.now() + 60_000).toISOString() });
  await submitIfNew(pool, [f, g]);
  const [cf] = await claimIfLive(pool, w.id, ['default'], 10);
  expect(await releaseIfHeld(pool, w.id, [{ ...cf!, chain: f.chain, object: f.object, worker: 'wrk' }])).toEqual([
    { runId: f.id, state: 'pending' },
  ]);
  const [cf2] = await claimIfLive(pool, w.id, ['default'], 10);
  expect(cf2!.fence).toBe(2);
  expect(await promoteDue(pool, 10)).toBe(0);
  await (await db.session()).query(`update workers set lease_until = now() - interval '1 s'`);
  const exp = await findExpired(pool, 10);
  expect(
    await reapIfExpired(
      pool,
      ins,
      exp.map((x) => ({ id: x.id, object: encodeId('wrk', x.id), by: 'wrk_x' })),
    ),
  ).toHaveLength(1);
  const orphans = await findOrphans(pool, 10);
  console.log(
    await settleIfOrphaned(
      pool,
      orphans.map((o) => ({
        ...o,
        chain: encodeId('org', o.organizationId),
        object: encodeId('run', o.runId),
        worker: encodeId('wrk', o.holder),
        by: 'wrk_x',
        byName: 'x',
      })),
    ),
  );
  console.log(await listWorkers(pool, 30000));
  const one = (await findRun(pool, org.id, d.id))!;
  console.log(one);
  console.log(
    (
      await listRuns(
        pool,
        org.id,
        { state: ['pending', 'interrupted'], labels: { a: 'b' }, queue: 'default' },
        undefined,
        10,
      )
    ).map((r) => [r.state, r.endCode]),
  );
  console.log(await readOutput(pool, one, { fence: 0, batch: 0 }, undefined, 10));
  const audit = new AuditService(pool);
  expect(await audit.verify(a.chain)).toMatchObject({ ok: true });
  console.log(await audit.verify(a.chain), await audit.verify(ins));
  const s = await db.session();
  console.log((await s.query('select seq, claim from audit_entries order by chain_id, seq')).rows);
  await expect(s.query('delete from audit_entries')).rejects.toThrow();
  expect(await leaveIfAlive(pool, w.id, 'stopped', { chain: ins, object: 'x' })).toBe(false);
});
