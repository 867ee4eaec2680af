import { afterAll, beforeAll, expect, it } from 'vitest';
import { type LocalSurface, openLocalSurface } from '../send.js';

let surface: LocalSurface;
beforeAll(async () => {
  surface = await openLocalSurface();
});
afterAll(() => surface.close());

it('a submit gets through, its caller unknown so far, while every connection for reads is taken', async () => {
  const { read } = surface.platform.pools;
  const { token } = await surface.stranger();
  const holder = await surface.session();
  await holder.query('select pg_advisory_lock(7)');
  const slow = Array.from({ length: read.size + 5 }, () =>
    read.run((sql) => sql`select pg_advisory_xact_lock_shared(7)`),
  );
  const json = { kind: 'noop', queue: surface.queue };
  const submit = surface.send({ method: 'POST', path: '/v1/runs', token, json });
  const late = new Promise<undefined>((resolve) => setTimeout(resolve, 5_000, undefined));
  const answer = await Promise.race([submit, late]);
  await holder.query('select pg_advisory_unlock(7)');
  await Promise.all(slow);
  expect(answer?.status, 'it waits behind reads').toBe(201);
});
