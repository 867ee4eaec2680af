/** Anchors on a real PostgreSQL and from a real authority: one per chain and interval, only what holds, never twice. */
import { createHash, randomUUID } from 'node:crypto';
import type pg from 'pg';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AnchorLoop } from '../../src/audit/anchor.loop.js';
import { AnchorMetrics } from '../../src/audit/anchor.metrics.js';
import { anchorFault } from '../../src/audit/anchor.rules.js';
import { listAnchors, storeAnchorIfHolds, takeAnchorTurn } from '../../src/audit/anchors.sql.js';
import { LAST_SEQ } from '../../src/audit/chain.js';
import { ChainKnowledge } from '../../src/audit/chain-knowledge.js';
import { requestTimeStamp } from '../../src/audit/tsa.js';
import type { Pool } from '../../src/platform/db/db.js';
import { readTimeStamp, type TimeStamp } from '../../src/verifier/rfc3161.js';
import { createDatabase, type TestDatabase } from '../database.js';
import { until } from '../server.js';
import { startTsa, type TsaServer } from './tsa.fixture.js';

const HOUR_MS = 3_600_000;
const TURN_MS = 60_000;

let db: TestDatabase;
let pool: Pool;
let sql: pg.Client;
let tsa: TsaServer;
beforeAll(async () => {
  tsa = await startTsa();
});
afterAll(() => tsa.close());
beforeEach(async () => {
  db = await createDatabase();
  pool = db.pool(16);
  sql = await db.session();
  tsa.mode = 'honest';
});
afterEach(() => db.drop());

/** Chains in the order of their names, with an entry each. */
async function newChains(count: number): Promise<string[]> {
  const chains: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const [chain, organization] = [`in_${n}`, randomUUID()];
    await sql.query('insert into organizations (id, name) values ($1, $2)', [organization, chain]);
    await sql.query('insert into audit_heads (chain_id, organization_id) values ($1, $2)', [chain, organization]);
    await append(chain);
    chains.push(chain);
  }
  return chains;
}

async function append(chain: string): Promise<void> {
  await sql.query(`select audit_append(array[$1], array['{"action": "test.made"}'::jsonb], array[null::uuid])`, [
    chain,
  ]);
}

async function anchorsOf(chain: string) {
  return listAnchors(pool, chain, { from: 1, to: LAST_SEQ }, 1_000);
}

/** The clock goes on for anchors and turns. Both refuse that in earnest. */
async function passTime(ms: number): Promise<void> {
  await sql.query('alter table audit_anchors disable trigger all');
  await sql.query(`update audit_anchors set created_at = created_at - $1 * interval '1 millisecond'`, [ms]);
  await sql.query('alter table audit_anchors enable trigger all');
  await sql.query(`update audit_anchor_turns set until = until - $1 * interval '1 millisecond'`, [ms]);
}

const linkOf = async (chain: string) => {
  const { rows } = await sql.query(`select seq, encode(link, 'hex') as link from audit_heads where chain_id = $1`, [
    chain,
  ]);
  return rows[0] as { seq: string; link: string };
};
const anchorOf = async (chain: string) => ({
  seq: 1,
  link: (await linkOf(chain)).link,
  at: '2026-03-02T09:00:00Z',
  ref: 'https://tsa.example/tsr',
  token: Buffer.from('3000', 'hex'),
});

