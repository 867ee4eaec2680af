/** With no time left the doctor looks at the newest, says what it left out, and finds what is wrong when it has time. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WINDOW_ENTRIES } from '../../src/audit/windows.js';
import { Budget } from '../../src/doctor/budget.js';
import { chainsCheck } from '../../src/doctor/chains.js';
import { WINDOW } from '../../src/doctor/invariants.js';
import { lawsCheck } from '../../src/doctor/laws-check.js';
import { encodeId } from '../../src/kernel/ids.js';
import type { Pool } from '../../src/platform/db/db.js';
import { Runs } from './runs.fixture.js';

let runs: Runs;
let nowMs = 0;

const TIMES = { keysUntilMs: 1_000, untilMs: 2_000 };
const NOBODY = expect.stringMatching(/^nobody is known to have been connected .* \(ended_life, lease_over, due, /);
const silent = () => undefined;
/** As long as everything; all of which has gone by; which lasts for so many looks. */
const endless = () => new Budget({ monotonicMs: () => nowMs }, true);
const spent = () => {
  const budget = new Budget({ monotonicMs: () => nowMs }, false);
  nowMs += 60_000;
  return budget;
};

beforeAll(async () => {
  runs = await Runs.open();
  await runs.unprotect();
});
afterAll(() => runs.ground.close());

describe('the laws', () => {
  it('are held against the newest runs first, and what is left out is said', async () => {
    const { ground } = runs;
    const oldest = await runs.make('pending');
    for (let made = 0; made < 2 * WINDOW; made += 250) {
      await ground.submit(...Array.from({ length: 250 }, (_, i) => ({ key: `key ${made + i}` })));
    }
    await ground.sql.query('update live_runs set priority = 7 where run_id = $1', [oldest]);
    await ground.sql.query('analyze runs');
    const short = await lawsCheck(ground.pool, spent(), TIMES, silent);
    expect(short).toMatchObject({ faults: [], summary: expect.stringContaining(`runs checked: ${WINDOW}`) });
    expect(short.notes).toEqual([
      NOBODY,
      `checked the newest ${WINDOW} of about ${2 * WINDOW + 1} runs; \`--all\` checks the rest, as the replicas do all the time`,
      `checked ${WINDOW} idempotency keys, and not the others`,
    ]);
    const lines: string[] = [];
    const whole = await lawsCheck(ground.pool, endless(), TIMES, (line) => void lines.push(line));
    expect(whole.faults.map(({ object }) => object)).toEqual([encodeId('run', oldest)]);
    expect(whole.notes).toEqual([NOBODY]);
    expect(lines.at(-1)).toBe(`laws: checked ${2 * WINDOW + 1} of about ${2 * WINDOW + 1} runs`);
  });
});

describe('a look at the laws that takes too long', () => {
  /** The ground's pool, on which what this is true of takes too long. */
  const slowAt = (isSlow: (row: Record<string, unknown>) => boolean): Pool =>
    Object.assign(Object.create(runs.ground.pool) as Pool, {
      run: async (statement: never) => {
        const rows: Record<string, unknown>[] = await runs.ground.pool.run(statement);
        if (rows[0] && isSlow(rows[0])) throw Object.assign(new Error('statement timeout'), { code: '57014' });
        return rows;
      },
    });

  it('is told for each object that alone does so, and keeps what was found before and behind it', async () => {
    const { sql } = runs.ground;
    const made = [await runs.make('pending'), await runs.make('pending'), await runs.make('pending')];
    const [before = '', slow = '', behind = ''] = made;
    await sql.query('update live_runs set priority = 7 where run_id = any($1)', [[before, behind]]);
    const ids = (await sql.query('select id from runs order by id desc')).rows.map(({ id }) => id as string);
    const meets = ({ looked, last }: Record<string, unknown>) => {
      const end = ids.indexOf(String(last));
      return end >= ids.indexOf(slow) && end - Number(looked) < ids.indexOf(slow);
    };
    const check = await lawsCheck(slowAt(meets), endless(), TIMES, silent);
    const found = check.faults.map(({ object }) => object);
    expect(found).toEqual(expect.arrayContaining([before, behind].map((id) => encodeId('run', id))));
    expect(check.notes).toEqual([
      NOBODY,
      `${encodeId('run', slow)} was not looked at: a statement about it alone takes too long`,
    ]);
    expect(check.summary).toContain(`runs checked: ${ids.length - 1}`);
  });

  it('at what waits is told, and the rest is looked at', async () => {
    const waits = ({ isAnybodyAble }: Record<string, unknown>) => isAnybodyAble !== undefined;
    const check = await lawsCheck(slowAt(waits), endless(), TIMES, silent);
    expect(check.faults.length).toBeGreaterThan(0);
    expect(check.notes).toEqual([expect.stringMatching(/^not looked at, since a statement took too long: .*due/)]);
  });
});

