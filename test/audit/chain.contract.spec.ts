/** The chain on a real PostgreSQL: linked in SQL, recomputed here; unbroken under contention; every tampering found. */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { AuditService } from '../../src/audit/audit.service.js';
import { readHead, readWindow } from '../../src/audit/audit.sql.js';
import { linkOf } from '../../src/audit/chain.rules.js';
import { canonicalJson } from '../../src/kernel/json.js';
import { Pool } from '../../src/platform/db/db.js';
import { createDatabase, type TestDatabase } from '../database.js';

let db: TestDatabase;
let pool: Pool;
let sql: pg.Client;
beforeAll(async () => {
  db = await createDatabase();
  pool = db.pool(16);
  sql = await db.session();
});
afterAll(() => db.drop());

async function newChain(): Promise<string> {
  const [chain, organization] = [`in_${randomUUID()}`, randomUUID()];
  await sql.query(`insert into organizations (id, name) values ($1, $2)`, [organization, `o-${organization}`]);
  await sql.query('insert into audit_heads (chain_id, organization_id) values ($1, $2)', [chain, organization]);
  return chain;
}

/** Appends payloads, each to its chain, in one statement; answers with the receipts in their order. */
async function append(...entries: (readonly [chain: string, payload: Record<string, unknown>])[]): Promise<string[]> {
  const rows = await pool.run<{ receipt: string }[]>(
    (tx) => tx`
    select a.receipt from audit_append(
      ${entries.map(([chain]) => chain)}::text[],
      (select array_agg(value order by n) from jsonb_array_elements(${tx.json(entries.map(([, payload]) => payload) as never)}::jsonb)
         with ordinality as e (value, n)),
      array_fill(null::uuid, array[${entries.length}::integer])) a
    order by a.entry`,
  );
  return rows.map((row) => row.receipt);
}

async function chainOf(n: number): Promise<string> {
  const chain = await newChain();
  for (let i = 0; i < n; i += 1) await append([chain, { action: 'test.made', n: i }]);
  return chain;
}

const verify = (chain: string) => new AuditService(pool).verify(chain);

describe('appending', () => {
  it('S4-102 what SQL linked is what the other side computes, entry by entry', async () => {
    const chain = await chainOf(5);
    for (const entry of await readWindow(pool, chain, 1, 5, 10)) {
      expect(entry.link).toBe(linkOf(chain, entry.seq, entry.prev, entry.claim));
      expect(entry.claim).toBe(canonicalJson(JSON.parse(entry.claim)));
      expect(JSON.parse(entry.claim)).toMatchObject({ type: 'capstan.audit/1', payload: { n: entry.seq - 1 } });
    }
  });

  it('a receipt names chain, number and link of its entry', async () => {
    const chain = await newChain();
    const receipts = await append([chain, { action: 'a' }], [chain, { action: 'b' }]);
    const entries = await readWindow(pool, chain, 1, 2, 10);
    expect(receipts).toEqual(entries.map((entry) => `${chain}:${entry.seq}:${entry.link}`));
    expect(await readHead(pool, chain)).toEqual({ seq: 2, link: entries[1]?.link, lastSeq: 2 });
  });

  it('S4-10 S4-56 F136 sixteen writers over three chains at once make three unbroken chains', async () => {
    const chains = [await newChain(), await newChain(), await newChain()];
    const writer = async (w: number) => {
      for (let i = 0; i < 15; i += 1) {
        const named = [chains[(w + i) % 3], chains[(w + 2 * i) % 3], chains[w % 3]];
        await append(...named.map((chain) => [chain ?? '', { action: 'test.raced', w, i }] as const));
      }
    };
    await Promise.all(Array.from({ length: 16 }, (_, w) => writer(w)));
    const verified = await Promise.all(chains.map(verify));
    for (const { ok, entries, head } of verified) {
      expect(ok).toBe(true);
      expect(entries).toBe(head.seq);
    }
    expect(verified.reduce((sum, { entries }) => sum + entries, 0)).toBe(16 * 15 * 3);
  });

  it('S4-56 a second entry of the same number is refused even without the lock', async () => {
    const chain = await chainOf(2);
    await expect(
      sql.query(
        `insert into audit_entries select chain_id, seq, 'forked', prev, link, at, action from audit_entries where chain_id = $1 and seq = 2`,
        [chain],
      ),
    ).rejects.toMatchObject({ code: '23505' });
  });

  it('a chain that there is not refuses the entry, and with it the change', async () => {
    await expect(append(['in_nowhere', { action: 'lost' }])).rejects.toThrow('no chain');
    const chain = await newChain();
    await expect(append([chain, { action: 'kept' }], ['in_nowhere', { action: 'lost' }])).rejects.toThrow('no chain');
    expect(await readHead(pool, chain)).toEqual({ seq: 0, link: '', lastSeq: 0 });
  });

  it('a lock that somebody holds for too long refuses the entry, and with it the change', async () => {
    const chain = await newChain();
    const holder = await db.session();
    await holder.query(`select pg_advisory_lock(1129337940, lock_key) from audit_heads where chain_id = $1`, [chain]);
    await expect(append([chain, { action: 'late' }])).rejects.toMatchObject({ code: '55P03' });
    await holder.query('select pg_advisory_unlock_all()');
    expect(await append([chain, { action: 'now' }])).toHaveLength(1);
  });
});

