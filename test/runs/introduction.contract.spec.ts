/** What a process says of itself at its registration, for who looks after all of them. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { encodeId, newId } from '../../src/kernel/ids.js';
import type { Introduction } from '../../src/runs/worker.js';
import { registerIfNew } from '../../src/runs/worker.sql.js';
import { Ground } from './ground.fixture.js';

let ground: Ground;
beforeAll(async () => {
  ground = await Ground.open(1);
});
afterAll(() => ground.close());

async function said(introduction: Introduction | null): Promise<{ signs: string | null; ahead: number | null }> {
  const id = newId();
  const life = { id, name: 'one', kind: 'replica' as const, slots: 1, queues: ['default'], version: '1' };
  const entry = { chain: ground.installation, object: encodeId('wrk', id) };
  await registerIfNew(ground.pool, life, 30_000, entry, null, introduction);
  const { rows } = await ground.sql.query('select signs, clock_ahead_ms::integer as ahead from workers where id = $1', [
    id,
  ]);
  return rows[0];
}

it('is kept with its life: the key it signs with, and how far its clock is ahead', async () => {
  const late = await said({ signs: 'sha256:key', wallMs: Date.now() - 3_600_000 });
  expect(late.signs).toBe('sha256:key');
  expect(Math.abs((late.ahead ?? 0) + 3_600_000)).toBeLessThan(10_000);
  expect((await said({ signs: null, wallMs: Date.now() })).signs).toBeNull();
  expect(await said(null)).toEqual({ signs: null, ahead: null });
});
