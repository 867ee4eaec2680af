/** Nothing waits for ever: each law about lives and waiting is broken by hand, while somebody could move it on. */
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { lookAtStanding } from '../../src/doctor/standing.sql.js';
import { encodeId } from '../../src/kernel/ids.js';
import { until } from '../runs/ground.fixture.js';
import { Runs } from './runs.fixture.js';

/** Instead of two minutes, for a session can't be made older than it is; longer than a statement takes. */
const LATE_MS = 2_000;

let runs: Runs;
let keeper: pg.Client;
let other: string;

async function keeperSession(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: runs.ground.db.url, application_name: 'capstan keeper' });
  await client.connect();
  await client.query('select 1');
  return client;
}

beforeAll(async () => {
  runs = await Runs.open();
  await runs.unprotect();
  keeper = await keeperSession();
  await until('the session of a keeper has stood for that time', async () => {
    const { rows } = await runs.ground.sql.query(
      `select 1 from pg_stat_activity where datname = current_database() and application_name = 'capstan keeper'
         and backend_start < clock_timestamp() - $1 * interval '1 millisecond'`,
      [LATE_MS],
    );
    return rows.length > 0;
  });
});
afterAll(async () => {
  await keeper.end();
  await runs.ground.close();
});

/** Somebody whose keeper has had its session for long enough, and has just renewed. */
beforeEach(async () => {
  await runs.ground.sql.query('truncate live_runs, workers');
  other = await runs.ground.worker();
  await keeper.query('select 1');
});

const found = async () =>
  (await lookAtStanding(runs.ground.pool, LATE_MS)).violations.map(({ law, object }) => [law, object]);
const holderOf = async (id: string) =>
  (await runs.ground.sql.query('select holder from live_runs where run_id = $1', [id])).rows[0].holder as string;
const ago = `clock_timestamp() - interval '1 hour'`;

describe('a life', () => {
  it('life_state is broken by an end of a life that goes on, and by a lost one without', async () => {
    const { sql } = runs.ground;
    expect(await found()).toEqual([]);
    await sql.query('update workers set ended_at = now() where id = $1', [other]);
    expect(await found()).toEqual([['life_state', encodeId('wrk', other)]]);
    await sql.query(`update workers set state = 'lost', ended_at = null where id = $1`, [other]);
    expect(await found()).toEqual([['life_state', encodeId('wrk', other)]]);
  });

  it.each(['claimed', 'running'] as const)('ended_life is broken by a lost life that holds a %s run', async (way) => {
    const { sql } = runs.ground;
    const id = await runs.make(way);
    const holder = await holderOf(id);
    await runs.lose(holder);
    await keeper.query('select 1');
    expect(await found(), 'a janitor has its time').toEqual([]);
    await sql.query(`update workers set ended_at = ${ago} where id = $1`, [holder]);
    expect(await found()).toEqual([['ended_life', encodeId('run', id)]]);
  });

  it('lease_over is broken by a life that nobody reaps', async () => {
    const { sql } = runs.ground;
    const lost = await runs.ground.worker({ leaseMs: -20_000 });
    expect(await found(), 'the longest rest of a janitor is not over').toEqual([]);
    await sql.query(`update workers set lease_until = ${ago} where id = $1`, [lost]);
    expect(await found()).toEqual([['lease_over', encodeId('wrk', lost)]]);
  });
});

describe('what waits', () => {
  it('due is broken by a run whose time came, and that is not claimable', async () => {
    const { sql } = runs.ground;
    const id = await runs.make('pending');
    await sql.query(`update live_runs set not_before = now() + interval '1 hour' where run_id = $1`, [id]);
    expect(await found()).toEqual([]);
    await sql.query(`update live_runs set not_before = ${ago} where run_id = $1`, [id]);
    expect(await found()).toEqual([['due', encodeId('run', id)]]);
  });

  it('cancel_heeded is broken by a connected holder that goes on, not by one that is away', async () => {
    const { sql } = runs.ground;
    const id = await runs.make('flagged');
    expect(await found()).toEqual([]);
    await sql.query(`update live_runs set cancel_requested_at = ${ago} where run_id = $1`, [id]);
    expect(await found()).toEqual([['cancel_heeded', encodeId('run', id)]]);
    await sql.query(`update workers set lease_until = clock_timestamp() - interval '5 s' where id = $1`, [
      await holderOf(id),
    ]);
    expect(await found()).toEqual([]);
  });

  it('claim_moves_on is broken by a connected holder that neither starts nor gives back', async () => {
    const { sql } = runs.ground;
    const id = await runs.make('claimed');
    expect(await found()).toEqual([]);
    await sql.query(`update live_runs set claimed_at = ${ago} where run_id = $1`, [id]);
    expect(await found()).toEqual([['claim_moves_on', encodeId('run', id)]]);
  });

  it('is judged where leases are long and renewed seldom, up to the last renewal', async () => {
    const { sql } = runs.ground;
    const id = await runs.make('flagged');
    const holder = await holderOf(id);
    await sql.query(`update live_runs set cancel_requested_at = ${ago} where run_id = $1`, [id]);
    const seen = (what: string) =>
      sql.query(
        `update workers set ttl_ms = 600000, lease_until = clock_timestamp() + interval '10 min' - $2::interval
                 where id = $1`,
        [holder, what],
      );
    await seen('4 min');
    expect(await found()).toEqual([['cancel_heeded', encodeId('run', id)]]);
    await seen('6 min');
    expect(await found()).toEqual([]);
  });

  it('is judged by what was late when somebody last renewed', async () => {
    const { sql } = runs.ground;
    const id = await runs.make('pending');
    await sql.query(`update live_runs set not_before = clock_timestamp() - $2 * interval '1 ms' where run_id = $1`, [
      id,
      LATE_MS / 2,
    ]);
    await until('it is late by now', async () => {
      const { rows } = await sql.query(
        `select not_before < clock_timestamp() - $2 * interval '1 ms' as late from live_runs where run_id = $1`,
        [id, LATE_MS],
      );
      return rows[0].late;
    });
    expect(await found(), 'nobody was there since').toEqual([]);
    await keeper.query('select 1');
    expect(await found()).toEqual([['due', encodeId('run', id)]]);
  });

  it('may wait as long as it takes where nobody has been there for all that time', async () => {
    const { sql } = runs.ground;
    const [due, flagged, claimed] = [
      await runs.make('pending'),
      await runs.make('flagged'),
      await runs.make('claimed'),
    ];
    await sql.query(`update live_runs set not_before = ${ago} where run_id = $1`, [due]);
    await sql.query(`update live_runs set cancel_requested_at = ${ago} where run_id = $1`, [flagged]);
    await sql.query(`update live_runs set claimed_at = ${ago} where run_id = $1`, [claimed]);
    await runs.ground.worker({ leaseMs: -3_600_000 });
    expect((await found()).map(([law]) => law).sort()).toEqual([
      'cancel_heeded',
      'claim_moves_on',
      'due',
      'lease_over',
    ]);
    await keeper.end();
    await until('the keeper is gone', async () => (await found()).length === 0);
    keeper = await keeperSession();
    expect(await found(), 'an owner that has just come back comes first').toEqual([]);
  });
});
