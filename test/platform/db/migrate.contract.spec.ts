/** A database comes to this program's schema once, whoever starts, however often, and whatever is killed meanwhile. */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PG_MIGRATE_LOCK_ID, runner } from 'node-pg-migrate';
import pg from 'pg';
import { pino } from 'pino';
import { afterEach, describe, expect, inject, it, vi } from 'vitest';
import { DatabaseRefused, knownMigrations, MIGRATIONS_FOLDER, migrate } from '../../../src/platform/db/migrate.js';
import { systemTiming } from '../../../src/platform/time.js';
import { createDatabase, type TestDatabase } from '../../database.js';

const log = pino({ level: 'silent' });
const made: TestDatabase[] = [];
afterEach(async () => {
  await Promise.all(made.splice(0).map((db) => db.drop()));
});

async function empty(): Promise<TestDatabase> {
  const db = await createDatabase({ empty: true });
  made.push(db);
  return db;
}

const start = (db: { url: string }, waitMs = 20_000) => migrate({ databaseUrl: db.url, waitMs, log });
const refusal = (db: { url: string }, waitMs?: number) =>
  start(db, waitMs).then(
    () => 'taken',
    (error: unknown) => (error instanceof DatabaseRefused ? error.message : `not a refusal: ${String(error)}`),
  );

/** The whole schema as text: two equal ones were made by the same migrations. */
async function schemaOf(db: TestDatabase): Promise<string> {
  const session = await db.session();
  const { rows } = await session.query(`
    select string_agg(line, E'\\n' order by line) as text from (
      select 'column ' || table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable || ' ' || coalesce(column_default, '')
        from information_schema.columns where table_schema = 'public'
      union all select 'index ' || indexdef from pg_indexes where schemaname = 'public'
      union all select 'constraint ' || conrelid::regclass || ' ' || pg_get_constraintdef(oid) from pg_constraint where connamespace = 'public'::regnamespace
      union all select 'trigger ' || pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
      union all select 'function ' || pg_get_functiondef(oid) from pg_proc where pronamespace = 'public'::regnamespace
      union all select 'migration ' || name from schema_migrations
    ) as lines (line)`);
  return rows[0].text;
}

/** The last statement of each session that is migrating this database. */
async function triesOf(session: pg.Client): Promise<string[]> {
  const { rows } = await session.query(
    `select query from pg_stat_activity where datname = current_database() and application_name = 'capstan migrate'`,
  );
  return rows.map(({ query }) => query);
}

async function invalidIndexes(db: TestDatabase): Promise<number> {
  const session = await db.session();
  return (await session.query('select count(*)::integer as n from pg_index where not indisvalid')).rows[0].n;
}

