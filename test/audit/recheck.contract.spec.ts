/** The continuous verifier, step by step, on a real PostgreSQL. */

import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { AnchorCheck } from '../../src/audit/anchor-check.js';
import { AuditService } from '../../src/audit/audit.service.js';
import { registerChainMetrics } from '../../src/audit/chain.metrics.js';
import { ChainKnowledge } from '../../src/audit/chain-knowledge.js';
import { RecheckLoop } from '../../src/audit/recheck.loop.js';
import { WINDOW_ENTRIES } from '../../src/audit/windows.js';
import { Pool } from '../../src/platform/db/db.js';
import { Chains } from './chain.fixture.js';

let chains: Chains;
let knowledge: ChainKnowledge;
let loop: RecheckLoop;
const log = { error: vi.fn(), info: vi.fn() };
/** Milliseconds that each step seems to take. */
let stepMs: number;

beforeEach(async () => {
  chains = await Chains.open(4);
  log.error.mockClear();
  log.info.mockClear();
  knowledge = new ChainKnowledge(log);
  stepMs = 1;
  let now = 0;
  loop = new RecheckLoop(chains.pool, knowledge, new AnchorCheck(chains.pool), {
    monotonicMs: () => {
      now += stepMs;
      return now;
    },
  });
});
afterEach(() => chains.close());

/** Until a pass is over; how many steps it took. */
async function pass(): Promise<number> {
  for (let steps = 1; steps < 100; steps += 1) {
    expect(await loop.step()).toBe('idle');
    if (loop.intervalMs() >= 10_000) return steps;
  }
  throw new Error('the pass has no end');
}

const rewrite = `update audit_entries set claim = claim || ' ' where chain_id = $1 and seq = $2`;