describe('whose turn it is', () => {
  it('of many that ask at once one gets the turn for a chain', async () => {
    await newChains(1);
    const turns = await Promise.all(Array.from({ length: 10 }, () => takeAnchorTurn(pool, HOUR_MS, TURN_MS)));
    const taken = turns.filter((turn) => turn !== undefined);
    expect(taken).toEqual([
      { chain: 'in_0', seq: 1, link: (await linkOf('in_0')).link, entryAtMs: expect.any(Number) },
    ]);
    expect(Math.abs(Date.now() - taken[0]!.entryAtMs)).toBeLessThan(60_000);
  });

  it('who looked before another took the turn, and takes it behind him, gets none', async () => {
    await newChains(1);
    await sql.query('begin');
    await sql.query(`insert into audit_anchor_turns values ('in_0', now() + interval '1 minute')`);
    const late = takeAnchorTurn(pool, HOUR_MS, TURN_MS);
    const watcher = await db.session();
    await until('the other waits for the row', async () => {
      const { rows } = await watcher.query(`select 1 from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%audit_anchor_turns%'`);
      return rows.length > 0;
    });
    await sql.query('commit');
    expect(await late).toBeUndefined();
  });

  it('a turn that brought nothing is over after its time, and anybody has the next', async () => {
    await newChains(1);
    expect(await takeAnchorTurn(pool, HOUR_MS, TURN_MS)).toBeDefined();
    await passTime(TURN_MS - 5_000);
    expect(await takeAnchorTurn(pool, HOUR_MS, TURN_MS)).toBeUndefined();
    await passTime(10_000);
    expect(await takeAnchorTurn(pool, HOUR_MS, TURN_MS)).toMatchObject({ chain: 'in_0' });
  });

  it('a chain that was anchored is due again after the interval, if it grew', async () => {
    await newChains(1);
    await takeAnchorTurn(pool, HOUR_MS, TURN_MS);
    expect(await storeAnchorIfHolds(pool, 'in_0', await anchorOf('in_0'))).toBe(true);
    await append('in_0');
    await passTime(HOUR_MS - 5_000);
    expect(await takeAnchorTurn(pool, HOUR_MS, TURN_MS)).toBeUndefined();
    await passTime(10_000);
    expect(await takeAnchorTurn(pool, HOUR_MS, TURN_MS)).toMatchObject({ seq: 2 });
  });

  it('a chain that did not grow is never due again', async () => {
    await newChains(1);
    await takeAnchorTurn(pool, HOUR_MS, TURN_MS);
    await storeAnchorIfHolds(pool, 'in_0', await anchorOf('in_0'));
    await passTime(100 * HOUR_MS);
    expect(await takeAnchorTurn(pool, HOUR_MS, TURN_MS)).toBeUndefined();
  });

  it('the chain that waits longest comes first, those that have no anchor before all', async () => {
    const chains = await newChains(3);
    await storeAnchorIfHolds(pool, 'in_1', await anchorOf('in_1'));
    await passTime(HOUR_MS);
    await storeAnchorIfHolds(pool, 'in_0', await anchorOf('in_0'));
    await passTime(2 * HOUR_MS);
    for (const chain of chains) await append(chain);
    const order: (string | undefined)[] = [];
    for (let n = 0; n < 4; n += 1) order.push((await takeAnchorTurn(pool, HOUR_MS, TURN_MS))?.chain);
    expect(order).toEqual(['in_2', 'in_1', 'in_0', undefined]);
  });

  it('every chain that is due has its turn, though those before it fail again and again', async () => {
    await newChains(4);
    await storeAnchorIfHolds(pool, 'in_3', await anchorOf('in_3'));
    await append('in_3');
    await passTime(2 * HOUR_MS);
    const order: (string | undefined)[] = [];
    for (let n = 0; n < 8; n += 1) {
      order.push((await takeAnchorTurn(pool, HOUR_MS, TURN_MS))?.chain);
      await passTime(TURN_MS + 1_000);
    }
    expect(order).toEqual(['in_0', 'in_1', 'in_2', 'in_3', 'in_0', 'in_1', 'in_2', 'in_3']);
  });

  it('a chain without an entry, or whose head is no entry of it, is not due', async () => {
    await newChains(1);
    await sql.query('alter table audit_heads disable trigger all');
    await sql.query(`update audit_heads set link = sha256('elsewhere')`);
    expect(await takeAnchorTurn(pool, HOUR_MS, TURN_MS)).toBeUndefined();
    await sql.query(`update audit_heads set seq = 0, link = ''`);
    expect(await takeAnchorTurn(pool, HOUR_MS, TURN_MS)).toBeUndefined();
  });
});

