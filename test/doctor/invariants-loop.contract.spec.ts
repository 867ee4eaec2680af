/** The loop that checks the laws for ever, stepped by hand on a real database. */
import { Registry } from 'prom-client';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { WINDOW } from '../../src/doctor/invariants.js';
import { InvariantsLoop } from '../../src/doctor/invariants.loop.js';
import { registerInvariantMetrics } from '../../src/doctor/invariants.metrics.js';
import { LAW_NAMES } from '../../src/doctor/laws.js';
import { encodeId } from '../../src/kernel/ids.js';
import type { Pool } from '../../src/platform/db/db.js';
import { Runs } from './runs.fixture.js';

let runs: Runs;
let loop: InvariantsLoop;
let nowMs = 0;
let statements = 0;
let told: Record<string, unknown>[] = [];

beforeAll(async () => {
  runs = await Runs.open();
  await runs.unprotect();
});
afterAll(() => runs.ground.close());

beforeEach(async () => {
  await runs.ground.sql.query(
    'truncate runs, live_runs, run_events, run_output, idempotency_keys, audit_entries, workers',
  );
  told = [];
  statements = 0;
  const { pool } = runs.ground;
  const counting: Pick<Pool, 'run'> = {
    run: (statement) => {
      statements += 1;
      return pool.run(statement);
    },
  };
  const note = (fields: unknown, text: string) => void told.push({ ...(fields as object), text });
  loop = new InvariantsLoop(counting, { error: note, warn: note, info: note } as never, { monotonicMs: () => nowMs });
});

/** Steps as the runner does, with the time between that the loop asks for. */
async function steps(n: number): Promise<void> {
  for (let i = 0; i < n; i += 1) {
    await loop.step();
    nowMs += loop.intervalMs();
  }
}

const A_CYCLE = 6;
const breaking = (id: string) => runs.ground.sql.query('update live_runs set priority = 7 where run_id = $1', [id]);
const healing = (id: string) => runs.ground.sql.query('update live_runs set priority = 0 where run_id = $1', [id]);

describe('the loop over the laws', () => {
  it('sends one statement a step, each half a minute', async () => {
    await runs.make('succeeded');
    for (let i = 1; i <= 3 * A_CYCLE; i += 1) {
      await steps(1);
      expect(statements).toBe(i);
      expect(loop.intervalMs()).toBe(30_000);
    }
    expect(loop.counts()).toEqual(new Map());
    expect(told).toEqual([]);
  });

  it('counts and tells a violation once, when a second look some seconds later has found it too', async () => {
    const id = await runs.make('pending');
    await breaking(id);
    await loop.step();
    await loop.step();
    expect(loop.counts(), 'after one look').toEqual(new Map());
    expect(loop.intervalMs(), 'the next look comes soon').toBeLessThan(10_000);
    expect(loop.intervalMs(), 'and not at once').toBeGreaterThan(5_000);
    nowMs += 4_000;
    await loop.step();
    expect(loop.counts(), 'a look too soon confirms nothing').toEqual(new Map());
    await steps(3 * A_CYCLE);
    expect(loop.counts()).toEqual(new Map([['live_copies', 1]]));
    expect(told).toEqual([
      expect.objectContaining({
        code: 'invariant_violated',
        law: 'live_copies',
        object: encodeId('run', id),
        detail: expect.stringContaining('priority 7'),
        text: expect.stringContaining('find out who else wrote to the database'),
      }),
    ]);
  });

  it('says no more of one that a later look finds gone', async () => {
    const [id, other] = [await runs.make('pending'), await runs.make('pending')];
    await breaking(id);
    await breaking(other);
    await steps(2 * A_CYCLE);
    expect(loop.counts().get('live_copies')).toBe(2);
    await healing(id);
    await steps(2 * A_CYCLE);
    expect(loop.counts().get('live_copies')).toBe(1);
    expect(told.at(-1)).toMatchObject({ code: 'invariant_holds', law: 'live_copies', object: encodeId('run', id) });
    await healing(other);
    await steps(2 * A_CYCLE);
    expect(loop.counts()).toEqual(new Map());
    await breaking(id);
    await steps(2 * A_CYCLE);
    expect(told.filter(({ code }) => code === 'invariant_violated')).toHaveLength(3);
  });

  it('never tells one that was gone at the second look', async () => {
    const id = await runs.make('pending');
    await breaking(id);
    await loop.step();
    await loop.step();
    await healing(id);
    nowMs += 60_000;
    await steps(2 * A_CYCLE);
    expect(told).toEqual([]);
  });

  it('comes to every run and every key, however many there are, and begins again', async () => {
    const { ground } = runs;
    const oldest = await runs.make('pending');
    for (let made = 0; made < 2 * WINDOW; made += 250) {
      await ground.submit(...Array.from({ length: 250 }, (_, i) => ({ key: `key ${made + i}` })));
    }
    await steps(2 * A_CYCLE);
    await breaking(oldest);
    await ground.sql.query(`update idempotency_keys set organization_id = $1 where key = 'key 999'`, [
      'ffffffff-0000-7000-8000-000000000000',
    ]);
    await steps(4 * A_CYCLE);
    expect(loop.counts()).toEqual(
      new Map([
        ['live_copies', 1],
        ['key_owner', 1],
      ]),
    );
  });
});

