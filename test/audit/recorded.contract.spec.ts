/** No change without its entry: a statement whose chain can't be appended to changes nothing at all. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AuditService } from '../../src/audit/audit.service.js';
import { encodeId, newId } from '../../src/kernel/ids.js';
import { cancelIfLive } from '../../src/runs/cancel.sql.js';
import { releaseIfHeld } from '../../src/runs/claim.sql.js';
import { finishIfHeld } from '../../src/runs/finish.sql.js';
import { settleIfOrphaned } from '../../src/runs/settle.sql.js';
import { submitIfNew } from '../../src/runs/submit.sql.js';
import { leaveIfAlive, reapIfExpired, registerIfNew } from '../../src/runs/worker.sql.js';
import { Ground } from '../runs/ground.fixture.js';
import { readChain, recompute } from './recompute.fixture.js';

let ground: Ground;
beforeAll(async () => {
  ground = await Ground.open();
});
afterAll(() => ground.close());

const chain = 'in_nowhere';
const entry = { chain, object: 'wrk_x' };

describe('without its chain', () => {
  it('a submit makes no run and keeps no key', async () => {
    const run = ground.newRun({ key: 'no-chain' });
    await expect(submitIfNew(ground.pool, [{ ...run, chain }])).rejects.toThrow('no chain');
    expect((await ground.look(run.id)).standing).toBe('absent');
    expect(await submitIfNew(ground.pool, [run])).toHaveLength(1);
  });

  it('no run ends, is canceled or settled', async () => {
    const [worker, lost] = [await ground.worker(), await ground.worker({ state: 'lost', leaseMs: -1 })];
    const cases = [
      ['running', {}, worker, (id: string) => finishIfHeld(ground.pool, worker, [{ ...ground.finish(id), chain }])],
      ['pending', {}, worker, (id: string) => cancelIfLive(ground.pool, [ground.cancel(id, { chain })])],
      ['running', {}, worker, (id: string) => cancelIfLive(ground.pool, [ground.cancel(id, { chain })])],
      [
        'claimed',
        { flagged: true },
        worker,
        (id: string) => releaseIfHeld(ground.pool, worker, [{ ...ground.release(id, worker), chain }]),
      ],
      ['claimed', {}, lost, (id: string) => settleIfOrphaned(ground.pool, [{ ...ground.settle(id, lost), chain }])],
      ['running', {}, lost, (id: string) => settleIfOrphaned(ground.pool, [{ ...ground.settle(id, lost), chain }])],
    ] as const;
    for (const [standing, setting, holder, act] of cases) {
      const id = await ground.runIn(standing, { holder, ...setting });
      const before = await ground.look(id);
      await expect(act(id)).rejects.toThrow('no chain');
      expect(await ground.look(id)).toEqual(before);
    }
  });

  it('one run of a batch takes the whole batch with it: nothing is written by halves', async () => {
    const worker = await ground.worker();
    const ids = await ground.runsIn(3, 'running', { holder: worker });
    const finishes = ids.map((id, i) => ({ ...ground.finish(id), ...(i === 1 ? { chain } : {}) }));
    await expect(finishIfHeld(ground.pool, worker, finishes)).rejects.toThrow('no chain');
    for (const id of ids) expect((await ground.look(id)).standing).toBe('running');
  });

  it('no life begins, leaves or is reaped', async () => {
    const id = newId();
    const life = { id, name: 'w', kind: 'worker' as const, slots: 1, queues: ['default'], version: '0' };
    await expect(registerIfNew(ground.pool, life, 30_000, entry)).rejects.toThrow('no chain');
    const [leaving, expired] = [await ground.worker(), await ground.worker({ leaseMs: -1_000 })];
    await expect(leaveIfAlive(ground.pool, leaving, 'stopped', entry)).rejects.toThrow('no chain');
    await expect(
      reapIfExpired(ground.pool, chain, [{ id: expired, object: 'wrk_x', by: 'wrk_y', byName: 'y' }]),
    ).rejects.toThrow('no chain');
    const { rows } = await ground.sql.query('select id, state from workers where id = any ($1::uuid[]) order by id', [
      [id, leaving, expired],
    ]);
    expect(rows.map((row) => row.state)).toEqual(['live', 'live']);
  });
});

describe("the installation's chain", () => {
  it('S4-09 has one entry for the beginning, the drain, the stop and the loss of a life each', async () => {
    const life = (id: string) => ({
      id,
      name: 'w',
      kind: 'worker' as const,
      slots: 1,
      queues: ['default'],
      version: '0',
    });
    const [stopping, losing] = [newId(), newId()];
    const at = (id: string) => ({ chain: ground.installation, object: encodeId('wrk', id) });
    for (const id of [stopping, losing]) {
      expect(await registerIfNew(ground.pool, life(id), 30_000, at(id))).toHaveLength(1);
      expect(await registerIfNew(ground.pool, life(id), 30_000, at(id)), 'the same life again').toEqual([]);
    }
    expect(await leaveIfAlive(ground.pool, stopping, 'draining', at(stopping))).toBe(true);
    expect(await leaveIfAlive(ground.pool, stopping, 'draining', at(stopping)), 'an answer was lost').toBe(true);
    expect(await leaveIfAlive(ground.pool, stopping, 'stopped', at(stopping))).toBe(true);
    expect(await leaveIfAlive(ground.pool, stopping, 'stopped', at(stopping)), 'an answer was lost').toBe(true);
    expect(await leaveIfAlive(ground.pool, stopping, 'draining', at(stopping)), 'it is over').toBe(false);
    await ground.sql.query(`update workers set lease_until = now() - interval '1 s' where id = $1`, [losing]);
    const reap = { id: losing, object: encodeId('wrk', losing), by: 'wrk_test', byName: 'test' };
    expect(await reapIfExpired(ground.pool, ground.installation, [reap, { ...reap, id: stopping }])).toEqual([
      { id: losing },
    ]);
    const actions = async (id: string) =>
      (
        await ground.sql.query(`select action from audit_entries where claim like '%' || $1 || '%' order by seq`, [
          encodeId('wrk', id),
        ])
      ).rows.map((row) => row.action);
    expect(await actions(stopping)).toEqual(['worker.joined', 'worker.draining', 'worker.stopped']);
    expect(await actions(losing)).toEqual(['worker.joined', 'worker.lost']);
  });
});

describe('one chain', () => {
  it('F136 that fifty writers write the first entry of at once begins with one of them, and has them all', async () => {
    const [organizationId, chain] = [newId(), `org_first_${newId()}`];
    await ground.sql.query('insert into organizations (id, name) values ($1, $2)', [
      organizationId,
      `o-${organizationId}`,
    ]);
    await ground.sql.query('insert into audit_heads (chain_id, organization_id) values ($1, $2)', [
      chain,
      organizationId,
    ]);
    const pool = ground.db.pool(50);
    const made = await Promise.all(
      Array.from({ length: 50 }, () => submitIfNew(pool, [ground.newRun({ organizationId, chain })])),
    );
    const stored = await readChain(ground.sql, chain);
    expect(recompute(chain, stored)).toBeUndefined();
    expect(stored.head.seq).toBe(50);
    expect(new Set(made.flat().map(({ receipt }) => receipt))).toEqual(
      new Set(stored.entries.map(({ seq, link }) => `${chain}:${seq}:${link}`)),
    );
  });

  it('S4-10 S4-107 that four replicas write to at once, 500 changes each, has no gap, no fork and no lost entry', {
    timeout: 120_000,
  }, async () => {
    const before = await readChain(ground.sql, ground.chain);
    const replicas = Array.from({ length: 4 }, () => ground.db.pool(4));
    const change = async (pool: (typeof replicas)[number], n: number): Promise<string[]> => {
      const run = ground.newRun();
      const receipts = (await submitIfNew(pool, [run])).map(({ receipt }) => receipt);
      // Every other one is canceled too: the writers do different things.
      if (n % 2 === 1) return receipts;
      return [...receipts, ...(await cancelIfLive(pool, [ground.cancel(run.id)])).map(({ receipt }) => receipt ?? '')];
    };
    const receipts = (
      await Promise.all(replicas.flatMap((pool) => Array.from({ length: 334 }, (_, n) => change(pool, n))))
    ).flat();
    expect(receipts).toHaveLength(4 * 501);
    const after = await readChain(ground.sql, ground.chain);
    expect(recompute(ground.chain, after)).toBeUndefined();
    expect(after.head.seq).toBe(before.head.seq + receipts.length);
    const written = after.entries.slice(before.entries.length).map(({ seq, link }) => `${ground.chain}:${seq}:${link}`);
    expect(new Set(receipts)).toEqual(new Set(written));
    const verified = await new AuditService(ground.pool).verify(ground.chain);
    expect(verified).toMatchObject({ ok: true, entries: after.head.seq });
  });
});
