/** Verification of windows, with anchors, and what a process keeps of it; on a real PostgreSQL. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { AccessService } from '../../src/access/access.service.js';
import { AuditService } from '../../src/audit/audit.service.js';
import { installationChain } from '../../src/audit/audit.sql.js';
import { Windows } from '../../src/audit/windows.js';
import { Pool } from '../../src/platform/db/db.js';
import { systemTiming } from '../../src/platform/time.js';
import { createDatabase } from '../database.js';
import { Chains } from './chain.fixture.js';

let chains: Chains;
beforeAll(async () => {
  chains = await Chains.open();
});
afterAll(() => chains.close());

const audit = () => new AuditService(chains.pool);
const verify = (chain: string, from?: number, to?: number) => audit().verify(chain, { from, to });
const rewrite = `update audit_entries set claim = claim || ' ' where chain_id = $1 and seq = $2`;

describe('a window of a chain', () => {
  it('counts its own entries, and ends at the head', async () => {
    const chain = await chains.chainOf(6);
    expect(await verify(chain, 3, 5)).toMatchObject({ ok: true, entries: 3, head: { seq: 6 } });
    expect(await verify(chain, 6)).toMatchObject({ ok: true, entries: 1 });
    expect(await verify(chain, 2, 900)).toMatchObject({ ok: true, entries: 5 });
    expect(await verify(chain, undefined, 2)).toMatchObject({ ok: true, entries: 2 });
    expect(await verify(await chains.newChain(), 1, 5)).toMatchObject({ ok: true, entries: 0 });
  });

  it('beyond the head is no answer', async () => {
    const chain = await chains.chainOf(2);
    await expect(verify(chain, 3)).rejects.toMatchObject({ code: 'invalid_input' });
    expect(await verify(chain, 2)).toMatchObject({ ok: true });
  });

  it('S4-102 is broken by what is in it alone', async () => {
    const chain = await chains.chainOf(8);
    await chains.tamper(rewrite, chain, 4);
    expect(await verify(chain, 3, 6)).toMatchObject({ ok: false, brokenAt: 4, check: 'link', entries: 1 });
    expect(await verify(chain, 5, 8)).toMatchObject({ ok: true, entries: 4 });
    expect(await verify(chain, 1, 3)).toMatchObject({ ok: true, entries: 3 });
  });

  it('S4-102 compares what its first entry follows, where that is there', async () => {
    const chain = await chains.chainOf(5);
    await chains.tamper(`update audit_entries set link = sha256('x') where chain_id = $1 and seq = 2`, chain);
    expect(await verify(chain, 3)).toMatchObject({ ok: false, brokenAt: 3, check: 'prev' });
    await chains.tamper('delete from audit_entries where chain_id = $1 and seq = 2', chain);
    expect(await verify(chain, 3), 'taken for given').toMatchObject({ ok: true, entries: 3 });
    expect(await verify(chain, 2)).toMatchObject({ ok: false, brokenAt: 2, check: 'gap', entries: 0 });
  });

  it('S4-102 at the beginning follows nothing, whatever its first entry says', async () => {
    const chain = await chains.chainOf(2);
    await chains.sql.query('alter table audit_entries drop constraint audit_entries_check');
    await chains.tamper(`update audit_entries set prev = sha256('x') where chain_id = $1 and seq = 1`, chain);
    expect(await verify(chain, 1, 1)).toMatchObject({ ok: false, brokenAt: 1, check: 'prev' });
  });

  it('S4-102 shows also what is wrong with the head and with anchors outside of it', async () => {
    const chain = await chains.chainOf(6);
    await chains.anchor(chain, 5);
    await chains.tamper(`update audit_heads set link = sha256('x') where chain_id = $1`, chain);
    expect(await verify(chain, 1, 3)).toMatchObject({ ok: false, brokenAt: 6, check: 'head', entries: 3 });
    await chains.tamper(`update audit_anchors set link = sha256('x') where chain_id = $1`, chain);
    expect(await verify(chain, 1, 3)).toMatchObject({ ok: false, brokenAt: 5, check: 'anchor', anchors: 0 });
  });
});

describe('whoever takes the constraints away first', () => {
  let bare: Chains;
  beforeAll(async () => {
    bare = await Chains.open();
    for (const column of ['claim', 'prev', 'link', 'at', 'action']) {
      await bare.sql.query(`alter table audit_entries alter ${column} drop not null`);
    }
    await bare.sql.query('alter table audit_entries drop constraint audit_entries_pkey');
  });
  afterAll(() => bare.close());
  const verdict = (chain: string) => new AuditService(bare.pool).verify(chain);

  it.each([
    ['claim', 2, 'link'],
    ['prev', 2, 'prev'],
    ['link', 2, 'link'],
    ['claim', 4, 'link'],
    ['prev', 4, 'prev'],
    ['link', 4, 'link'],
    ['at', 2, 'column'],
    ['action', 4, 'column'],
  ])('S4-102 and leaves nothing in the column %s of entry %i is found', async (column, seq, check) => {
    const chain = await bare.chainOf(4);
    await bare.tamper(`update audit_entries set ${column} = null where chain_id = $1 and seq = $2`, chain, seq);
    expect(await verdict(chain)).toMatchObject({ ok: false, brokenAt: seq, check, entries: seq - 1 });
  });

  it('S4-102 and leaves nothing at all in an entry and what follows it is found', async () => {
    const chain = await bare.chainOf(4);
    await bare.tamper(
      'update audit_entries set claim = null, prev = null, link = null where chain_id = $1 and seq > 2',
      chain,
    );
    expect(await verdict(chain)).toMatchObject({ ok: false, brokenAt: 3 });
  });

  it.each([2, 4])('S4-102 and puts entry %i there twice is found', async (seq) => {
    const chain = await bare.chainOf(4);
    const twice = 'insert into audit_entries select * from audit_entries where chain_id = $1 and seq = $2';
    await bare.tamper(twice, chain, seq);
    expect(await verdict(chain)).toMatchObject({ ok: false, brokenAt: seq, check: 'gap', entries: seq - 1 });
    expect(await new AuditService(bare.pool).verify(chain, { from: 3 })).toMatchObject({ ok: seq === 2 });
  });

  it('S4-102 and moves the head as far as a number goes is found', async () => {
    const chain = await bare.chainOf(3);
    const furthest = '9223372036854775807';
    await bare.tamper('update audit_entries set seq = $2 where chain_id = $1 and seq = 3', chain, furthest);
    await bare.tamper('update audit_heads set seq = $2 where chain_id = $1', chain, furthest);
    const service = new AuditService(bare.pool);
    for (let n = 0; n < 2; n += 1) {
      expect(await service.verify(chain)).toMatchObject({ ok: false, brokenAt: 3, check: 'gap' });
    }
  });
});

describe('a window that takes the database too long', () => {
  const tooLong = () => Object.assign(new Error('canceling statement'), { code: '57014' });
  /** A service whose next looks at windows are given up. */
  async function slow(chain: string, times: number) {
    const own = chains.db.pool(1);
    const run = vi.spyOn(own, 'run');
    run.mockImplementationOnce((statement) => Pool.prototype.run.call(own, statement) as never);
    for (let n = 0; n < times; n += 1) run.mockRejectedValueOnce(tooLong());
    const told: number[] = [];
    const onProgress = ({ verified }: { verified: number }) => told.push(verified);
    return { told, verdict: await new AuditService(own).verify(chain, {}, { onProgress }) };
  }

  it('S4-102 is checked in halves, the next ones in wider parts again', async () => {
    const chain = await chains.chainOf(40);
    expect(await slow(chain, 3)).toEqual({
      told: [5, 15, 35, 40],
      verdict: expect.objectContaining({ ok: true, entries: 40 }),
    });
    await chains.tamper(rewrite, chain, 7);
    expect(await slow(chain, 3)).toEqual({
      told: [5],
      verdict: expect.objectContaining({ ok: false, brokenAt: 7, check: 'link', entries: 6 }),
    });
  });

  it('of one entry is an error, and so is every other that is in the way', async () => {
    const chain = await chains.chainOf(2);
    await expect(slow(chain, 2)).rejects.toMatchObject({ code: '57014' });
    const own = chains.db.pool(1);
    const run = vi.spyOn(own, 'run').mockRejectedValue(Object.assign(new Error('gone'), { code: '57P01' }));
    await expect(new Windows(own).check([{ chain, after: { seq: 0, link: '' }, until: 2 }])).rejects.toThrow('gone');
    expect(run).toHaveBeenCalledTimes(1);
  });
});