describe('what is stored', () => {
  it('S4x-02 is listed by its place, byte for byte', async () => {
    await newChains(1);
    const anchor = await anchorOf('in_0');
    expect(await storeAnchorIfHolds(pool, 'in_0', anchor)).toBe(true);
    expect(await listAnchors(pool, 'in_0', { from: 1, to: 1 }, 9)).toEqual([anchor]);
    expect(await listAnchors(pool, 'in_0', { from: 2, to: 9 }, 9)).toEqual([]);
  });

  it('is listed up to so many, the newest', async () => {
    await newChains(1);
    for (let n = 0; n < 2; n += 1) await append('in_0');
    await sql.query(
      `insert into audit_anchors (chain_id, seq, link, at, ref, token)
       select chain_id, seq, link, '2026-03-02T09:00:00Z', 'https://tsa.example/', '\\x30' from audit_entries`,
    );
    const listed = await listAnchors(pool, 'in_0', { from: 1, to: 9 }, 2);
    expect(listed.map(({ seq }) => seq)).toEqual([2, 3]);
  });

  it('is of an entry that still has that link, and once', async () => {
    await newChains(1);
    const anchor = await anchorOf('in_0');
    const other = createHash('sha256').update('other').digest('hex');
    expect(await storeAnchorIfHolds(pool, 'in_0', { ...anchor, link: other })).toBe(false);
    expect(await storeAnchorIfHolds(pool, 'in_0', { ...anchor, seq: 2 })).toBe(false);
    expect(await storeAnchorIfHolds(pool, 'in_nowhere', anchor)).toBe(false);
    expect(await anchorsOf('in_0')).toEqual([]);
    const stored = await Promise.all(Array.from({ length: 5 }, () => storeAnchorIfHolds(pool, 'in_0', anchor)));
    expect(stored.filter(Boolean)).toHaveLength(1);
    expect(await anchorsOf('in_0')).toEqual([anchor]);
  });

  it('is never changed nor removed', async () => {
    await newChains(1);
    await storeAnchorIfHolds(pool, 'in_0', await anchorOf('in_0'));
    for (const change of [`update audit_anchors set at = ''`, 'delete from audit_anchors', 'truncate audit_anchors']) {
      await expect(sql.query(change)).rejects.toThrow('anchors are only ever appended');
    }
  });
});

/** A replica's loop, with what it logs and counts. */
function loopOf(request = requestTimeStamp) {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) });
  const registry = new Registry();
  const metrics = new AnchorMetrics(registry);
  const knowledge = new ChainKnowledge();
  const loop = new AnchorLoop({ pool, url: tsa.url, knowledge, intervalMs: HOUR_MS, request, log, metrics });
  return { loop, knowledge, lines, registry, step: () => loop.step(new AbortController().signal) };
}

