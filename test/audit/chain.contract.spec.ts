/** The chain on a real PostgreSQL: unbroken under contention; every tampering found; linked as the open format says. */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { AuditService } from '../../src/audit/audit.service.js';
import { LAST_SEQ } from '../../src/audit/chain.js';
import { entryAt } from '../../src/audit/entries.sql.js';
import { WINDOW_ENTRIES } from '../../src/audit/windows.js';
import { encodeId } from '../../src/kernel/ids.js';
import { canonicalJson } from '../../src/kernel/json.js';
import { Pool } from '../../src/platform/db/db.js';
import { problemOf } from '../../src/platform/http/problem-of.js';
import { Chains, FIRST, LINKS, SECOND } from './chain.fixture.js';
import { linkOf, readChain } from './recompute.fixture.js';

let chains: Chains;
beforeAll(async () => {
  chains = await Chains.open(16);
});
afterAll(() => chains.close());

async function headOf(chain: string): Promise<{ seq: number; link: string }> {
  return (await readChain(chains.sql, chain)).head;
}

const verify = (chain: string) => new AuditService(chains.pool).verify(chain);

describe('appending', () => {
  it('S4-102 what SQL linked is what the other side computes, entry by entry', async () => {
    const chain = await chains.chainOf(5);
    for (const entry of (await readChain(chains.sql, chain)).entries) {
      expect(entry.link).toBe(linkOf(chain, entry));
      expect(entry.claim).toBe(canonicalJson(JSON.parse(entry.claim)));
      expect(JSON.parse(entry.claim)).toMatchObject({ type: 'capstan.audit/1', payload: { n: entry.seq - 1 } });
    }
  });

  it('a receipt names chain, number and link of its entry', async () => {
    const chain = await chains.newChain();
    const receipts = await chains.append([chain, { action: 'a' }], [chain, { action: 'b' }]);
    const { entries } = await readChain(chains.sql, chain);
    expect(receipts).toEqual(entries.map((entry) => `${chain}:${entry.seq}:${entry.link}`));
    expect(await headOf(chain)).toEqual({ seq: 2, link: entries[1]?.link });
  });

  it('S4-10 S4-56 F136 sixteen writers over three chains at once make three unbroken chains', async () => {
    const three = [await chains.newChain(), await chains.newChain(), await chains.newChain()];
    const writer = async (w: number) => {
      for (let i = 0; i < 15; i += 1) {
        const named = [three[(w + i) % 3], three[(w + 2 * i) % 3], three[w % 3]];
        await chains.append(...named.map((chain) => [chain ?? '', { action: 'test.raced', w, i }] as const));
      }
    };
    await Promise.all(Array.from({ length: 16 }, (_, w) => writer(w)));
    const verified = await Promise.all(three.map(verify));
    for (const { ok, entries, head } of verified) {
      expect(ok).toBe(true);
      expect(entries).toBe(head.seq);
    }
    expect(verified.reduce((sum, { entries }) => sum + entries, 0)).toBe(16 * 15 * 3);
  });

  it('S4-56 a second entry of the same number is refused even without the lock', async () => {
    const chain = await chains.chainOf(2);
    await expect(
      chains.sql.query(
        `insert into audit_entries select chain_id, seq, 'forked', prev, link, at, action from audit_entries where chain_id = $1 and seq = 2`,
        [chain],
      ),
    ).rejects.toMatchObject({ code: '23505' });
  });

  it('a chain that there is not refuses the entry, and with it the change', async () => {
    await expect(chains.append(['in_nowhere', { action: 'lost' }])).rejects.toThrow('no chain');
    const chain = await chains.newChain();
    await expect(chains.append([chain, { action: 'kept' }], ['in_nowhere', { action: 'lost' }])).rejects.toThrow(
      'no chain',
    );
    expect(await headOf(chain)).toEqual({ seq: 0, link: '' });
  });

  it('a lock that somebody holds for too long refuses the entry, and with it the change', async () => {
    const chain = await chains.newChain();
    const holder = await chains.db.session();
    await holder.query(`select pg_advisory_lock(1129337940, lock_key) from audit_heads where chain_id = $1`, [chain]);
    await expect(chains.append([chain, { action: 'late' }])).rejects.toMatchObject({ code: '55P03' });
    await holder.query('select pg_advisory_unlock_all()');
    expect(await chains.append([chain, { action: 'now' }])).toHaveLength(1);
  });
});

