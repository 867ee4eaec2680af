/** The list of entries against the plainest way to say the same, and receipts; on a real PostgreSQL. */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { AuditService } from '../../src/audit/audit.service.js';
import { seqAt } from '../../src/audit/audit.sql.js';
import { rangeOfRun } from '../../src/audit/bundle.sql.js';
import { EntriesService, type EntrySearch } from '../../src/audit/entries.service.js';
import type { EntryFilter } from '../../src/audit/entries.sql.js';
import { entryOf } from '../../src/audit/entry.js';
import { encodeId } from '../../src/kernel/ids.js';
import type { RequestCaller } from '../../src/platform/http/caller.js';
import { Chains } from './chain.fixture.js';
import { readChain } from './recompute.fixture.js';

let chains: Chains;
beforeAll(async () => {
  chains = await Chains.open();
});
afterAll(() => chains.close());

const service = (bounds?: { entries: number; ms: number }) =>
  new EntriesService(chains.pool, new AuditService(chains.pool), bounds);
const everything: EntrySearch = { filter: {}, after: undefined, before: undefined, below: undefined, limit: 200 };

/** All pages, and how many they were. */
async function walk(chain: string, search: Partial<EntrySearch>, entries = service()) {
  const seqs: number[] = [];
  let pages = 0;
  let below: number | undefined;
  do {
    const page = await entries.list(chain, { ...everything, ...search, below });
    expect(page.entries.length).toBeLessThanOrEqual(search.limit ?? 200);
    if (below !== undefined && page.below !== undefined) expect(page.below).toBeLessThan(below);
    seqs.push(...page.entries.map(({ seq }) => seq));
    below = page.below;
    pages += 1;
  } while (below !== undefined);
  return { seqs, pages };
}