describe('the loop', () => {
  it('S4x-02 anchors chain by chain, and then has nothing to do', async () => {
    const chains = await newChains(3);
    const { step, lines, registry } = loopOf();
    expect([await step(), await step(), await step(), await step()]).toEqual(['more', 'more', 'more', 'idle']);
    for (const chain of chains) {
      const [anchor, ...more] = await anchorsOf(chain);
      expect(more).toEqual([]);
      expect(anchor).toMatchObject({ seq: 1, link: (await linkOf(chain)).link });
      expect(anchor!.at).toBe(readTimeStamp(anchor!.token, anchor!.link).genTime);
      expect(anchor!.ref).toBe(tsa.url.replace('?key=secret', ''));
    }
    expect(lines.map(({ code }) => code)).toEqual(Array(3).fill('anchor_stored'));
    expect(JSON.stringify(lines)).not.toContain('secret');
    expect(await registry.metrics()).toContain('capstan_audit_anchors_total{result="stored"} 3');
    expect(await registry.metrics()).toMatch(/^capstan_audit_anchor_age_seconds [\d.]+$/m);
  });

  it('dates no chain that is known to be broken, until it holds again', async () => {
    const [broken, whole] = await newChains(2);
    const { step, knowledge } = loopOf();
    knowledge.noteBroken(broken ?? '', { brokenAt: 1, check: 'link' });
    expect([await step(), await step()]).toEqual(['more', 'idle']);
    expect([await anchorsOf(broken ?? ''), await anchorsOf(whole ?? '')]).toEqual([[], [expect.anything()]]);
    const held = { seq: 1, link: (await linkOf(broken ?? '')).link, anchors: 0 };
    knowledge.noteHeld(broken ?? '', held, knowledge.broken(broken ?? ''));
    expect(await step()).toBe('more');
    expect(await anchorsOf(broken ?? '')).toHaveLength(1);
  });

  it('of ten replicas one asks per chain and interval', async () => {
    const chains = await newChains(2);
    const before = tsa.requests.length;
    const replicas = Array.from({ length: 10 }, () => loopOf());
    await Promise.all(
      replicas.map(async ({ step }) => {
        while ((await step()) === 'more');
      }),
    );
    // Those who lost the race for one chain were idle; the next look finds what is left.
    for (const { step } of replicas) await step();
    expect(tsa.requests.length - before).toBe(chains.length);
    for (const chain of chains) expect(await anchorsOf(chain)).toHaveLength(1);
  });

  it('S4x-02 an authority that lies or fails has nothing stored; that is told once in a row, and tried again later', async () => {
    await newChains(2);
    const { step, lines, registry } = loopOf();
    tsa.mode = 'otherImprint';
    expect([await step(), await step(), await step()]).toEqual(['idle', 'idle', 'idle']);
    expect(lines).toMatchObject([
      { level: 40, code: 'anchor_failed', chain: 'in_0', seq: 1, reason: expect.stringContaining('another link') },
    ]);
    tsa.mode = 'serverError';
    await passTime(TURN_MS + 1_000);
    await step();
    expect(lines.slice(1)).toMatchObject([{ code: 'anchor_failed', reason: 'answered with status 500' }]);
    expect([await anchorsOf('in_0'), await anchorsOf('in_1')]).toEqual([[], []]);
    expect(await registry.metrics()).toContain('capstan_audit_anchors_total{result="failed"} 3');
    expect(await registry.metrics()).not.toMatch(/^capstan_audit_anchor_age_seconds \d/m);
    tsa.mode = 'honest';
    await passTime(TURN_MS + 1_000);
    expect([await step(), await step()]).toEqual(['more', 'more']);
    expect(lines.slice(2).map(({ code }) => code)).toEqual(['anchor_stored', 'anchor_stored']);
  });

  it('a time more than five minutes before the entry is not stored, and the log says whose clock to look at', async () => {
    await newChains(1);
    const { step, lines } = loopOf();
    tsa.mode = 'clockBehind';
    expect(await step()).toBe('idle');
    expect(await anchorsOf('in_0')).toEqual([]);
    expect(lines).toMatchObject([
      { code: 'anchor_failed', reason: expect.stringContaining('clock of the database server') },
    ]);
  });

  it.each([
    ['twoSigners', 'more than one signer'],
    ['certificateOver', 'not valid'],
  ] as const)('S4x-02 a token that other verifiers refuse is not stored: %s', async (mode, reason) => {
    await newChains(1);
    const { step, lines } = loopOf();
    tsa.mode = mode;
    expect(await step()).toBe('idle');
    expect(await anchorsOf('in_0')).toEqual([]);
    expect(lines).toMatchObject([{ code: 'anchor_failed', reason: expect.stringContaining(reason) }]);
  });

  it('S4x-02 an entry that was altered while the authority was asked is not anchored', async () => {
    await newChains(1);
    const { step, lines } = loopOf(async (...asked) => {
      const answer = await requestTimeStamp(...asked);
      await sql.query('alter table audit_entries disable trigger all');
      await sql.query(`update audit_entries set link = sha256('altered')`);
      return answer;
    });
    expect(await step()).toBe('idle');
    expect(await anchorsOf('in_0')).toEqual([]);
    expect(lines).toMatchObject([{ code: 'anchor_failed', reason: expect.stringContaining('changed since') }]);
  });

  it('a stop does not wait for an authority that is silent, and is no failure', async () => {
    await newChains(1);
    const { loop, lines } = loopOf();
    const stopping = new AbortController();
    const asked = tsa.requests.length;
    tsa.mode = 'silent';
    const step = loop.step(stopping.signal);
    await expect.poll(() => tsa.requests.length, { timeout: 10_000 }).toBe(asked + 1);
    stopping.abort();
    expect(await step).toBe('idle');
    expect(lines).toEqual([]);
  });
});

it('five minutes between two clocks are allowed, as verifiers allow them', () => {
  const fault = (genTimeMs: number, entryAtMs: number) => anchorFault(stampAt(genTimeMs), entryAtMs);
  expect(fault(1_000_000, 1_300_000)).toBeUndefined();
  expect(fault(1_000_000, 1_300_001)).toContain('clock');
  expect(fault(9_000_000, 1_000_000)).toBeUndefined();
});

it.each([
  ['before it', { certificateFromMs: 5_001 }],
  ['after it', { certificateToMs: 4_999 }],
  ['when nobody can say', { certificateToMs: Number.NaN }],
])("a time outside the validity of the signer's certificate is of no use: %s", (_, certificate) => {
  expect(anchorFault(stampAt(5_000), 5_000)).toBeUndefined();
  expect(anchorFault({ ...stampAt(5_000), certificateFromMs: 5_000, certificateToMs: 5_000 }, 5_000)).toBeUndefined();
  expect(anchorFault({ ...stampAt(5_000), ...certificate }, 5_000)).toContain('not valid');
});

function stampAt(genTimeMs: number): TimeStamp {
  return {
    ...{ genTime: '', genTimeMs, signer: '', nonce: undefined, serial: '01', policy: '1.2.3', hasOneSigner: true },
    ...{ certificateFromMs: 0, certificateToMs: 9_000_000 },
  };
}
