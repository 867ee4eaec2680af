/** Who was refused stands in the chain of the organization whose token it was, bounded, and never in the answer's way. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { RefusalsService } from '../../src/access/refusals.service.js';
import { installationChain } from '../../src/audit/audit.sql.js';
import { encodeId, newId } from '../../src/kernel/ids.js';
import type { RequestCaller } from '../../src/platform/http/caller.js';
import type { Timing } from '../../src/platform/time.js';
import { type LocalSurface, openLocalSurface } from '../send.js';
import { until } from '../server.js';

let surface: LocalSurface;
beforeAll(async () => {
  surface = await openLocalSurface();
});
afterAll(() => surface.close());

interface Entry {
  readonly chain: string;
  readonly payload: Record<string, unknown>;
}

async function query<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
  const session = await surface.session();
  const { rows } = await session.query(text, values);
  await session.end();
  return rows as Row[];
}

/** All refusals in any chain, oldest first within a chain. */
const refusals = () =>
  query<Entry>(
    `select chain_id as chain, claim::jsonb -> 'payload' as payload from audit_entries
     where action = 'access.refused' order by chain_id, seq`,
  );
const refusalsIn = async (chain: string) => (await refusals()).filter((entry) => entry.chain === chain);

/** The first `count` refusals of a chain, once they are there. */
async function refusalsOnceThere(chain: string, count: number): Promise<Record<string, unknown>[]> {
  const entries = await until(`${count} refusals are recorded`, async () => {
    const found = await refusalsIn(chain);
    return found.length >= count ? found : undefined;
  });
  return entries.map(({ payload }) => payload);
}

async function makeStranger(how: 'acting' | 'revoked') {
  const { token, organizationId } = await surface.stranger();
  const [row] = await query<{ id: string }>(
    `update tokens set revoked_at = case when $2 then now() end where hash = sha256($1::bytea) returning id`,
    [Buffer.from(token), how === 'revoked'],
  );
  return { token, chain: encodeId('org', organizationId), principal: encodeId('tok', row?.id ?? '') };
}

const drain = (token: string) => surface.send({ method: 'POST', path: `/v1/workers/${newId()}/drain`, token });

describe('a refused attempt', () => {
  it('F139 with a revoked token is recorded: whose it was and which route, and nothing that the request bore', async () => {
    const { token, chain, principal } = await makeStranger('revoked');
    const secret = randomUUID();
    const answer = await surface.send({
      path: `/v1/runs/${secret}?q=${secret}`,
      token,
      headers: { 'x-request-id': secret, 'user-agent': secret },
    });
    expect(answer.status).toBe(401);
    expect(await refusalsOnceThere(chain, 1)).toEqual([
      {
        action: 'access.refused',
        object: principal,
        principal,
        principalName: 'stranger',
        code: 'unauthorized',
        method: 'GET',
        route: '/v1/runs/{id}',
        suppressed: 0,
      },
    ]);
    const dump = JSON.stringify(await query('select * from audit_entries'));
    expect(dump).not.toContain(secret);
    expect(dump).not.toContain(token);
  });

  it.each([
    ['a whole route', 'POST', '/v1/workers/{id}/drain', ''],
    ['what a parameter asks for', 'GET', '/v1/audit', '?chain=installation'],
  ])(
    'F139 of who may not do this (%s) is recorded in its own chain, and in no other',
    async (_, method, route, search) => {
      const { token, chain, principal } = await makeStranger('acting');
      const answer = await surface.send({ method, path: route.replace('{id}', newId()) + search, token });
      expect(answer.status).toBe(403);
      expect(answer.headers['audit-receipt'], 'it changed nothing').toBeUndefined();
      expect(await refusalsOnceThere(chain, 1)).toEqual([
        expect.objectContaining({ principal, code: 'forbidden', method, route, suppressed: 0 }),
      ]);
      const others = [await installationChain(surface.pool), encodeId('org', surface.organizationId)];
      expect((await refusals()).filter((entry) => others.includes(entry.chain))).toEqual([]);
    },
  );

  it('with a token that nobody here knows, or without one, leaves nothing: strangers can not fill a chain', async () => {
    const before = await query('select chain_id, seq from audit_heads order by lock_key');
    for (const token of [null, `cap_${newId()}`, 'x', '']) {
      expect((await surface.send({ path: '/v1/runs', token })).status).toBe(401);
    }
    // What was noted before this is written before it.
    const { token, chain } = await makeStranger('revoked');
    await surface.send({ path: '/v1/runs', token });
    await refusalsOnceThere(chain, 1);
    const after = await query<{ chain_id: string }>('select chain_id, seq from audit_heads order by lock_key');
    expect(after.filter((head) => head.chain_id !== chain)).toEqual(before);
  });

  it('is no refusal when what was asked for is not there, is wrong, or clashes', async () => {
    const { token, chain } = await makeStranger('acting');
    const statuses = await Promise.all([
      surface.send({ path: `/v1/runs/${newId()}`, token }),
      surface.send({ path: '/v1/runs?nonsense=1', token }),
      surface.send({ method: 'POST', path: '/v1/runs', token, json: {} }),
    ]);
    expect(statuses.map(({ status }) => status)).toEqual([404, 422, 422]);
    await drain(token);
    const route = '/v1/workers/{id}/drain';
    expect(await refusalsOnceThere(chain, 1)).toEqual([
      expect.objectContaining({ code: 'forbidden', route, suppressed: 0 }),
    ]);
  });
});