describe('the chains', () => {
  /** Entries in the organization's chain, by the product's own function. */
  async function append(entries: number): Promise<void> {
    const { sql, chain } = runs.ground;
    for (let left = entries; left > 0; left -= 500) {
      await sql.query(
        `select count(*) from audit_append(array_fill($1::text, array[500]),
           array_fill('{"action":"test.made","object":"x"}'::jsonb, array[500]), array_fill(null::uuid, array[500]))`,
        [chain],
      );
    }
  }

  it('have timestamps that are opened as far as time goes, and what is left out is said', async () => {
    const { sql, pool, installation } = runs.ground;
    await sql.query(
      `insert into audit_anchors (chain_id, seq, link, at, ref, token)
       select chain_id, seq, link, '2026-03-02T09:00:00Z', 'https://tsa.example/', 'x' from audit_entries
       where chain_id = $1 and seq = 1`,
      [installation],
    );
    const none = await chainsCheck(pool, spent(), 1_000, silent);
    expect(none.faults).toEqual([]);
    expect(none.notes).toContain('opened 0 of 1 outside timestamps; `--all` opens the rest');
    await sql.query('delete from audit_anchors');
  });

  it('are verified from the newest entry back, across windows, and what is left out is said', async () => {
    const { ground } = runs;
    await append(WINDOW_ENTRIES + 500);
    const { rows } = await ground.sql.query('select seq from audit_heads where chain_id = $1', [ground.chain]);
    const head = Number(rows[0].seq);
    const whole = await chainsCheck(ground.pool, endless(), 1_000, silent);
    expect(whole).toMatchObject({ faults: [], notes: [] });
    expect(whole.summary).toContain('chains: 2,');
    const none = await chainsCheck(ground.pool, spent(), 1_000, silent);
    expect(none.notes).toEqual([expect.stringMatching(/^verified the newest 0 of \d+ entries; `--all`/)]);

    const first = head - WINDOW_ENTRIES;
    await ground.sql.query(`update audit_entries set claim = claim || ' ' where chain_id = $1 and seq = $2`, [
      ground.chain,
      first,
    ]);
    const broken = await chainsCheck(ground.pool, endless(), 1_000, silent);
    expect(broken.faults).toEqual([
      expect.objectContaining({ object: ground.chain, what: expect.stringContaining(`broken at entry ${first} `) }),
    ]);
  });

  it('that lost their head, or are gone, are faults at first sight', async () => {
    const { ground } = runs;
    await ground.sql.query('update audit_heads set seq = seq - 1 where chain_id = $1', [ground.chain]);
    const back = await chainsCheck(ground.pool, spent(), 1_000, silent);
    expect(back.faults.map(({ object }) => object)).toEqual([ground.chain]);
    await ground.sql.query('delete from audit_heads where chain_id = $1', [ground.chain]);
    const gone = await chainsCheck(ground.pool, spent(), 1_000, silent);
    expect(gone.faults).toEqual([
      expect.objectContaining({ object: ground.chain, what: `the audit chain ${ground.chain} is gone` }),
    ]);
    await ground.sql.query('delete from audit_heads where chain_id = $1', [ground.installation]);
    await ground.sql.query('delete from audit_entries where chain_id = $1', [ground.installation]);
    const both = await chainsCheck(ground.pool, spent(), 1_000, silent);
    expect(both.faults.map(({ object }) => object).sort()).toEqual([ground.installation, ground.chain].sort());
  });
});