describe('the time of an entry', () => {
  it('F137 never goes back, though the clock of the database does', async () => {
    const chain = await chainOf(1);
    const before = await sql.query('select at from audit_heads where chain_id = $1', [chain]);
    await sql.query(
      `create or replace function db_clock() returns timestamptz language sql volatile as $$select clock_timestamp() - interval '1 day'$$`,
    );
    try {
      await append([chain, { action: 'test.earlier' }]);
    } finally {
      await sql.query(
        `create or replace function db_clock() returns timestamptz language sql volatile as 'select clock_timestamp()'`,
      );
    }
    const { rows } = await sql.query('select at, claim from audit_entries where chain_id = $1 and seq = 2', [chain]);
    expect(rows[0].at).toEqual(before.rows[0].at);
    expect(JSON.parse(rows[0].claim).at).toBe(before.rows[0].at.toISOString());
    expect((await verify(chain)).ok).toBe(true);
  });

  it('F137 is written in UTC with milliseconds whatever time zone and date style a session has', async () => {
    const chain = await newChain();
    const session = await db.session();
    await session.query(`set timezone = 'Asia/Kolkata'`);
    await session.query(`set datestyle = 'SQL, DMY'`);
    await session.query(`select * from audit_append(array[$1], array['{"action":"zone"}'::jsonb], array[null::uuid])`, [
      chain,
    ]);
    const [entry] = await readWindow(pool, chain, 1, 1, 1);
    const at = JSON.parse(entry?.claim ?? '{}').at as string;
    expect(at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(Math.abs(Date.parse(at) - Date.now())).toBeLessThan(60_000);
    expect((await verify(chain)).ok).toBe(true);
  });
});

describe('the canonical text', () => {
  const canonical = async (payload: Record<string, unknown>) => {
    const rows = await pool.run<{ text: string }[]>(
      (tx) => tx`select canonical_flat(${tx.json(payload as never)}::jsonb) as text`,
    );
    return rows[0]?.text;
  };

  it.each([
    { a: 'quote " backslash \\ slash / tab \t line \n return \r back \b feed \f' },
    { b: 'controls \u0001\u001f delete \u007f', a: '\u2028\u2029', c: '😀 é e\u0301 \ufb33 <>&' },
    { n: -5, zero: 0, big: 9007199254740991, yes: true, no: false, none: null, '': 'empty key' },
    { Z: 1, a: 2, _: 3, A: 4, z: 5, '-': 6, '0': 7, 'a.b': 8 },
    {},
  ])('F137 F081 SQL writes what RFC 8785 says: %j', async (payload) => {
    expect(await canonical(payload)).toBe(canonicalJson(payload));
  });

  it('F137 for any strings and integers under ASCII names', { timeout: 60_000 }, async () => {
    const text = fc.string({ unit: 'grapheme' }).filter((t) => !t.includes('\0') && t.isWellFormed());
    const awkward = fc
      .array(fc.constantFrom('"', '\\', '\n', '\u0007', '\u001b', '\u2028', '😀', '\u007f', 'é', '\uffff'))
      .map((a) => a.join(''));
    const key = fc.string({ unit: 'grapheme-ascii' }).filter((k) => k !== '__proto__');
    const value = fc.oneof(text, awkward, fc.maxSafeInteger(), fc.boolean(), fc.constant(null));
    await fc.assert(
      fc.asyncProperty(fc.dictionary(key, value, { maxKeys: 8 }), async (payload) => {
        const plain = { ...payload };
        expect(await canonical(plain)).toBe(canonicalJson(plain));
      }),
      { numRuns: 300 },
    );
  });
});

describe('tampering is found by verification', () => {
  /** What somebody with all rights over the database can do: the triggers are switched off first. */
  async function tamper(text: string, values: unknown[]): Promise<void> {
    const { rowCount } = await sql.query('select set_config($1, $2, false)', ['session_replication_role', 'replica']);
    expect(rowCount).toBe(1);
    const changed = await sql.query(text, values);
    await sql.query(`set session_replication_role = 'origin'`);
    expect(changed.rowCount).toBeGreaterThan(0);
  }

  it.each([
    [
      'a claim that was rewritten',
      `update audit_entries set claim = replace(claim, '"n":2', '"n":9') where chain_id = $1 and seq = 3`,
      3,
      'link',
    ],
    [
      'a claim that lost a character',
      `update audit_entries set claim = left(claim, -1) where chain_id = $1 and seq = 5`,
      5,
      'link',
    ],
    ['another previous link', `update audit_entries set prev = sha256('x') where chain_id = $1 and seq = 3`, 3, 'prev'],
    ['another link', `update audit_entries set link = sha256('x') where chain_id = $1 and seq = 3`, 3, 'link'],
    ['an entry taken out', `delete from audit_entries where chain_id = $1 and seq = 3`, 3, 'gap'],
    ['the first entry taken out', `delete from audit_entries where chain_id = $1 and seq = 1`, 1, 'gap'],
    ['the last entry taken out', `delete from audit_entries where chain_id = $1 and seq = 6`, 6, 'gap'],
    ['all entries taken out', `delete from audit_entries where chain_id = $1`, 1, 'gap'],
    [
      'two entries that changed places',
      `update audit_entries set seq = case seq when 2 then 1002 when 3 then 2 end where chain_id = $1 and seq in (2, 3)`,
      2,
      'prev',
    ],
    ['another head', `update audit_heads set link = sha256('x') where chain_id = $1`, 6, 'head'],
    ['a head that goes further', `update audit_heads set seq = seq + 1 where chain_id = $1`, 7, 'gap'],
  ])('S4-102 S4-103 %s', async (_, text, brokenAt, check) => {
    const chain = await chainOf(6);
    expect(await verify(chain)).toMatchObject({ ok: true, entries: 6 });
    await tamper(text, [chain]);
    expect(await verify(chain)).toMatchObject({
      ok: false,
      brokenAt,
      check,
      entries: brokenAt - (check === 'head' ? 0 : 1),
    });
  });

  it('S4-102 a head that was moved back is found by anybody, and appending goes on behind what is there', async () => {
    const chain = await chainOf(6);
    const rewind = `update audit_heads set seq = 3, link = (select link from audit_entries where chain_id = $1 and seq = 3) where chain_id = $1`;
    await tamper(rewind, [chain]);
    expect(await verify(chain)).toMatchObject({ ok: false, brokenAt: 4, check: 'behind' });
    const [receipt] = await append([chain, { action: 'test.made', n: 6 }]);
    expect(receipt).toMatch(new RegExp(`^${chain}:7:`));
    expect(await verify(chain)).toMatchObject({ ok: true, entries: 7 });
  });

  it('S4-102 an entry and head cut off together are found by whoever saw the longer chain', async () => {
    const chain = await chainOf(4);
    const audit = new AuditService(pool);
    expect(await audit.verify(chain)).toMatchObject({ ok: true });
    await tamper(`delete from audit_entries where chain_id = $1 and seq = 4`, [chain]);
    await tamper(
      `update audit_heads set seq = 3, link = (select link from audit_entries where chain_id = $1 and seq = 3) where chain_id = $1`,
      [chain],
    );
    expect(await audit.verify(chain)).toMatchObject({ ok: false, brokenAt: 4, check: 'behind' });
    expect(await verify(chain)).toMatchObject({ ok: true, entries: 3 });
  });

  it('a chain that grows while it is verified is not behind: who asks meanwhile shares one later verification', async () => {
    const chain = await chainOf(3);
    const own = db.pool(2);
    const audit = new AuditService(own);
    const statements = vi.spyOn(own, 'run');
    let letGo: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    let sent = 0;
    statements.mockImplementation(async (statement) => {
      sent += 1;
      if (sent === 2) await gate; // the window of the first verification
      return Pool.prototype.run.call(own, statement) as never;
    });
    const first = audit.verify(chain);
    await vi.waitFor(() => expect(sent).toBe(2));
    await append([chain, { action: 'test.grown' }]);
    const later = [audit.verify(chain), audit.verify(chain), audit.verify(chain)];
    // Time enough for a verification beside the first to end before it.
    for (let i = 0; i < 20; i += 1) await readHead(pool, chain);
    letGo();
    expect(await first).toMatchObject({ ok: true, entries: 3 });
    for (const answer of await Promise.all(later)) expect(answer).toMatchObject({ ok: true, entries: 4 });
    expect(sent, 'a head and a window for the first, and for all others together').toBe(4);
    expect(await audit.verify(chain)).toMatchObject({ ok: true, entries: 4 });
  });

  it('a broken chain is told from a chain that there is not', async () => {
    await expect(verify('in_nowhere')).rejects.toMatchObject({ code: 'not_found' });
  });

  it('appending to a broken chain goes on, and the break stays where it was', async () => {
    const chain = await chainOf(3);
    await tamper(`update audit_entries set claim = claim || ' ' where chain_id = $1 and seq = 2`, [chain]);
    await append([chain, { action: 'test.more' }]);
    expect(await verify(chain)).toMatchObject({ ok: false, brokenAt: 2, check: 'link', head: { seq: 4 } });
  });
});

it('S4-102 a chain longer than a window is verified whole, and a break behind the window is found', {
  timeout: 60_000,
}, async () => {
  const chain = await newChain();
  for (let i = 0; i < 9; i += 1) {
    await append(...Array.from({ length: 250 }, (_, n) => [chain, { action: 'test.many', n }] as const));
  }
  expect(await verify(chain)).toMatchObject({ ok: true, entries: 2_250 });
  await sql.query(`set session_replication_role = 'replica'`);
  await sql.query(`update audit_entries set claim = claim || ' ' where chain_id = $1 and seq = 2_100`, [chain]);
  await sql.query(`set session_replication_role = 'origin'`);
  expect(await verify(chain)).toMatchObject({ ok: false, brokenAt: 2_100, check: 'link' });
});