describe('the list of entries', () => {
  const RUNS = [randomUUID(), randomUUID()] as const;
  const run = (n: number) => encodeId('run', RUNS[n % 2] ?? '');
  const ACTIONS = ['run.submitted', 'run.ended', 'token.created'] as const;
  const PRINCIPALS = ['tok_a', 'system', 'tok_"quoted"', 'tok_\\', 'é😀', '"principal":"tok_a"'] as const;
  const OBJECTS = ['org_a', 'sha256:ab', 'tok_a', 'object', 'é'] as const;
  const START = Date.parse('2030-01-01T00:00:00.000Z');
  let chain: string;

  beforeAll(async () => {
    chain = await chains.newChain();
    // An instant for each entry; several share one now and then.
    for (let n = 0; n < 120; n += 1) {
      await chains.sql.query(
        `create or replace function db_clock() returns timestamptz language sql volatile
         as $$select timestamptz '2030-01-01T00:00:00Z' + interval '1 second' * ${Math.floor(n / 3)}$$`,
      );
      const action = ACTIONS[n % 3];
      const principal = PRINCIPALS[(n * 5) % 6];
      const isRun = n % 4 !== 0;
      const object = isRun ? run(n) : n % 16 === 4 ? run(0) : OBJECTS[(n / 4) % 5];
      const payload = {
        action,
        principal,
        principalName: '"action":"run.ended"',
        object,
        note: `"object":"${run(1)}"`,
      };
      await chains.append(isRun ? [chain, payload, RUNS[n % 2] ?? ''] : [chain, payload]);
    }
    await chains.append([await chains.newChain(), { action: 'run.ended', principal: 'tok_a', object: 'org_a' }]);
  });
  afterAll(async () => {
    await chains.sql.query(
      `create or replace function db_clock() returns timestamptz language sql volatile as 'select clock_timestamp()'`,
    );
  });

  /** The plainest way to say what a search finds. */
  async function oracle({
    filter,
    after,
    before,
  }: Pick<EntrySearch, 'filter' | 'after' | 'before'>): Promise<number[]> {
    const { rows } = await chains.sql.query(
      'select seq::integer, claim, run_id from audit_entries where chain_id = $1 order by seq desc',
      [chain],
    );
    return rows
      .filter(({ claim, run_id }) => {
        const { at, payload } = JSON.parse(claim);
        return (
          (filter.action === undefined || payload.action === filter.action) &&
          (filter.principal === undefined || payload.principal === filter.principal) &&
          (filter.object === undefined || payload.object === filter.object) &&
          (filter.runId === undefined || run_id === filter.runId) &&
          (after === undefined || Date.parse(at) > after.getTime()) &&
          (before === undefined || Date.parse(at) < before.getTime())
        );
      })
      .map(({ seq }) => seq);
  }

  it('shows each entry once, newest first, on pages of any size', async () => {
    for (const limit of [1, 7, 119, 120, 121]) {
      const { seqs, pages } = await walk(chain, { limit });
      expect(seqs).toEqual(Array.from({ length: 120 }, (_, i) => 120 - i));
      expect(pages).toBe(Math.ceil(120 / limit));
    }
  });

  it('finds what the plainest search finds, whatever is asked for', { timeout: 120_000 }, async () => {
    const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });
    const instant = fc.integer({ min: -2, max: 42 }).map((s) => new Date(START + s * 1_000));
    const filter: fc.Arbitrary<EntryFilter> = fc
      .record({
        action: maybe(fc.constantFrom<string[]>(...ACTIONS, 'none.such')),
        principal: maybe(fc.constantFrom<string[]>(...PRINCIPALS, 'nobody')),
        object: maybe(fc.constantFrom<string[]>(...OBJECTS, run(0), run(1), encodeId('run', randomUUID()))),
        runId: maybe(fc.constantFrom<string[]>(...RUNS, randomUUID())),
      })
      .map((asked) => ({
        ...asked,
        objectRunId: RUNS.find((id) => encodeId('run', id) === asked.object),
      }));
    const search = fc.record({
      filter,
      after: maybe(instant),
      before: maybe(instant),
      limit: fc.integer({ min: 1, max: 60 }),
    });
    const scan = fc.integer({ min: 1, max: 150 });
    await fc.assert(
      fc.asyncProperty(search, scan, async (asked, entries) => {
        const { seqs } = await walk(chain, asked, service({ entries, ms: 1_000 }));
        expect(seqs).toEqual(await oracle(asked));
      }),
      { numRuns: 250 },
    );
  });

  it('looks at a bounded part of a chain in one statement, and leads on when its time is over', async () => {
    const own = chains.db.pool(1);
    const entries = new EntriesService(own, new AuditService(own), { entries: 10, ms: 0 });
    const statements = vi.spyOn(own, 'run');
    const page = await entries.list(chain, { ...everything, filter: { principal: 'nobody' } });
    expect(page).toEqual({ entries: [], below: 111 });
    expect(statements, 'how far, and one look').toHaveBeenCalledTimes(2);
    const { seqs, pages } = await walk(chain, { filter: { principal: 'nobody' } }, entries);
    expect({ seqs, pages }).toEqual({ seqs: [], pages: 12 });
    // What an index finds needs no such bound, nor does what every entry meets.
    statements.mockClear();
    expect(await entries.list(chain, { ...everything, filter: { object: 'none' } })).toEqual({
      entries: [],
      below: undefined,
    });
    expect((await entries.list(chain, { ...everything, limit: 50 })).entries).toHaveLength(50);
    expect(statements).toHaveBeenCalledTimes(2);
  });

  it('what is asked for by run or object is found by an index, in a chain of any length', async () => {
    const long = await chains.newChain();
    await chains.appendMany(long, 20_000);
    const about = randomUUID();
    const object = encodeId('run', about);
    await chains.append([long, { action: 'token.created', object: 'tok_needle' }]);
    await chains.append([long, { action: 'run.ended', object }, about], [long, { action: 'access.refused', object }]);
    await chains.sql.query('analyze audit_entries');
    const own = chains.db.pool(1);
    const entries = new EntriesService(own, new AuditService(own));
    const scans = async () => {
      await own.run((tx) => tx`select pg_stat_force_next_flush()`);
      const { rows } = await chains.sql.query(
        `select indexrelname as name, idx_scan::integer as n from pg_stat_user_indexes
         where indexrelname in ('audit_entries_object', 'audit_entries_run') order by indexrelname`,
      );
      return rows.map(({ n }) => n);
    };
    const before = await scans();
    expect((await walk(long, { filter: { object: 'tok_needle' } }, entries)).seqs).toEqual([20_001]);
    const after = await scans();
    expect(after[0]).toBeGreaterThan(before[0]);
    expect((await walk(long, { filter: { object, objectRunId: about } }, entries)).seqs).toEqual([20_003, 20_002]);
    expect((await walk(long, { filter: { runId: about } }, entries)).seqs).toEqual([20_002]);
    expect((await scans())[0]).toBeGreaterThan(after[0]);
    expect((await scans())[1]).toBeGreaterThanOrEqual(after[1] + 2);
  });

  it('F137 instants lead to numbers by halving, also where entries are missing', { timeout: 60_000 }, async () => {
    const gapped = await chains.newChain();
    await chains.appendMany(gapped, 100);
    await chains.tamper(
      `update audit_entries set at = timestamptz '2030-01-01T00:00:00Z' + interval '1 second' * (seq / 2) where chain_id = $1`,
      gapped,
    );
    const check = async () => {
      const { rows } = await chains.sql.query(
        'select seq::integer, at from audit_entries where chain_id = $1 order by seq',
        [gapped],
      );
      const last = rows.at(-1)?.seq ?? 0;
      for (let ms = START - 500; ms <= START + 52_000; ms += 500) {
        const first = rows.find(({ at }) => at.getTime() >= ms)?.seq ?? last + 1;
        expect(await seqAt(chains.pool, gapped, new Date(ms)), `at ${ms - START}`).toBe(first);
      }
    };
    await check();
    await chains.tamper(
      'delete from audit_entries where chain_id = $1 and (seq between 20 and 70 or seq in (1, 9, 99))',
      gapped,
    );
    await check();
    const empty = await chains.newChain();
    expect(await seqAt(chains.pool, empty, new Date())).toBe(1);
  });

  it.each([
    ['as far as a number goes', '9223372036854775807', [2, 1]],
    ['beyond what a number is read into', '9007199254740993', [2, 1]],
    ['far away', '900000000000000', [900_000_000_000_000, 2, 1]],
  ])('S4-102 an entry that was moved %s holds nobody up', async (_, seq, shown) => {
    const moved = await chains.chainOf(3);
    await chains.tamper('update audit_entries set seq = $2 where chain_id = $1 and seq = 3', moved, seq);
    const own = chains.db.pool(1);
    const statements = vi.spyOn(own, 'run');
    const entries = new EntriesService(own, new AuditService(own), { entries: 1, ms: 60_000 });
    expect(await walk(moved, {}, entries)).toEqual({ seqs: shown, pages: 1 });
    expect(await walk(moved, { limit: 1 }, entries)).toMatchObject({ seqs: shown });
    expect(await walk(moved, { after: new Date(0), before: new Date('2100-01-01') }, entries)).toMatchObject({
      seqs: shown,
    });
    statements.mockClear();
    expect(await walk(moved, { filter: { principal: 'nobody' } }, entries)).toEqual({ seqs: [], pages: 1 });
    expect(statements.mock.calls.length, 'two for each entry').toBeLessThanOrEqual(2 * 4);
    expect(await new AuditService(own).verify(moved)).toMatchObject({ ok: false, brokenAt: 3 });
  });

  it('S4-102 an entry that was put among those of a run is none of them', async () => {
    const [mixed, about] = [await chains.newChain(), randomUUID()];
    const object = encodeId('run', about);
    const other = randomUUID();
    await chains.append(
      [mixed, { action: 'run.submitted', object }, about],
      [mixed, { action: 'run.ended', object: encodeId('run', other) }, other],
      [mixed, { action: 'run.ended', object }, about],
    );
    const whole = { from: 1, to: 3 };
    expect(await rangeOfRun(chains.pool, mixed, about, whole)).toEqual({ ...whole, isBegun: true });
    await chains.tamper('update audit_entries set run_id = $2 where chain_id = $1', mixed, about);
    const { entries } = await service().list(mixed, { ...everything, filter: { runId: about } });
    expect(entries.map(entryOf).map(({ seq, run }) => [seq, run])).toEqual([
      [3, object],
      [1, object],
    ]);
    // What is signed goes by the text alone: neither what is put to a run nor what is taken from it changes that.
    await chains.tamper('update audit_entries set run_id = null where chain_id = $1', mixed);
    expect(await rangeOfRun(chains.pool, mixed, about, whole)).toEqual({ ...whole, isBegun: true });
    expect(await rangeOfRun(chains.pool, mixed, about, { from: 2, to: 3 })).toEqual({ from: 3, to: 3, isBegun: false });
    expect(await rangeOfRun(chains.pool, mixed, randomUUID(), whole)).toBeUndefined();
  });

  it('S4-102 shows an entry whose text is no JSON any more', async () => {
    const broken = await chains.chainOf(3);
    await chains.tamper(`update audit_entries set claim = '{"' where chain_id = $1 and seq = 2`, broken);
    const { entries } = await service().list(broken, everything);
    expect(entries.map(entryOf).map(({ seq, action }) => [seq, action])).toEqual([
      [3, 'test.made'],
      [2, null],
      [1, 'test.made'],
    ]);
  });
});