describe('starters on one database', () => {
  it('F124 S0-08 five at once on an empty one: each is ready, one of them applied the schema', async () => {
    for (let round = 0; round < 3; round += 1) {
      const db = await empty();
      const applied = await Promise.all(Array.from({ length: 5 }, () => start(db)));
      expect(applied.filter((names) => names.length > 0)).toEqual([await knownMigrations()]);
      expect(await invalidIndexes(db)).toBe(0);
    }
  });

  it('S4-101 three times one after the other: the schema is the same, and nothing is applied again', async () => {
    const db = await empty();
    expect(await start(db)).toEqual(await knownMigrations());
    const schema = await schemaOf(db);
    expect(schema).toContain('constraint live_runs');
    for (let again = 0; again < 2; again += 1) {
      expect(await start(db)).toEqual([]);
      expect(await schemaOf(db)).toBe(schema);
    }
  });

  it('S4-101 F124 killed in the middle, then started again: the same schema as without that', async () => {
    const [db, other] = [await empty(), await empty()];
    await start(other);
    const blocker = await db.session();
    await blocker.query('begin');
    await blocker.query('create table workers (id integer)');
    const killed = refusal(db, 1);
    const watcher = await db.session();
    let pid: number | undefined;
    while (pid === undefined) {
      const { rows } = await watcher.query(
        `select pid from pg_stat_activity where datname = current_database() and application_name = 'capstan migrate' and wait_event_type = 'Lock'`,
      );
      pid = rows[0]?.pid;
    }
    expect((await watcher.query(`select to_regclass('organizations') as seen`)).rows[0].seen).toBeNull();
    await watcher.query('select pg_terminate_backend($1)', [pid]);
    expect(await killed).toContain('the schema could not be applied');
    await blocker.query('rollback');
    const { rows } = await watcher.query(
      `select count(*)::integer as n from information_schema.tables where table_schema = 'public' and table_name <> 'schema_migrations'`,
    );
    expect(rows[0].n, 'nothing half made is left').toBe(0);
    expect(await start(db)).toEqual(await knownMigrations());
    expect(await schemaOf(db)).toBe(await schemaOf(other));
  });

  it('F045 whose session is ended in the middle begins again by itself', async () => {
    const db = await empty();
    const blocker = await db.session();
    await blocker.query('begin');
    await blocker.query('create table workers (id integer)');
    const started = start(db);
    const watcher = await db.session();
    const ended = await vi.waitFor(
      async () => {
        const { rows } = await watcher.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and application_name = 'capstan migrate' and wait_event_type = 'Lock'`,
        );
        expect(rows).toHaveLength(1);
        return rows.length;
      },
      { timeout: 15_000 },
    );
    expect(ended).toBe(1);
    await blocker.query('rollback');
    expect(await started).toEqual(await knownMigrations());
  });

  it('S0-36 one that waits for the lock in vain stops, and names the lock; it can be started again', async () => {
    const db = await empty();
    const holder = await db.session();
    await holder.query('select pg_advisory_lock($1)', [PG_MIGRATE_LOCK_ID]);
    const message = await refusal(db, 400);
    expect(message).toContain(`advisory lock ${PG_MIGRATE_LOCK_ID}`);
    expect(message).toContain('start again');
    const waiting = start(db);
    // It has asked for the lock and was told no; it will ask again.
    await vi.waitFor(
      async () => expect(await triesOf(holder)).toEqual([expect.stringContaining('pg_try_advisory_lock')]),
      { timeout: 15_000, interval: 2 },
    );
    await holder.query('select pg_advisory_unlock_all()');
    expect(await waiting).toEqual(await knownMigrations());
  });

  it('a migration whose table is in use, by a backup say, keeps no lease from being renewed behind it', async () => {
    const db = await empty();
    const [untilThen, altersWorkers] = [2, '0003_drain'];
    const logger = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
    const about = { dir: MIGRATIONS_FOLDER, migrationsTable: 'schema_migrations', noLock: true, logger };
    await runner({ databaseUrl: db.url, direction: 'up', count: untilThen, ...about });
    const [backup, keeper] = [await db.session(), await db.session()];
    await backup.query('begin');
    await backup.query('lock table workers in access share mode');
    const lines: { code: string; reason: string }[] = [];
    let tries = 0;
    /** Seconds take tenths. */
    const delay = (ms: number) => {
      tries += 1;
      return systemTiming.delay(ms / 10);
    };
    const migrating = migrate({
      databaseUrl: db.url,
      waitMs: 600_000,
      log: pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) }),
      timing: { ...systemTiming, delay },
    });
    await keeper.query(`set statement_timeout = '10s'`);
    let slowestMs = 0;
    while (tries < 4) {
      const sentAt = performance.now();
      await keeper.query(`update workers set lease_until = lease_until where state = 'live'`);
      slowestMs = Math.max(slowestMs, performance.now() - sentAt);
    }
    expect(slowestMs).toBeLessThan(1_500);
    expect(lines.map(({ code }) => code)).toEqual(['database_awaited']);
    expect(lines[0]?.reason).toContain('pg_locks');
    await backup.query('rollback');
    expect(await migrating).toContain(altersWorkers);
  });

  it('S0-36 the lock does not stop whoever finds nothing to apply', async () => {
    const db = await empty();
    await start(db);
    const holder = await db.session();
    await holder.query('select pg_advisory_lock($1)', [PG_MIGRATE_LOCK_ID]);
    expect(await start(db, 100)).toEqual([]);
  });
});

describe('a database that can not be used is refused with one line', () => {
  it('F123 of a newer version', async () => {
    const db = await empty();
    await start(db);
    const session = await db.session();
    await session.query(`insert into schema_migrations (name, run_on) values ('9999_from_the_future', now())`);
    const message = await refusal(db);
    expect(message).toContain('9999_from_the_future');
    expect(message).toContain('start the newer program');
  });

  it.each(['SQL_ASCII', 'LATIN1'])('F081 with the encoding %s', async (encoding) => {
    const name = `t_encoding_${encoding.toLowerCase()}`;
    const admin = new pg.Client(inject('postgresUrl'));
    await admin.connect();
    try {
      await admin.query(`create database ${name} encoding '${encoding}' locale 'C' template template0`);
      const url = new URL(inject('postgresUrl'));
      url.pathname = name;
      const message = await refusal({ url: url.href });
      expect(message).toContain(encoding);
      expect(message).toContain('UTF8');
    } finally {
      await admin.query(`drop database if exists ${name} with (force)`);
      await admin.end();
    }
  });

  it('that is read-only after the wait; it is taken when it takes writes by then', async () => {
    const db = await empty();
    const session = await db.session();
    const { rows } = await session.query('select current_database() as name');
    await session.query(`alter database ${rows[0].name} set default_transaction_read_only = on`);
    expect(await refusal(db, 1)).toContain('read-only');
    const waiting = start(db);
    await vi.waitFor(async () => expect(await triesOf(session)).not.toEqual([]), { timeout: 15_000, interval: 5 });
    await session.query('set transaction_read_only = off');
    await session.query(`alter database ${rows[0].name} reset default_transaction_read_only`);
    expect(await waiting).toEqual(await knownMigrations());
  });

  it('that does not exist, at once; that does not answer, after the wait', async () => {
    const gone = new URL(inject('postgresUrl'));
    gone.pathname = 'no_such_database';
    // With the wait this would take longer than a test may.
    expect(await refusal({ url: gone.href }, 600_000)).toContain('no_such_database');
    gone.port = '1';
    expect(await refusal({ url: gone.href }, 300)).toContain("can't be reached");
  });
});

describe('a migration that was applied is never edited', () => {
  it('S4-101 each file has the SHA-256 that it was released with', async () => {
    const released = await readFile(new URL('./migrations.sha256', import.meta.url), 'utf8');
    const files = (await readdir(MIGRATIONS_FOLDER)).filter((file) => file.endsWith('.sql')).sort();
    const lines: string[] = [];
    for (const file of files) {
      const digest = createHash('sha256')
        .update(await readFile(join(MIGRATIONS_FOLDER, file)))
        .digest('hex');
      lines.push(`${digest}  ${file}`);
    }
    const hint =
      'write a new migration; only for a new or an unreleased one: (cd migrations && sha256sum *.sql) > test/platform/db/migrations.sha256';
    expect(lines.join('\n'), hint).toBe(released.trimEnd());
  });
});
