import { it } from 'vitest';
import { openLocalSurface } from '../send.js';
import { submitIfNew } from '../../src/runs/submit.sql.js';
import { encodeId, newId } from '../../src/kernel/ids.js';
it('t', async () => {
  const s = await openLocalSurface();
  const c = await s.session();
  const chain = encodeId('org', s.organizationId);
  for (const n of [1, 50, 100, 200, 200]) {
    let t = performance.now();
    await c.query(`select count(*) from audit_append(array_fill($1::text, array[$2::int]), array_fill('{"action":"x","a":"b"}'::jsonb, array[$2::int]), array_fill(null::uuid, array[$2::int]))`, [chain, n]);
    console.log('audit_append', n, (performance.now() - t).toFixed(1));
  }
  for (const n of [1, 10, 50, 100, 200, 200]) {
    const runs = Array.from({ length: n }, () => { const id = newId(); return { id, organizationId: s.organizationId, chain, object: encodeId('run', id), kind: 'noop' as const, name: null, queue: 'default', priority: 0, labels: {}, spec: {}, specDigest: 'x', timeoutMs: null, notBefore: null, origin: 'api' as const, principal: { type: 'token' as const, id: 'x', name: 'x' }, rerunOf: null, traceparent: null, key: null, requestDigest: 'd' }; });
    const t = performance.now();
    await submitIfNew(s.pool, runs);
    console.log('submit', n, (performance.now() - t).toFixed(1));
  }
  await s.close();
}, 120000);