describe('a pass over all chains', () => {
  it('ends also where there are none, and where they are empty', async () => {
    expect(await pass()).toBe(1);
    await chains.newChain();
    expect(await pass()).toBe(1);
    expect(knowledge.verifiedSeq).toBe(0);
  });

  it('takes few statements and one step for a few short chains, and sees new ones the next time', async () => {
    const made = [await chains.chainOf(2), await chains.chainOf(3), await chains.newChain()];
    const statements = vi.spyOn(chains.pool, 'run');
    expect(await pass()).toBe(1);
    expect(statements).toHaveBeenCalledTimes(3);
    expect(made.map((chain) => knowledge.heldSeq(chain))).toEqual([2, 3, 0]);
    const later = await chains.chainOf(4);
    expect(knowledge.heldSeq(later)).toBeUndefined();
    await pass();
    expect(knowledge.heldSeq(later)).toBe(4);
    expect(knowledge.verifiedSeq).toBe(9);
  });

  it('S4-102 misses a chain that was removed, whether it saw it before or not', async () => {
    const [known, other] = [await chains.chainOf(3), await chains.chainOf(2)];
    await pass();
    const remove = async (chain: string) => {
      await chains.tamper('delete from audit_entries where chain_id = $1', chain);
      await chains.tamper('delete from audit_heads where chain_id = $1', chain);
    };
    await remove(known);
    await pass();
    expect(knowledge.broken(known)).toEqual({ brokenAt: 1, check: 'behind' });
    expect(knowledge.broken(other)).toBeUndefined();
    expect(log.error).toHaveBeenCalledWith(
      { code: 'audit_chain_broken', chain: known, seq: 1, check: 'behind' },
      expect.any(String),
    );
    await remove(other);
    const [later, anew] = [new ChainKnowledge(), new AnchorCheck(chains.pool)];
    await new RecheckLoop(chains.pool, later, anew, { monotonicMs: () => 0 }).step();
    expect(later.chainsBroken.length, 'a process that never saw them').toBe(2);
  });

  it('goes over many chains in steps of twenty, each of them once', async () => {
    const made: string[] = [];
    for (let n = 0; n < 45; n += 1) made.push(await chains.newChain());
    await chains.append(...made.map((chain) => [chain, { action: 'test.made' }] as const));
    expect(await pass()).toBe(3);
    expect(made.map((chain) => knowledge.heldSeq(chain))).toEqual(made.map(() => 1));
    // The last twenty: behind them there may be more.
    for (let n = 45; n < 60; n += 1) made.push(await chains.newChain());
    expect(await pass()).toBe(4);
    expect(made.map((chain) => knowledge.heldSeq(chain))).toEqual(made.map((_, n) => (n < 45 ? 1 : 0)));
  });

  it('goes over a long chain window by window, others beside it, and over what is appended meanwhile the next time', {
    timeout: 120_000,
  }, async () => {
    const [long, short] = [await chains.newChain('in_a'), await chains.newChain('in_b')];
    await chains.appendMany(long, WINDOW_ENTRIES + 500);
    await chains.append([short, { action: 'test.made' }]);
    await loop.step();
    expect([knowledge.verifiedSeq, knowledge.heldSeq(long), knowledge.heldSeq(short)]).toEqual([
      WINDOW_ENTRIES,
      undefined,
      undefined,
    ]);
    await chains.append([long, { action: 'test.later' }]);
    await loop.step();
    expect([knowledge.heldSeq(long), knowledge.heldSeq(short)]).toEqual([WINDOW_ENTRIES + 500, 1]);
    await pass();
    expect(knowledge.heldSeq(long)).toBe(WINDOW_ENTRIES + 501);
  });

  it('goes on where it was after a step that failed', { timeout: 120_000 }, async () => {
    const long = await chains.newChain();
    await chains.appendMany(long, WINDOW_ENTRIES + 1);
    await loop.step();
    for (let failing = 0; failing < 2; failing += 1) {
      vi.spyOn(chains.pool, 'run').mockRejectedValueOnce(new Error('gone'));
      await expect(loop.step()).rejects.toThrow('gone');
    }
    await loop.step();
    expect(knowledge.heldSeq(long)).toBe(WINDOW_ENTRIES + 1);
    vi.spyOn(chains.pool, 'run').mockRejectedValueOnce(new Error('gone'));
    await expect(loop.step()).rejects.toThrow('gone');
    expect(await pass()).toBe(2);
    expect(log.error).not.toHaveBeenCalled();
  });

  it('S4-102 goes on in smaller parts where one took the database too long', async () => {
    const [long, short] = [await chains.chainOf(6), await chains.chainOf(2)];
    const run = vi.spyOn(chains.pool, 'run');
    const real = (statement: Parameters<Pool['run']>[0]) => Pool.prototype.run.call(chains.pool, statement) as never;
    for (let before = 0; before < 2; before += 1) run.mockImplementationOnce(real);
    run.mockRejectedValueOnce(Object.assign(new Error('canceling statement'), { code: '57014' }));
    await loop.step();
    expect([knowledge.verifiedSeq, knowledge.heldSeq(long), knowledge.heldSeq(short)]).toEqual([5, undefined, 2]);
    await loop.step();
    expect(knowledge.heldSeq(long)).toBe(6);
    expect(log.error).not.toHaveBeenCalled();
  });

  it('leaves the database forty times as long alone as it kept it busy', async () => {
    await chains.chainOf(1);
    for (const [took, pause] of [
      [1, 10_000],
      [250, 30_000],
      [1_000, 40_000],
      [5_000, 60_000],
    ] as const) {
      stepMs = took;
      await loop.step();
      expect(loop.intervalMs()).toBe(pause);
    }
    for (let n = 0; n < 25; n += 1) await chains.newChain();
    for (const [took, pause] of [
      [1, 1_000],
      [55, 30_000],
      [55, 2_200],
    ] as const) {
      stepMs = took;
      await loop.step();
      expect(loop.intervalMs()).toBe(pause);
    }
  });
});

