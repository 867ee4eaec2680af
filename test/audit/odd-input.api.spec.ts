/** What callers may well say, and the trail must take. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { newId } from '../../src/kernel/ids.js';
import { openLocalSurface, type Surface } from '../send.js';

let surface: Surface;
beforeAll(async () => {
  surface = await openLocalSurface();
});
afterAll(() => surface.close());

it('a queue that is called what a run is can be paused, and the chain still verifies', async () => {
  const run = await surface.send({ method: 'POST', path: '/v1/runs', json: { kind: 'noop', queue: surface.queue } });
  for (const name of [`run_${newId().replaceAll('-', '')}`, 'run_', run.json.id]) {
    const json = { paused: true, reason: 'for the record' };
    const { status, text } = await surface.send({ method: 'PUT', path: `/v1/queues/${name}`, json });
    expect(status, text).toBe(200);
    const found = await surface.send({ path: `/v1/audit?chain=installation&object=${name}` });
    expect(found.json.items).toMatchObject([{ action: 'queue.paused', object: name, run: null }]);
  }
  const verification = await surface.send({ path: '/v1/audit/verify?chain=installation' });
  expect(verification.json).toMatchObject({ ok: true });
});

it('the last instant that can be written bounds entries and bundles like any other', async () => {
  const last = '9999-12-31T23:59:59.999Z';
  const after = await surface.send({ path: `/v1/audit?chain=installation&after=${last}` });
  expect(after.status, after.text).toBe(200);
  expect(after.json.items).toEqual([]);
  const before = await surface.send({ path: `/v1/audit?chain=installation&before=${last}` });
  expect(before.json.items.length).toBeGreaterThan(0);
  // Without a signing key nothing is exported, but the range is understood before that is said or after it.
  const bundle = await surface.send({ path: `/v1/audit/bundle?to=${last}` });
  expect([200, 503], bundle.text).toContain(bundle.status);
});
