import { afterAll, beforeAll, expect, it } from 'vitest';
import { decodeId, encodeId, newId } from '../../src/kernel/ids.js';
import type { RequestCaller } from '../../src/platform/http/caller.js';
import { RunsService } from '../../src/runs/runs.service.js';
import { type LocalSurface, openLocalSurface } from '../send.js';

let surface: LocalSurface;
beforeAll(async () => {
  surface = await openLocalSurface();
});
afterAll(() => surface.close());

function callerOf(organizationId: string): RequestCaller {
  const principal = { type: 'token' as const, id: encodeId('tok', newId()), name: 'test' };
  return { organizationId, chain: encodeId('org', organizationId), principal, isInstallationAdmin: true };
}

it.each(['before', 'after'])(
  'a cancel by a stranger in the same flush, %s the owner’s, neither takes its place nor learns anything',
  async (when) => {
    const service = surface.app.get(RunsService);
    const [owner, stranger] = [callerOf(surface.organizationId), callerOf((await surface.stranger()).organizationId)];
    const json = { kind: 'noop', queue: surface.queue };
    const answer = await surface.send({ method: 'POST', path: '/v1/runs', json });
    const runId = decodeId('run', answer.json.id) ?? '';
    // While this one is on its way the others gather for the next flush.
    const ahead = service.cancel(owner, newId()).catch(() => undefined);
    const callers = when === 'before' ? [stranger, owner] : [owner, stranger];
    const answers = callers.map((caller) => service.cancel(caller, runId));
    const [own, foreign] = await Promise.allSettled(when === 'before' ? [...answers].reverse() : answers);
    await ahead;
    expect(own).toMatchObject({ status: 'fulfilled', value: { run: { state: 'canceled' } } });
    expect(foreign).toMatchObject({ status: 'rejected', reason: { code: 'not_found' } });
  },
);