describe('a break', () => {
  it('S4-102 is found within one pass, told once, counted, and told when the chain holds again', async () => {
    const registry = new Registry();
    registerChainMetrics(registry, knowledge);
    const metrics = async () => {
      const json = await registry.getMetricsAsJSON();
      return Object.fromEntries(json.map(({ name, values }) => [name, values[0]?.value]));
    };
    const [sound, broken] = [await chains.chainOf(5), await chains.chainOf(4)];
    await pass();
    expect(await metrics()).toEqual({
      capstan_audit_head_seq: 9,
      capstan_audit_verified_seq: 9,
      capstan_audit_broken: 0,
    });
    await chains.tamper(rewrite, broken, 3);
    await pass();
    await pass();
    expect(await metrics()).toEqual({
      capstan_audit_head_seq: 9,
      capstan_audit_verified_seq: 7,
      capstan_audit_broken: 1,
    });
    expect(log.error.mock.calls).toEqual([
      [{ code: 'audit_chain_broken', chain: broken, seq: 3, check: 'link' }, expect.any(String)],
    ]);
    expect([knowledge.broken(broken), knowledge.broken(sound)]).toEqual([{ brokenAt: 3, check: 'link' }, undefined]);
    await chains.tamper(`update audit_entries set claim = rtrim(claim) where chain_id = $1 and seq = $2`, broken, 3);
    await pass();
    expect(log.info.mock.calls).toEqual([[{ code: 'audit_chain_holds', chain: broken, seq: 4 }, expect.any(String)]]);
    expect(await metrics()).toEqual({
      capstan_audit_head_seq: 9,
      capstan_audit_verified_seq: 9,
      capstan_audit_broken: 0,
    });
  });

  it.each<[string, (chain: string) => Promise<void>, number, string]>([
    [
      'an entry taken out',
      (chain) => chains.tamper('delete from audit_entries where chain_id = $1 and seq = 2', chain),
      2,
      'gap',
    ],
    [
      'the last entry taken out',
      (chain) => chains.tamper('delete from audit_entries where chain_id = $1 and seq = 4', chain),
      4,
      'gap',
    ],
    [
      'another link before',
      (chain) => chains.tamper(`update audit_entries set prev = sha256('x') where chain_id = $1 and seq = 2`, chain),
      2,
      'prev',
    ],
    [
      'another head',
      (chain) => chains.tamper(`update audit_heads set link = sha256('x') where chain_id = $1`, chain),
      4,
      'head',
    ],
    ['a tail cut off that was seen', (chain) => chains.cutBehind(chain, 2), 3, 'behind'],
    [
      'a tail cut off that has an anchor',
      async (chain) => {
        await chains.anchor(chain, 3);
        await chains.cutBehind(chain, 2);
      },
      3,
      'behind',
    ],
  ])('S4-102 %s is named', async (_, attack, seq, check) => {
    const chain = await chains.chainOf(4);
    await pass();
    await attack(chain);
    await pass();
    expect(log.error.mock.calls).toEqual([[{ code: 'audit_chain_broken', chain, seq, check }, expect.any(String)]]);
  });

  it('S4-102 an anchor that no longer equals its entry is named by who never saw the chain before', async () => {
    const chain = await chains.chainOf(4);
    await chains.anchor(chain, 3);
    await chains.cutBehind(chain, 2);
    await pass();
    expect(knowledge.broken(chain)).toEqual({ brokenAt: 3, check: 'anchor' });
  });

  it('S4-102 a chain that was rebuilt whole is named by who saw where it led', async () => {
    const chain = await chains.chainOf(4);
    await pass();
    await chains.cutBehind(chain, 2);
    for (let n = 0; n < 5; n += 1) await chains.append([chain, { action: 'test.forged', n }]);
    await pass();
    expect(knowledge.broken(chain)).toEqual({ brokenAt: 4, check: 'behind' });
    expect(await new AuditService(chains.pool).verify(chain)).toMatchObject({ ok: true });
  });

  it('found on demand is known to the loop, and the other way round', async () => {
    const chain = await chains.chainOf(3);
    const audit = new AuditService(chains.pool, knowledge);
    await audit.verify(chain);
    await chains.tamper(rewrite, chain, 2);
    await pass();
    expect(audit.brokenAsKnown(chain)).toEqual({ brokenAt: 2, check: 'link' });
    await audit.verify(chain);
    expect(log.error).toHaveBeenCalledTimes(1);
  });
});
