/**
 * Brings a database to this program's schema. Migrations are plain SQL files, applied once, in order, under an
 * advisory lock that is polled for (a session that waits inside `pg_advisory_lock` would deadlock with a concurrent
 * index build). A database that knows more migrations than the program is refused: it belongs to a newer version.
 */
import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { PG_MIGRATE_LOCK_ID, runner } from 'node-pg-migrate';
import pg from 'pg';
import type { Logger } from '../log/logger.js';
import { systemTiming, type Timing } from '../time.js';
import { errorCode, isTransient } from './db.js';
import { connectAs } from './session-url.js';

export const MIGRATIONS_FOLDER = fileURLToPath(new URL('../../../migrations/', import.meta.url));
const MIGRATIONS_TABLE = 'schema_migrations';
const OLDEST_SERVER = 150_000;

/** Why a database can't be used: one line for the person who starts the server. */
export class DatabaseRefused extends Error {
  override readonly name = 'DatabaseRefused';
}

export interface MigrateOptions {
  readonly databaseUrl: string;
  /** How long to wait for the database to answer, and then for another starter's lock. */
  readonly waitMs: number;
  readonly log: Logger;
  readonly timing?: Timing;
}

/** Applies what is missing and returns the names of the migrations applied by this call. Throws `DatabaseRefused`. */
export async function migrate(options: MigrateOptions): Promise<string[]> {
  const timing = options.timing ?? systemTiming;
  const known = await knownMigrations();
  const client = await connectWithin(options, timing);
  client.on('error', (error) => options.log.warn({ code: 'migration_session_lost', err: error }, 'session lost'));
  try {
    await refuseUnfit(client);
    if ((await pending(client, known)).length === 0) return [];
    await lockWithin(client, options, timing);
    const missing = await pending(client, known);
    if (missing.length === 0) return [];
    const applied = await runner({
      dbClient: client,
      dir: MIGRATIONS_FOLDER,
      direction: 'up',
      migrationsTable: MIGRATIONS_TABLE,
      noLock: true,
      logger: silent,
    });
    return applied.map((migration) => migration.name);
  } catch (error) {
    if (error instanceof DatabaseRefused) throw error;
    throw new DatabaseRefused(`the schema could not be applied: ${lineOf(error)}`, { cause: error });
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** The names of the migrations this program carries, oldest first. */
export async function knownMigrations(): Promise<string[]> {
  const files = await readdir(MIGRATIONS_FOLDER);
  return files
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort();
}

async function connectWithin(options: MigrateOptions, timing: Timing): Promise<pg.Client> {
  const until = timing.monotonicMs() + options.waitMs;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await connectAs(options.databaseUrl, connect);
    } catch (error) {
      const hopeless = !isTransient(error) && !/timeout|terminated/i.test(lineOf(error));
      if (hopeless || timing.monotonicMs() >= until) {
        throw new DatabaseRefused(`the database can't be reached: ${lineOf(error)}`, { cause: error });
      }
      if (attempt % 8 === 1) {
        options.log.warn({ code: 'database_unreachable', err: error }, 'waiting for the database');
      }
      await timing.delay(500);
    }
  }
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'capstan migrate',
    connectionTimeoutMillis: 5_000,
  });
  try {
    await client.connect();
    return client;
  } catch (error) {
    await client.end().catch(() => undefined);
    throw error;
  }
}

async function refuseUnfit(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ version: string; encoding: string; readOnly: string; standby: boolean }>(
    `select current_setting('server_version_num') as version, current_setting('server_encoding') as encoding,
            current_setting('transaction_read_only') as "readOnly", pg_is_in_recovery() as standby`,
  );
  const server = rows[0];
  if (!server) throw new DatabaseRefused('the database gave no answer about itself');
  if (Number(server.version) < OLDEST_SERVER) {
    throw new DatabaseRefused(`PostgreSQL 15 or newer is needed; this server is ${server.version}`);
  }
  if (server.encoding !== 'UTF8') {
    throw new DatabaseRefused(`the database's encoding must be UTF8; it is ${server.encoding}: create it with UTF8`);
  }
  if (server.standby || server.readOnly === 'on') {
    throw new DatabaseRefused('the database is read-only (a standby?): point DATABASE_URL at the primary');
  }
}

/** Names this program knows and the database lacks. Throws when the database knows more. */
async function pending(client: pg.Client, known: readonly string[]): Promise<string[]> {
  const { rows: tables } = await client.query(`select to_regclass($1) as found`, [MIGRATIONS_TABLE]);
  if (!tables[0]?.found) return [...known];
  const { rows } = await client.query<{ name: string }>(`select name from ${MIGRATIONS_TABLE} order by id`);
  const applied = rows.map((row) => row.name);
  const foreign = applied.filter((name) => !known.includes(name));
  if (foreign.length > 0) {
    throw new DatabaseRefused(
      `the database is of a newer version (it has migration ${foreign.at(-1)}, this program ends at ${known.at(-1)}): start the newer program`,
    );
  }
  return known.filter((name) => !applied.includes(name));
}

async function lockWithin(client: pg.Client, options: MigrateOptions, timing: Timing): Promise<void> {
  const until = timing.monotonicMs() + options.waitMs;
  for (;;) {
    const { rows } = await client.query(`select pg_try_advisory_lock($1) as locked`, [PG_MIGRATE_LOCK_ID]);
    if (rows[0]?.locked) return;
    if (timing.monotonicMs() >= until) {
      throw new DatabaseRefused(
        `another process has held the migration lock (advisory lock ${PG_MIGRATE_LOCK_ID}) for ${Math.round(options.waitMs / 1_000)} s: see who holds it in pg_locks, then start again`,
      );
    }
    await timing.delay(100 + timing.random() * 100);
  }
}

function lineOf(error: unknown): string {
  const code = errorCode(error);
  const text = error instanceof Error ? error.message || error.name : String(error);
  const line = text.split('\n')[0]?.slice(0, 300) ?? '';
  return code && !line.includes(code) ? `${line} (${code})` : line;
}

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