describe('a look that takes too long', () => {
  /** A pool on which a statement that meets this object takes too long. */
  const slowAt = (isSlow: (rows: unknown) => boolean): Pick<Pool, 'run'> => ({
    run: async (statement) => {
      const rows = await runs.ground.pool.run(statement);
      if (isSlow(rows)) {
        throw Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' });
      }
      return rows as never;
    },
  });
  const on = (pool: Pick<Pool, 'run'>) => {
    const note = (fields: unknown, text: string) => void told.push({ ...(fields as object), text });
    loop = new InvariantsLoop(pool, { error: note, warn: note, info: note } as never, { monotonicMs: () => nowMs });
  };
  const lookedAt = (rows: unknown): number | undefined => (rows as { looked?: number }[])[0]?.looked;
  const codes = () => told.map(({ code, object }) => [code, object]);

  it('is made in halves, and the one object that takes too long is left behind and told once', async () => {
    const [oldest, slow] = [await runs.make('pending'), await runs.make('pending')];
    await runs.ground.submit(...Array.from({ length: 9 }, () => ({})));
    const { rows } = await runs.ground.sql.query('select id from runs order by id desc');
    const ids = rows.map(({ id }) => id as string);
    const sees = (found: unknown) => {
      const [row] = found as { looked?: number; last?: string }[];
      if (row?.looked === undefined || row.last === undefined || row.looked === 0) return false;
      const last = ids.indexOf(row.last);
      const at = ids.indexOf(slow);
      return last >= at && last - row.looked < at;
    };
    on(slowAt(sees));
    await breaking(oldest);
    await steps(20 * A_CYCLE);
    expect(loop.counts()).toEqual(new Map([['live_copies', 1]]));
    expect(codes().sort()).toEqual([
      ['invariant_unchecked', encodeId('run', slow)],
      ['invariant_violated', encodeId('run', oldest)],
    ]);
  });

  it('at what waits, or at keys, gives the turn to the others', async () => {
    const id = await runs.make('pending');
    await runs.ground.submit({ key: 'slow' });
    await breaking(id);
    on(
      slowAt(
        (rows) => lookedAt(rows) === undefined && (rows as { key?: string; runId?: string }[])[0]?.runId !== undefined,
      ),
    );
    await steps(12 * A_CYCLE);
    expect(codes()).toEqual([
      ['invariant_violated', encodeId('run', id)],
      ['invariant_unchecked', expect.stringContaining('"key":"slow"')],
    ]);
    told = [];
    on(slowAt((rows) => (rows as { isAnybodyAble?: boolean }[])[0]?.isAnybodyAble !== undefined));
    await steps(2 * A_CYCLE);
    expect(codes()).toEqual([
      ['invariant_unchecked', 'standing'],
      ['invariant_violated', encodeId('run', id)],
    ]);
  });

  it('a second time is made in halves too, and keeps nobody else from theirs', async () => {
    const [first, second] = [await runs.make('pending'), await runs.make('pending')];
    await breaking(first);
    await breaking(second);
    let isSlow = false;
    let asked = 0;
    const again = (rows: unknown) => {
      const [row] = rows as { looked?: number; last?: string }[];
      if (!isSlow || row?.looked === undefined) return false;
      asked += 1;
      return row.looked > 1 || row.last === second;
    };
    on(slowAt(again));
    await loop.step();
    await loop.step();
    isSlow = true;
    for (let i = 0; i < 3; i += 1) {
      nowMs += loop.intervalMs();
      await loop.step();
    }
    expect(asked, 'both at once, and each').toBe(3);
    expect(codes()).toEqual([['invariant_violated', encodeId('run', first)]]);
    expect(loop.intervalMs(), 'no suspicion is left over').toBe(30_000);
    isSlow = false;
    await steps(2 * A_CYCLE);
    expect(loop.counts()).toEqual(new Map([['live_copies', 2]]));
  });

  it('or fails otherwise is told by failing, and the next turn is that of another', async () => {
    let asked = 0;
    on({
      run: async () => {
        asked += 1;
        throw Object.assign(new Error('permission denied'), { code: '42501' });
      },
    });
    const turnOf = () => (loop as unknown as { turn: number }).turn;
    for (let i = 1; i <= A_CYCLE; i += 1) {
      await expect(loop.step()).rejects.toThrow('permission denied');
      expect([asked, turnOf()]).toEqual([i, i]);
    }
  });
});

describe('capstan_invariant_violations', () => {
  it('has a line for each law from the start, 0 while it holds', async () => {
    const registry = new Registry();
    registerInvariantMetrics(registry, loop);
    const lines = async () => (await registry.metrics()).split('\n').filter((line) => !line.startsWith('#') && line);
    expect(await lines()).toEqual(LAW_NAMES.map((law) => `capstan_invariant_violations{law="${law}"} 0`));
    const id = await runs.make('pending');
    await breaking(id);
    await steps(A_CYCLE);
    expect(await lines()).toContain('capstan_invariant_violations{law="live_copies"} 1');
    await healing(id);
    await steps(2 * A_CYCLE);
    expect(await lines()).toContain('capstan_invariant_violations{law="live_copies"} 0');
  });
});