it('S4-104 verifying goes by the links of the open format’s worked example, awkward characters included', async () => {
  await chains.sql.query(`insert into organizations (id, name) values ($1, 'demo')`, [randomUUID()]);
  await chains.sql.query(
    `insert into audit_heads (chain_id, organization_id, seq, link)
     select 'in_demo', id, 2, decode($1, 'hex') from organizations where name = 'demo'`,
    [LINKS[1]],
  );
  const insert = `insert into audit_entries (chain_id, seq, claim, prev, link, at, action)
                  values ('in_demo', $1, $2, decode($3, 'hex'), decode($4, 'hex'), now(), 'x')`;
  await chains.sql.query(insert, [1, FIRST, '', LINKS[0]]);
  await chains.sql.query(insert, [2, SECOND, LINKS[0], LINKS[1]]);
  for (const seq of [1, 2]) expect(await entryAt(chains.pool, 'in_demo', seq)).toMatchObject({ isWhole: true });
  const verdict = await verify('in_demo');
  expect(verdict, 'their links hold, the columns are nothing').toMatchObject({ brokenAt: 1, check: 'column' });
});

describe('appending to a chain that was tampered with', () => {
  const insert = (seq: string) =>
    `insert into audit_entries (chain_id, seq, claim, prev, link, at, action)
     select chain_id, ${seq}, claim, link, link, at, action from audit_entries where chain_id = $1 and seq = 3`;

  const headSeq = async (chain: string) =>
    Number((await chains.sql.query('select seq from audit_heads where chain_id = $1', [chain])).rows[0].seq);

  it.each([
    ['a head that went back', `update audit_heads set seq = 1, link = sha256('x') where chain_id = $1`, 4],
    ['a head without entries', `update audit_heads set seq = 0, link = '' where chain_id = $1`, 4],
    ['a head with another link', `update audit_heads set link = sha256('x') where chain_id = $1`, 4],
    ['a head that goes further', 'update audit_heads set seq = seq + 5 where chain_id = $1', 9],
    ['a head just behind all numbers', `update audit_heads set seq = ${LAST_SEQ + 1} where chain_id = $1`, 4],
    ['a head at the last of its type', `update audit_heads set seq = ${2n ** 63n - 1n} where chain_id = $1`, 4],
    ['an entry just behind all numbers', insert(String(LAST_SEQ + 1)), 4],
    ['an entry at the last of its type', insert(String(2n ** 63n - 1n)), 4],
    ['a last entry of no time', `update audit_entries set at = 'infinity' where chain_id = $1 and seq = 3`, 4],
    ['a last entry before all time', `update audit_entries set at = '-infinity' where chain_id = $1 and seq = 3`, 4],
    ['a year of five digits', `update audit_entries set at = '20000-01-01' where chain_id = $1 and seq = 3`, 4],
    ['the last year', `update audit_entries set at = '9999-01-01T00:00:00Z' where chain_id = $1 and seq = 3`, 4],
    ['entries that are gone', 'delete from audit_entries where chain_id = $1', 4],
  ])('S4-102 goes on, with a time that verifiers read: %s', async (_, change, next) => {
    const chain = await chains.chainOf(3);
    await chains.tamper(change, chain);
    const receipts = [
      ...(await chains.append([chain, { action: 'test.one' }])),
      ...(await chains.append([chain, { action: 'test.two' }], [chain, { action: 'test.three' }])),
    ];
    const { rows } = await chains.sql.query<{ receipt: string; claim: string }>(
      `select chain_id || ':' || seq || ':' || encode(link, 'hex') as receipt, claim
       from audit_entries where chain_id = $1 and seq between $2 and $2 + 2 order by seq`,
      [chain, next],
    );
    expect(rows.map(({ receipt }) => receipt)).toEqual(receipts);
    for (const { claim } of rows) {
      expect(Math.abs(Date.parse(JSON.parse(claim).at) - Date.now())).toBeLessThan(60_000);
    }
    expect(await headSeq(chain)).toBe(next + 2);
  });

  it('S4-102 a time that was put ahead is carried on, and found where it was put', async () => {
    const chain = await chains.chainOf(3);
    await chains.tamper(`update audit_entries set at = '2099-01-01T00:00:00Z' where chain_id = $1 and seq = 3`, chain);
    await chains.append([chain, { action: 'test.later' }]);
    const { entries } = await readChain(chains.sql, chain);
    expect(JSON.parse(entries[3]?.claim ?? '').at).toBe('2099-01-01T00:00:00.000Z');
    expect(await verify(chain)).toMatchObject({ ok: false, brokenAt: 3, check: 'column' });
  });

  it('S4-102 where no number is left it is answered 503, and nothing changes', async () => {
    const chain = await chains.chainOf(3);
    await chains.tamper(insert(String(LAST_SEQ - 1)), chain);
    const two = chains.append([chain, { action: 'test.one' }], [chain, { action: 'test.two' }]);
    const error = await two.catch((caught: unknown) => caught);
    expect(problemOf(error).problem).toMatchObject({ code: 'unavailable', status: 503 });
    expect(await headSeq(chain)).toBe(3);
  });

  it('a head is never moved behind all numbers, from where it could come back anywhere', async () => {
    const chain = await chains.chainOf(1);
    const move = chains.sql.query('update audit_heads set seq = $2 where chain_id = $1', [chain, LAST_SEQ + 1]);
    await expect(move).rejects.toThrow('only moves forward');
  });
});