describe('anchors', () => {
  it('that equal their entries are counted', async () => {
    const chain = await chains.chainOf(6);
    await chains.anchor(chain, 2);
    await chains.anchor(chain, 6);
    expect(await verify(chain)).toMatchObject({ ok: true, anchors: 2 });
  });

  it('S4-102 S4x-02 a tail that was cut off is found by an anchor of it, by anybody', async () => {
    const chain = await chains.chainOf(6);
    await chains.anchor(chain, 2);
    await chains.anchor(chain, 5);
    await chains.cutBehind(chain, 4);
    expect(await verify(chain)).toMatchObject({ ok: false, brokenAt: 5, check: 'anchor', entries: 4, anchors: 1 });
    // Something else in its place.
    await chains.append([chain, { action: 'test.forged' }], [chain, { action: 'test.forged' }]);
    expect(await verify(chain)).toMatchObject({ ok: false, brokenAt: 5, check: 'anchor', entries: 6 });
  });
});

describe('what a verification leaves behind', () => {
  it('a break is known until the whole chain holds again, and a window never takes it back', async () => {
    const chain = await chains.chainOf(6);
    const service = audit();
    expect([service.brokenAsKnown(chain), service.lastVerified(chain)]).toEqual([undefined, undefined]);
    await service.verify(chain, { from: 2 });
    expect(service.lastVerified(chain), 'a window is not the chain').toBeUndefined();
    await service.verify(chain);
    expect(service.lastVerified(chain)).toBe(6);
    await chains.tamper(rewrite, chain, 2);
    await service.verify(chain, { from: 2, to: 3 });
    expect([service.brokenAsKnown(chain), service.lastVerified(chain)]).toEqual([
      { brokenAt: 2, check: 'link' },
      undefined,
    ]);
    await service.verify(chain, { from: 3 });
    expect(service.brokenAsKnown(chain)).toEqual({ brokenAt: 2, check: 'link' });
    await chains.tamper(rewrite, chain, 5);
    expect(await service.verify(chain, { from: 4 })).toMatchObject({ ok: false, brokenAt: 5 });
    expect(service.brokenAsKnown(chain), 'the first one').toEqual({ brokenAt: 2, check: 'link' });
    await chains.tamper(`update audit_entries set claim = rtrim(claim) where chain_id = $1`, chain);
    await service.verify(chain);
    expect([service.brokenAsKnown(chain), service.lastVerified(chain)]).toEqual([undefined, 6]);
  });

  it('a head that led nowhere is not remembered', async () => {
    const chain = await chains.chainOf(4);
    const service = audit();
    await chains.tamper('update audit_heads set seq = seq + 5 where chain_id = $1', chain);
    expect(await service.verify(chain)).toMatchObject({ ok: false, brokenAt: 5, check: 'gap' });
    await chains.tamper('update audit_heads set seq = seq - 5 where chain_id = $1', chain);
    expect(await service.verify(chain)).toMatchObject({ ok: true, entries: 4 });
  });
});

