/** With no time left the doctor looks at the newest, says what it left out, and finds what is wrong when it has time. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WINDOW_ENTRIES } from '../../src/audit/windows.js';
import { Budget } from '../../src/doctor/budget.js';
import { chainsCheck } from '../../src/doctor/chains.js';
import { WINDOW } from '../../src/doctor/invariants.js';
import { lawsCheck } from '../../src/doctor/laws-check.js';
import { encodeId } from '../../src/kernel/ids.js';
import { Runs } from './runs.fixture.js';

let runs: Runs;
let nowMs = 0;

const TIMES = { keysUntilMs: 1_000, untilMs: 2_000 };
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
      `checked the newest ${WINDOW} of about ${2 * WINDOW + 1} runs; \`--all\` checks the rest, as the replicas do all the time`,
      `checked ${WINDOW} idempotency keys, and not the others`,
    ]);
    const lines: string[] = [];
    const whole = await lawsCheck(ground.pool, endless(), TIMES, (line) => void lines.push(line));
    expect(whole.faults.map(({ object }) => object)).toEqual([encodeId('run', oldest)]);
    expect(whole.notes).toEqual([]);
    expect(lines.at(-1)).toBe(`laws: checked ${2 * WINDOW + 1} of about ${2 * WINDOW + 1} runs`);
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
    expect(gone.faults.map(({ object }) => object)).toEqual([ground.chain]);
  });
});
