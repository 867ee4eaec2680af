/** Timestamps that somebody with all rights over the database wrote: each is opened, once. On a real PostgreSQL. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { AnchorCheck } from '../../src/audit/anchor-check.js';
import { readAnchors } from '../../src/audit/anchors.sql.js';
import { AuditService } from '../../src/audit/audit.service.js';
import { ChainKnowledge } from '../../src/audit/chain-knowledge.js';
import { RecheckLoop } from '../../src/audit/recheck.loop.js';
import { Chains } from './chain.fixture.js';

let chains: Chains;
beforeAll(async () => {
  chains = await Chains.open();
});
afterAll(() => chains.close());

/** With timestamps of these entries. */
async function anchored(entries: number, ...seqs: number[]): Promise<string> {
  const chain = await chains.chainOf(entries);
  for (const seq of seqs) await chains.anchor(chain, seq);
  return chain;
}

const verify = (chain: string) => new AuditService(chains.pool).verify(chain);
const never = new AbortController().signal;

/** What the loop of a replica that knows nothing yet finds. */
async function recheck(chain: string, steps = 20) {
  const [knowledge, anchors] = [new ChainKnowledge(), new AnchorCheck(chains.pool)];
  const loop = new RecheckLoop(chains.pool, knowledge, anchors, { monotonicMs: () => 0 });
  for (let n = 0; n < steps; n += 1) await loop.step();
  return { broken: knowledge.broken(chain), held: knowledge.heldSeq(chain) };
}

describe('a timestamp', () => {
  it('of an authority, of its entry, holds', async () => {
    const chain = await anchored(4, 2, 4);
    expect(await verify(chain)).toMatchObject({ ok: true, anchors: 2 });
    expect(await recheck(chain)).toEqual({ broken: undefined, held: 4 });
  });

  it.each([
    ['of nothing, with the bytes that it would have', "token = link || 'garbage'"],
    [
      'whose signature is another',
      'token = set_byte(token, length(token) - 9, get_byte(token, length(token) - 9) # 1)',
    ],
    ['of another entry', 'token = (select token from audit_anchors where chain_id = $1 and seq = 3)'],
    ['with another time beside it', "at = '2026-03-02T09:00:00Z'"],
    ['with a time of any length beside it', "at = at || repeat(' ', 100)"],
    ['longer than any', "token = token || convert_to(repeat('x', 70000), 'UTF8')"],
  ])('S4-102 %s is found, by whoever looks', async (_, set) => {
    const chain = await anchored(4, 1, 2, 3);
    await chains.tamper(`update audit_anchors set ${set} where chain_id = $1 and seq = 2`, chain);
    expect(await verify(chain)).toMatchObject({ ok: false, brokenAt: 2, check: 'anchor', entries: 4 });
    expect((await recheck(chain)).broken).toEqual({ brokenAt: 2, check: 'anchor' });
  });

  it.each([
    ['a token', "token = token || convert_to(repeat('x', 70000), 'UTF8')"],
    ['a time', "at = repeat(' ', 100000)"],
  ])('S4-102 with %s longer than any is not even fetched', async (_, set) => {
    const chain = await anchored(3, 1, 2);
    await chains.tamper(`update audit_anchors set ${set} where chain_id = $1 and seq = 2`, chain);
    expect((await readAnchors(chains.pool, chain, [1, 2])).map(({ seq }) => seq)).toEqual([1]);
  });

  it('S4-102 S4x-02 does not come along when a chain is rewritten with the links that were dated', async () => {
    const chain = await anchored(5, 2, 4);
    const witness = await anchored(5);
    // Another chain's entries, linked as such, in the place of the end of this one.
    await chains.cutBehind(chain, 3);
    await chains.append([chain, { action: 'test.forged' }], [chain, { action: 'test.forged' }]);
    await chains.tamper(
      `update audit_anchors a set link = e.link from audit_entries e
       where a.chain_id = $1 and e.chain_id = $1 and e.seq = 4 and a.seq = 4`,
      chain,
    );
    expect(await verify(chain)).toMatchObject({ ok: false, brokenAt: 4, check: 'anchor', anchors: 2 });
    expect((await recheck(chain)).broken).toEqual({ brokenAt: 4, check: 'anchor' });
    expect(await verify(witness)).toMatchObject({ ok: true });
  });

  it('S4-102 that holds no longer is found by who has seen it hold', async () => {
    const [chain, audit] = [await anchored(3, 2), new AuditService(chains.pool)];
    expect(await audit.verify(chain)).toMatchObject({ ok: true });
    await chains.tamper("update audit_anchors set token = token || '\\x00' where chain_id = $1", chain);
    expect(await audit.verify(chain, { from: 3 })).toMatchObject({ ok: false, brokenAt: 2, check: 'anchor' });
  });
});

describe('a process', () => {
  it('opens each token once', async () => {
    const [chain, own] = [await anchored(4, 1, 2), chains.db.pool(1)];
    const [audit, statements] = [new AuditService(own), vi.spyOn(own, 'run')];
    const sent = async () => {
      statements.mockClear();
      expect(await audit.verify(chain)).toMatchObject({ ok: true });
      return statements.mock.calls.length;
    };
    expect(await sent(), 'the stand, a window, the digests, the tokens').toBe(4);
    expect(await sent(), 'no token').toBe(3);
    await chains.anchor(chain, 4);
    expect([await sent(), await sent()]).toEqual([4, 3]);
  });

  it('keeps so many in mind, and opens the others again', async () => {
    const [chain, check] = [await anchored(3, 1, 2, 3), new AnchorCheck(chains.pool, 2)];
    const look = () => check.look({ chain, from: 1, until: 3 }, 9);
    expect(await look()).toEqual({ from: 4, opened: 3 });
    expect(await look()).toEqual({ from: 4, opened: 1 });
  });

  it('opens a few at a time', async () => {
    const [chain, check] = [await anchored(5, 1, 2, 3, 5), new AnchorCheck(chains.pool)];
    const range = { chain, from: 1, until: 4 };
    expect(await check.look(range, 2)).toEqual({ from: 3, opened: 2 });
    await chains.tamper(`update audit_anchors set at = '' where chain_id = $1 and seq = 3`, chain);
    const fault = { brokenAt: 3, check: 'anchor' };
    expect(await check.look(range, 2)).toEqual({ from: 5, opened: 1, fault });
    expect(await check.look({ ...range, until: 2 }, 0)).toEqual({ from: 3, opened: 0 });
  });
});

it('S4-102 an entry that has more than one timestamp is found, however many they are', async () => {
  const bare = await Chains.open(2);
  try {
    await bare.sql.query('alter table audit_anchors drop constraint audit_anchors_pkey');
    const chain = await bare.chainOf(3);
    for (const seq of [1, 2]) await bare.anchor(chain, seq);
    const more = `insert into audit_anchors select a.* from audit_anchors a, generate_series(1, $2) where chain_id = $1 and seq = 2`;
    for (const n of [1, 1_200]) {
      await bare.tamper(more, chain, n);
      const check = new AnchorCheck(bare.pool);
      const found = await check.firstFault({ chain, from: 1, until: 3 }, never);
      expect(found).toEqual({ brokenAt: 2, check: 'anchor' });
    }
  } finally {
    await bare.close();
  }
});