describe('the time of an entry', () => {
  it('F137 never goes back, though the clock of the database does', async () => {
    const chain = await chains.chainOf(1);
    const before = await chains.sql.query('select at from audit_entries where chain_id = $1', [chain]);
    await chains.sql.query(
      `create or replace function db_clock() returns timestamptz language sql volatile as $$select clock_timestamp() - interval '1 day'$$`,
    );
    try {
      await chains.append([chain, { action: 'test.earlier' }]);
    } finally {
      await chains.sql.query(
        `create or replace function db_clock() returns timestamptz language sql volatile as 'select clock_timestamp()'`,
      );
    }
    const { rows } = await chains.sql.query('select at, claim from audit_entries where chain_id = $1 and seq = 2', [
      chain,
    ]);
    expect(rows[0].at).toEqual(before.rows[0].at);
    expect(JSON.parse(rows[0].claim).at).toBe(before.rows[0].at.toISOString());
    expect((await verify(chain)).ok).toBe(true);
  });

  it('F137 is written in UTC with milliseconds whatever time zone and date style a session has', async () => {
    const chain = await chains.newChain();
    const session = await chains.db.session();
    await session.query(`set timezone = 'Asia/Kolkata'`);
    await session.query(`set datestyle = 'SQL, DMY'`);
    await session.query(`select * from audit_append(array[$1], array['{"action":"zone"}'::jsonb], array[null::uuid])`, [
      chain,
    ]);
    const [entry] = (await readChain(chains.sql, chain)).entries;
    const at = JSON.parse(entry?.claim ?? '{}').at as string;
    expect(at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(Math.abs(Date.parse(at) - Date.now())).toBeLessThan(60_000);
    expect((await verify(chain)).ok).toBe(true);
  });
});

describe('the canonical text', () => {
  const canonical = async (payload: Record<string, unknown>) => {
    const rows = await chains.pool.run<{ text: string }[]>(
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
    const chain = await chains.chainOf(6);
    expect(await verify(chain)).toMatchObject({ ok: true, entries: 6 });
    await chains.tamper(text, chain);
    expect(await verify(chain)).toMatchObject({
      ok: false,
      brokenAt,
      check,
      entries: brokenAt - (check === 'head' ? 0 : 1),
    });
  });

  it.each([
    ['another action', `action = 'audit.key_rotated'`],
    ['an action that goes on into what follows', `action = 'test.made","n":2},"type":"capstan.audit/1'`],
    ['an action that ends before', `action = 'test'`],
    ['no action', `action = ''`],
    ['a time a millisecond later', `at = at + interval '1 millisecond'`],
    ['a time without end', `at = 'infinity'`],
    [
      'the same time before our era',
      `at = (to_char(at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS') || ' BC')::timestamp at time zone 'UTC'`,
    ],
    ['a run that it is not about', 'run_id = gen_random_uuid()'],
  ])('S4-102 %s beside an entry', async (_, set) => {
    const chain = await chains.chainOf(6);
    await chains.tamper(`update audit_entries set ${set} where chain_id = $1 and seq = 3`, chain);
    expect(await verify(chain)).toMatchObject({ ok: false, brokenAt: 3, check: 'column', entries: 2 });
  });

  it('S4-102 a text that is longer than any of ours is found without hashing it, though its link be right', async () => {
    const chain = await chains.chainOf(6);
    await chains.tamper(
      `update audit_entries e set claim = c.claim, link = sha256(convert_to('{"claim":"sha256:'
         || encode(sha256(convert_to(c.claim, 'UTF8')), 'hex') || '","domain":"loomseal-chain-v1","install_id":"' || e.chain_id
         || '","prev":"' || encode(e.prev, 'hex') || '","seq":' || e.seq || '}', 'UTF8'))
       from (select replace(claim, '"n":5', '"n":5,"pad":"' || repeat('x', 17000000) || '"') as claim from audit_entries
             where chain_id = $1 and seq = 6) c
       where e.chain_id = $1 and e.seq = 6`,
      chain,
    );
    await chains.tamper(
      'update audit_heads set link = (select link from audit_entries where chain_id = $1 and seq = 6) where chain_id = $1',
      chain,
    );
    expect(await verify(chain)).toMatchObject({ ok: false, brokenAt: 6, check: 'link', entries: 5 });
  });

  it('S4-102 an entry about a run that is taken from it is found', async () => {
    const [chain, run] = [await chains.newChain(), randomUUID()];
    await chains.append([chain, { action: 'run.ended', object: encodeId('run', run) }, run]);
    expect(await verify(chain)).toMatchObject({ ok: true, entries: 1 });
    await chains.tamper('update audit_entries set run_id = null where chain_id = $1', chain);
    expect(await verify(chain)).toMatchObject({ ok: false, brokenAt: 1, check: 'column' });
  });

  it('columns are compared whatever time zone and date style a session has', async () => {
    const chain = await chains.chainOf(2);
    const alter = (what: string) =>
      chains.sql.query(`do $$begin execute format('alter database %I ${what}', current_database()); end$$`);
    await alter(`set timezone = ''Asia/Kolkata''`);
    await alter(`set datestyle = ''SQL, DMY''`);
    try {
      expect(await new AuditService(chains.db.pool(1)).verify(chain)).toMatchObject({ ok: true, entries: 2 });
    } finally {
      await alter('reset all');
    }
  });

  it('S4-102 a head that was moved back is found by anybody, and appending goes on behind what is there', async () => {
    const chain = await chains.chainOf(6);
    const rewind = `update audit_heads set seq = 3, link = (select link from audit_entries where chain_id = $1 and seq = 3) where chain_id = $1`;
    await chains.tamper(rewind, chain);
    expect(await verify(chain)).toMatchObject({ ok: false, brokenAt: 4, check: 'behind' });
    const [receipt] = await chains.append([chain, { action: 'test.made', n: 6 }]);
    expect(receipt).toMatch(new RegExp(`^${chain}:7:`));
    expect(await verify(chain)).toMatchObject({ ok: true, entries: 7 });
  });

  it('S4-102 an entry and head cut off together are found by whoever saw the longer chain', async () => {
    const chain = await chains.chainOf(4);
    const audit = new AuditService(chains.pool);
    expect(await audit.verify(chain)).toMatchObject({ ok: true });
    await chains.cutBehind(chain, 3);
    expect(await audit.verify(chain)).toMatchObject({ ok: false, brokenAt: 4, check: 'behind' });
    expect(await verify(chain)).toMatchObject({ ok: true, entries: 3 });
    await chains.append([chain, { action: 'test.made', n: 4 }], [chain, { action: 'test.made', n: 5 }]);
    const grown = 'the chain is as long again, and leads elsewhere';
    expect(await audit.verify(chain), grown).toMatchObject({ ok: false, brokenAt: 4, check: 'behind' });
  });

  it('a chain that grows while it is verified is not behind: who asks meanwhile shares one later verification', async () => {
    const chain = await chains.chainOf(3);
    const own = chains.db.pool(2);
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
    await chains.append([chain, { action: 'test.grown' }]);
    const later = [audit.verify(chain), audit.verify(chain), audit.verify(chain)];
    // Time enough for a verification beside the first to end before it.
    for (let i = 0; i < 20; i += 1) await headOf(chain);
    letGo();
    expect(await first).toMatchObject({ ok: true, entries: 3 });
    for (const answer of await Promise.all(later)) expect(answer).toMatchObject({ ok: true, entries: 4 });
    expect(sent, 'a head and a window for the first, and for all others together').toBe(4);
    expect(await audit.verify(chain)).toMatchObject({ ok: true, entries: 4 });
  });

  it('a broken chain is told from a chain that there is not', async () => {
    expect(await verify('in_nowhere')).toMatchObject({ ok: false, entries: 0, brokenAt: 1, check: 'behind' });
  });

  it('appending to a broken chain goes on, and the break stays where it was', async () => {
    const chain = await chains.chainOf(3);
    await chains.tamper(`update audit_entries set claim = claim || ' ' where chain_id = $1 and seq = 2`, chain);
    await chains.append([chain, { action: 'test.more' }]);
    expect(await verify(chain)).toMatchObject({ ok: false, brokenAt: 2, check: 'link', head: { seq: 4 } });
  });
});

it('S4-102 a chain longer than a window is verified whole, and a break behind the window is found', {
  timeout: 120_000,
}, async () => {
  const chain = await chains.newChain();
  await chains.appendMany(chain, WINDOW_ENTRIES + 1_000);
  const told: unknown[] = [];
  const onProgress = (progress: unknown) => told.push(progress);
  const of = WINDOW_ENTRIES + 1_000;
  expect(await new AuditService(chains.pool).verify(chain, {}, { onProgress })).toMatchObject({
    ok: true,
    entries: of,
  });
  expect(told).toEqual([
    { verified: WINDOW_ENTRIES, of },
    { verified: of, of },
  ]);
  const own = chains.db.pool(1);
  const statements = vi.spyOn(own, 'run');
  const gone = new AbortController();
  const asking = { signal: gone.signal, onProgress: () => gone.abort() };
  await expect(new AuditService(own).verify(chain, {}, asking)).rejects.toMatchObject({ name: 'AbortError' });
  expect(statements, 'nobody waits for the second window').toHaveBeenCalledTimes(2);
  for (const brokenAt of [WINDOW_ENTRIES + 100, WINDOW_ENTRIES + 1, WINDOW_ENTRIES]) {
    await chains.tamper(
      `update audit_entries set claim = claim || ' ' where chain_id = $1 and seq = $2`,
      chain,
      brokenAt,
    );
    expect(await verify(chain)).toMatchObject({ ok: false, brokenAt, check: 'link', entries: brokenAt - 1 });
  }
});