describe('a flood of refused attempts', () => {
  it('makes one entry, and costs no statement each', async () => {
    const { token, chain } = await makeStranger('revoked');
    const statements = vi.spyOn(surface.platform.pools.access, 'run');
    for (let i = 0; i < 50; i += 1) expect((await surface.send({ path: '/v1/runs', token })).status).toBe(401);
    expect(statements).toHaveBeenCalledOnce();
    vi.restoreAllMocks();
    const { token: last, chain: lastChain } = await makeStranger('revoked');
    await surface.send({ path: '/v1/runs', token: last });
    await refusalsOnceThere(lastChain, 1);
    expect(await refusalsIn(chain)).toHaveLength(1);
  });

  it('is answered at once while the chain can not be written, and told about in one line', async () => {
    const strangers = await Promise.all(Array.from({ length: 3 }, () => makeStranger('revoked')));
    const holder = await surface.session();
    const chains = strangers.map(({ chain }) => chain);
    await holder.query(
      `select pg_advisory_lock(1129337940, lock_key) from audit_heads where chain_id = any ($1::text[])`,
      [chains],
    );
    const warn = vi.spyOn(surface.platform.log, 'warn');
    const notRecorded = () =>
      warn.mock.calls.filter(([fields]) => (fields as { code?: string }).code === 'refusals_not_recorded');
    for (const { token } of strangers) {
      expect((await surface.send({ path: '/v1/runs', token })).status).toBe(401);
    }
    expect(notRecorded(), 'none waited for the lock').toEqual([]);
    await until('the fault is logged', () => notRecorded().length > 0);
    // The first went out alone, the two others behind it, together: they have failed too when what follows is written.
    const later = await makeStranger('revoked');
    await surface.send({ path: '/v1/runs', token: later.token });
    await refusalsOnceThere(later.chain, 1);
    await holder.query('select pg_advisory_unlock_all()');
    expect(notRecorded()).toHaveLength(1);
    vi.restoreAllMocks();
    for (const chain of chains) expect(await refusalsIn(chain)).toEqual([]);
  });
});

describe('the bound', () => {
  class SteppedTiming implements Timing {
    nowMs = 1_000;
    monotonicMs = () => this.nowMs;
    delay = () => Promise.resolve(undefined);
    random = () => 0.5;
  }
  const attempt = { code: 'forbidden', method: 'POST', route: '/v1/x' } as const;

  async function callerWithChain(): Promise<RequestCaller> {
    const { chain, principal } = await makeStranger('acting');
    const id = { type: 'token', id: principal, name: 'stranger' } as const;
    return { organizationId: newId(), chain, principal: id, isInstallationAdmin: false };
  }

  it('is an entry a minute for each principal; the next one counts those before it', async () => {
    const timing = new SteppedTiming();
    const service = new RefusalsService(surface.pool, timing, surface.platform.log);
    const [flooding, calm] = [await callerWithChain(), await callerWithChain()];
    const counted = (chain: string, count: number) =>
      refusalsOnceThere(chain, count).then((all) => all.map(({ suppressed }) => suppressed));
    for (let i = 0; i < 100; i += 1) service.note(flooding, attempt);
    service.note(calm, attempt);
    expect(await counted(calm.chain, 1)).toEqual([0]);
    timing.nowMs += 59_999;
    service.note(flooding, attempt);
    timing.nowMs += 1;
    service.note(flooding, attempt);
    expect(await counted(flooding.chain, 2)).toEqual([0, 100]);
    timing.nowMs += 3_600_000;
    service.note(flooding, attempt);
    service.note(calm, attempt);
    expect(await counted(flooding.chain, 3)).toEqual([0, 100, 0]);
    expect(await counted(calm.chain, 2)).toEqual([0, 0]);
  });

  it('loses no count when an entry could not be written', async () => {
    const timing = new SteppedTiming();
    const caller = await callerWithChain();
    const broken = { ...caller, chain: 'org_of_nobody' };
    const log = { warn: vi.fn() };
    const service = new RefusalsService(surface.pool, timing, log as never);
    service.note(broken, attempt);
    service.note(broken, attempt);
    await until('the fault is logged', () => log.warn.mock.calls.length === 1);
    timing.nowMs += 60_000;
    service.note(caller, attempt);
    const [entry] = await refusalsOnceThere(caller.chain, 1);
    expect(entry).toMatchObject({ suppressed: 2 });
  });
});
