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
  loop = new InvariantsLoop(counting, { error: note, info: note } as never, { monotonicMs: () => nowMs });
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
