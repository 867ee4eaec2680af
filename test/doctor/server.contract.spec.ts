/** What a real server says of itself: whoever holds vacuum back is found, and connections are counted by who has them. */
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { appliedMigrations, connectionUse, deadRows, serverFacts, vacuumHolders } from '../../src/doctor/server.sql.js';
import { Pool } from '../../src/platform/db/db.js';
import { knownMigrations } from '../../src/platform/db/migrate.js';
import { createDatabase, type TestDatabase } from '../database.js';
import { until } from '../server.js';

let db: TestDatabase;
let pool: Pool;

beforeAll(async () => {
  db = await createDatabase();
  pool = db.pool(1);
});
afterAll(() => db.drop());

const sessionNamed = async (name: string): Promise<pg.Client> => {
  const client = new pg.Client({ connectionString: db.url, application_name: name });
  await client.connect();
  return client;
};

describe('a server', () => {
  it('tells what it is', async () => {
    const facts = await serverFacts(pool);
    expect(facts).toMatchObject({ encoding: 'UTF8', isRecovering: false, isReadOnly: false, isAutovacuumOn: true });
    expect(facts.versionNumber).toBeGreaterThanOrEqual(150_000);
  });

  it('tells its migrations, or that it has none', async () => {
    expect(await appliedMigrations(pool)).toEqual(await knownMigrations());
    const empty = await createDatabase({ empty: true });
    expect(await appliedMigrations(empty.pool(1))).toBeUndefined();
    await empty.drop();
  });
});

describe('vacuum', () => {
  it('is held back by a session with an old snapshot, idle or not, and by no other', async () => {
    const [reader, writer, idle] = [
      await sessionNamed('report'),
      await sessionNamed('editor'),
      await sessionNamed('idle'),
    ];
    await reader.query('begin isolation level repeatable read');
    await reader.query('select 1 from runs limit 1');
    await writer.query('begin');
    await writer.query('create table left_open ()');
    await idle.query('begin');
    const holders = await vacuumHolders(pool, 0, 1_000_000);
    const names = holders.map((holder) => (holder.kind === 'session' ? holder.application : holder.kind));
    expect(names.sort()).toEqual(['editor', 'report']);
    const report = holders.find((holder) => holder.kind === 'session' && holder.application === 'report');
    const { rows } = await reader.query('select pg_backend_pid() as pid');
    expect(report).toMatchObject({
      pid: rows[0].pid,
      user: expect.any(String),
      state: 'idle in transaction',
      minutes: 0,
    });
    expect(await vacuumHolders(pool, 5, 1_000_000), 'for less than five minutes').toEqual([]);
    await Promise.all([reader.end(), writer.end(), idle.end()]);
  });

  it('is not held back by a vacuum that takes long', async () => {
    const slow = await sessionNamed('slow');
    await slow.query('create table wide as select repeat($1, 500) as text from generate_series(1, 5000)', ['x']);
    await slow.query('set vacuum_cost_delay = 100; set vacuum_cost_limit = 1');
    const { rows } = await slow.query('select pg_backend_pid() as pid');
    const ended = slow.query('vacuum wide').catch(({ code }: { code: string }) => code);
    const session = await db.session();
    await until('it vacuums, with a snapshot of its own', async () => {
      const { rows: found } = await session.query(
        `select 1 from pg_stat_progress_vacuum join pg_stat_activity using (pid)
         where pid = $1 and (backend_xmin is not null or backend_xid is not null)`,
        [rows[0].pid],
      );
      return found.length > 0;
    });
    expect(await vacuumHolders(pool, 0, 1_000_000)).toEqual([]);
    await session.query('select pg_cancel_backend($1)', [rows[0].pid]);
    expect(await ended, 'it was at it all the time').toBe('57014');
    await slow.end();
  });

  it('tells when it came last, and where it is', async () => {
    const session = await db.session();
    await session.query('vacuum workers');
    const found = await until(
      'its statistics are there',
      async () =>
        (await deadRows(pool)).filter(
          ({ table, vacuumedMinutes }) => table === 'workers' && vacuumedMinutes !== null,
        )[0],
    );
    expect(found).toMatchObject({ vacuumedMinutes: 0, isBeingVacuumed: false });
  });

  it('is seen to be off for a table', async () => {
    const session = await db.session();
    expect((await deadRows(pool)).map(({ table, isLeftAlone }) => [table, isLeftAlone])).toEqual([
      ['audit_heads', false],
      ['live_runs', false],
      ['workers', false],
    ]);
    await session.query('alter table live_runs set (autovacuum_enabled = off)');
    const found = (await deadRows(pool)).filter(({ isLeftAlone }) => isLeftAlone);
    expect(found.map(({ table }) => table)).toEqual(['live_runs']);
    await session.query('alter table live_runs reset (autovacuum_enabled)');
  });
});

describe('connections', () => {
  it('are counted for each bound that there is, with the applications that have the most', async () => {
    const sessions = await Promise.all([1, 2, 3].map(() => sessionNamed('bi')));
    const session = await db.session();
    const { rows } = await session.query('select current_database() as name');
    await session.query(`alter database ${rows[0].name} connection limit 8`);
    const uses = await connectionUse(pool);
    const database = uses.find(({ bound }) => bound === 'database');
    expect(database).toMatchObject({ most: 8, who: expect.arrayContaining(['bi (3)', 'capstan test (1)']) });
    expect(database?.used).toBeGreaterThanOrEqual(5);
    expect(uses.find(({ bound }) => bound === 'server')?.used).toBeGreaterThanOrEqual(database?.used ?? 0);
    await Promise.all(sessions.map((each) => each.end()));
  });
});

describe('a read-only pool', () => {
  it('is refused whatever would change something', async () => {
    const readOnly = new Pool({
      url: db.url,
      direct: true,
      name: 'doctor',
      size: 1,
      statementTimeoutMs: 1_000,
      isReadOnly: true,
      log: pino({ level: 'silent' }),
    });
    await expect(readOnly.run((sql) => sql`create table made ()`)).rejects.toMatchObject({ code: '25006' });
    expect(await readOnly.run((sql) => sql`select 1 as one`)).toEqual([{ one: 1 }]);
    await readOnly.close();
  });
});