describe('a receipt', () => {
  const callerOf = (chain: string, isInstallationAdmin = false): RequestCaller => ({
    organizationId: randomUUID(),
    chain,
    principal: { type: 'token', id: 'tok_x', name: 'x' },
    isInstallationAdmin,
  });
  const ask = (chain: string, receipt: string) => service().receipt(callerOf(chain), receipt);

  beforeAll(() => chains.newChain('ins_test', 'installation'));

  it('S4x-02 holds while its very entry stands, and shows it', async () => {
    const chain = await chains.newChain();
    const [receipt = ''] = await chains.append([chain, { action: 'test.made', object: 'x' }]);
    await chains.append([chain, { action: 'test.more' }]);
    expect(await ask(chain, receipt)).toEqual({
      receipt,
      holds: true,
      entry: expect.objectContaining({ seq: 1, action: 'test.made', object: 'x', receipt }),
    });
  });

  it('S4-102 S4x-02 of a tail that was cut off is missing', async () => {
    const chain = await chains.chainOf(3);
    const [receipt = ''] = await chains.append([chain, { action: 'test.last' }]);
    await chains.cutBehind(chain, 3);
    expect(await ask(chain, receipt)).toEqual({ receipt, holds: false, reason: 'missing', entry: null });
    await chains.append([chain, { action: 'test.other' }]);
    expect(await ask(chain, receipt)).toMatchObject({ holds: false, reason: 'differs' });
  });

  it('S4x-02 beyond a head that was moved back is missing, though its entry is still there', async () => {
    const chain = await chains.chainOf(2);
    const [receipt = ''] = await chains.append([chain, { action: 'test.last' }]);
    await chains.tamper(
      `update audit_heads h set seq = 2, link = (select link from audit_entries where chain_id = $1 and seq = 2)
       where chain_id = $1`,
      chain,
    );
    expect(await ask(chain, receipt)).toMatchObject({ holds: false, reason: 'missing', entry: { seq: 3 } });
  });

  it('S4-102 of an entry whose content was rewritten is altered, and of another entry differs', async () => {
    const chain = await chains.newChain();
    const [receipt = ''] = await chains.append([chain, { action: 'test.made' }]);
    await chains.tamper(`update audit_entries set claim = replace(claim, 'made', 'mode') where chain_id = $1`, chain);
    expect(await ask(chain, receipt)).toMatchObject({
      holds: false,
      reason: 'altered',
      entry: { action: 'test.mode' },
    });
    const [other = ''] = await chains.append([chain, { action: 'test.made' }]);
    expect(await ask(chain, other.replace(/[0-9a-f]{64}$/, 'a'.repeat(64)))).toMatchObject({
      holds: false,
      reason: 'differs',
    });
  });

  it('of another organization is nobody else’s business, and what is none neither', async () => {
    const [ours, theirs] = [await chains.chainOf(1), await chains.chainOf(1)];
    const { head } = await readChain(chains.sql, theirs);
    await expect(ask(ours, `${theirs}:1:${head.link}`)).rejects.toMatchObject({ code: 'not_found' });
    await expect(ask(ours, `${ours}:1`)).rejects.toMatchObject({ code: 'not_found' });
    await expect(ask(ours, `in_nowhere:1:${head.link}`)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('of the installation holds for everybody, and shows its entry to an admin', async () => {
    const [receipt = ''] = await chains.append(['ins_test', { action: 'worker.joined' }]);
    const chain = await chains.newChain();
    expect(await service().receipt(callerOf(chain), receipt)).toEqual({ receipt, holds: true, entry: null });
    expect(await service().receipt(callerOf(chain, true), receipt)).toMatchObject({
      holds: true,
      entry: { action: 'worker.joined' },
    });
  });
});
