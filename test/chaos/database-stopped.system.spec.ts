/** A worker that stands still while the database sends it what it claimed: nobody waits for it longer than for others. */
import { readFile, writeFile } from 'node:fs/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../server.js';
import { Stage } from './stage.fixture.js';

/** Together far more than the buffers on the way hold. */
const RUNS = 80;
const INPUT_BYTES = 250_000;
/** A lease of 15 s, a step of the janitor, the server's patience, and the work itself on a busy machine. */
const EXECUTED_WITHIN_MS = 30_000;

describe('a worker that is stopped before it has taken the answer to its claim', () => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await Stage.open(['r1'], { env: { CAPSTAN_SLOTS: '0' } });
    await stage.add('w1', { kind: 'worker', env: { CAPSTAN_SLOTS: '100' } });
  });
  afterAll(() => stage?.close());

  it('keeps its claim from nobody: others execute each run once, and when it goes on it executes none', async () => {
    const counted = `${stage.db.scratch}/counted`;
    await writeFile(counted, '', { mode: 0o666 });
    const { child } = stage.get('w1').server;
    const runs = await Promise.all(
      Array.from({ length: RUNS }, (_, i) =>
        stage.submit(
          [],
          { queue: 'later', spec: { argv: ['bash', '-c', `echo ${i} >> ${counted}`], stdin: 'x'.repeat(INPUT_BYTES) } },
          [stage.get('r1')],
        ),
      ),
    );
    // A lease that is held up for long is no lease: only now is there something to claim.
    const release = await holdUp('w1');
    await stage.db.query(`update live_runs set queue = 'default'`);
    // One that began earlier doesn't see the runs, however long it waits.
    const [{ now } = { now: '' }] = await stage.db.query<{ now: string }>('select clock_timestamp()::text as now');
    await until('the claim waits for the lock', () => claimWaitsFor('Lock', now));
    child.kill('SIGSTOP');
    await release();
    await until('the claim waits for the worker to take its answer', () => claimWaitsFor('ClientWrite', now));
    await stage.add('w2', { kind: 'worker', env: { CAPSTAN_SLOTS: '10' } });
    const ended = await stage.untilEnded(EXECUTED_WITHIN_MS);
    expect(ended.filter(({ state }) => state !== 'succeeded')).toEqual([]);
    expect(ended).toHaveLength(runs.length);
    await until('it is lost', async () => (await stateOf('w1')) === 'lost', 25_000);
    child.kill('SIGCONT');
    await until('it has begun a new life', async () => (await stateOf('w1')) === 'live', 20_000);
    const effects = (await readFile(counted, 'utf8')).trim().split('\n').map(Number);
    expect(effects.toSorted((a, b) => a - b)).toEqual(Array.from({ length: RUNS }, (_, i) => i));
    expect(await stage.faults()).toEqual([]);
  });

  /** Locks the row of a worker, for which its claims wait. */
  async function holdUp(name: string): Promise<() => Promise<void>> {
    const client = new pg.Client(stage.db.directUrl);
    client.on('error', () => undefined);
    await client.connect();
    await client.query('begin');
    await client.query('select from workers where name = $1 for update', [name]);
    return () => client.end();
  }

  async function claimWaitsFor(what: string, sinceAt: string): Promise<boolean> {
    const rows = await stage.db.query(
      `select from pg_stat_activity
       where application_name = 'capstan work' and query like '%candidate%' and $1 in (wait_event_type, wait_event)
         and query_start > $2::timestamptz`,
      [what, sinceAt],
    );
    return rows.length > 0;
  }

  /** Of the newest life of that name. */
  async function stateOf(name: string): Promise<string | undefined> {
    const [row] = await stage.db.query<{ state: string }>(
      'select state from workers where name = $1 order by id desc limit 1',
      [name],
    );
    return row?.state;
  }
});