it('S4-10 F136 fifty first actions at once on a fresh database: one installation, unbroken chains', async () => {
  const db = await createDatabase();
  try {
    const [pool, sql] = [db.pool(50), await db.session()];
    const access = new AccessService(pool, systemTiming);
    await Promise.all(Array.from({ length: 50 }, () => access.prepare()));
    const chain = await installationChain(pool);
    if (!chain) throw new Error('there is no installation');
    const { rows: made } = await sql.query(
      `select chain_id, seq::integer from audit_entries where action = 'organization.created' order by chain_id`,
    );
    expect(made, 'the first entry of two chains').toEqual([
      { chain_id: chain, seq: 1 },
      { chain_id: expect.stringMatching(/^org_/), seq: 1 },
    ]);
    // And fifty first entries of a chain that has none.
    const organization = randomUUID();
    await sql.query(`insert into organizations (id, name) values ($1, 'fresh')`, [organization]);
    await sql.query(`insert into audit_heads (chain_id, organization_id) values ('in_fresh', $1)`, [organization]);
    const append = () =>
      pool.run<{ receipt: string }[]>(
        (tx) => tx`select receipt from audit_append(
          array['in_fresh'], array['{"action": "test.first"}'::jsonb], array[null::uuid])`,
      );
    const receipts = (await Promise.all(Array.from({ length: 50 }, append))).flat();
    const numbers = receipts.map(({ receipt }) => Number(receipt.split(':')[1])).toSorted((a, b) => a - b);
    expect(numbers).toEqual(Array.from({ length: 50 }, (_, i) => i + 1));
    for (const each of ['in_fresh', ...made.map(({ chain_id }) => chain_id)]) {
      expect(await new AuditService(pool).verify(each)).toMatchObject({ ok: true });
    }
  } finally {
    await db.drop();
  }
});
