/**
 * Brings a database to this program's schema. Migrations are plain SQL files, applied once, in order, under an
 * advisory lock that is polled for (a session that waits inside `pg_advisory_lock` would deadlock with a concurrent
 * index build). A table's lock is asked for and not waited for, since the work of all replicas would queue up behind
 * whoever waits. A database that knows more migrations than the program is refused: it belongs to a newer version.
 */
import { readdir } from 'node:fs/promises';
import { Socket } from 'node:net';
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
const ANSWER_WITHIN_MS = 10_000;
const FAREWELL_WITHIN_MS = 1_000;
const LOOK_EVERY_MS = 500;
/** Renewals of leases stand behind a migration for as long as it stands behind somebody else: a backup, a long read. */
const TABLE_LOCK_WITHIN_MS = 500;
const ASK_FOR_TABLE_EVERY_MS = 5_000;
const LOCK_NOT_AVAILABLE = '55P03';
const TELL_EVERY_MS = 15_000;

/** Why a database can't be used: one line for the person who starts the server. */
export class DatabaseRefused extends Error {
  override readonly name = 'DatabaseRefused';
}

/** What may pass by itself: the database is away or read-only, another starter has the lock, a table is in use. */
class NotYet extends Error {
  override readonly name = 'NotYet';

  constructor(
    message: string,
    readonly pauseMs: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

interface MigrationSession {
  readonly client: pg.Client;
  /** Says farewell to the server, as far as it still listens. */
  close(): Promise<void>;
}

export interface MigrateOptions {
  readonly databaseUrl: string;
  /** How long what may pass by itself is waited for: a database that is away or read-only, others' locks. */
  readonly waitMs: number;
  readonly log: Logger;
  readonly timing?: Timing;
}

/**
 * Applies what is missing and returns the names of the migrations applied by this call. Throws `DatabaseRefused` for
 * what only a person can change, and for the rest when the time is over.
 */
export async function migrate(options: MigrateOptions): Promise<string[]> {
  const timing = options.timing ?? systemTiming;
  const known = await knownMigrations();
  const untilMs = timing.monotonicMs() + options.waitMs;
  let toldAtMs = Number.NEGATIVE_INFINITY;
  for (;;) {
    try {
      return await applyMissing(options, known);
    } catch (error) {
      if (!(error instanceof NotYet)) throw error;
      const now = timing.monotonicMs();
      if (now >= untilMs) {
        const waited = `waited ${Math.round(options.waitMs / 1_000)} s; start again when that has passed`;
        throw new DatabaseRefused(`${error.message} (${waited})`, { cause: error });
      }
      if (now - toldAtMs >= TELL_EVERY_MS) {
        toldAtMs = now;
        options.log.warn({ code: 'database_awaited', reason: error.message }, 'not ready: waiting for the database');
      }
      await timing.delay(error.pauseMs * (0.5 + timing.random()));
    }
  }
}

/** One attempt. Throws `NotYet` or `DatabaseRefused`. */
async function applyMissing({ databaseUrl, log }: MigrateOptions, known: readonly string[]): Promise<string[]> {
  const { client, close } = await open(databaseUrl);
  client.on('error', (error) => log.warn({ code: 'migration_session_lost', err: error }, 'session lost'));
  try {
    await refuseUnfit(client);
    if ((await pending(client, known)).length === 0) return [];
    await lock(client);
    if ((await pending(client, known)).length === 0) return [];
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
    if (error instanceof DatabaseRefused || error instanceof NotYet) throw error;
    throw whyNot('the schema could not be applied', error);
  } finally {
    await close();
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

async function open(databaseUrl: string): Promise<MigrationSession> {
  try {
    return await connectAs(databaseUrl, connect);
  } catch (error) {
    throw whyNot("the database can't be reached", error);
  }
}

async function connect(url: string): Promise<MigrationSession> {
  const socket = new Socket();
  const client = new pg.Client({
    connectionString: url,
    application_name: 'capstan migrate',
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    stream: () => socket,
  });
  const close = async () => {
    const farewell = client.end().catch(() => undefined);
    await Promise.race([farewell, systemTiming.delay(FAREWELL_WITHIN_MS)]);
    socket.destroy();
  };
  try {
    await client.connect();
    // A migration takes as long as it takes, whatever the role's own bounds are.
    await ask(client, 'set statement_timeout = 0');
    await ask(client, `set lock_timeout = ${TABLE_LOCK_WITHIN_MS}`);
    return { client, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** For everything but the migrations themselves: what went silent must not be waited for without end. */
async function ask<Row extends pg.QueryResultRow>(
  client: pg.Client,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  // Known to the driver, but not to its types.
  const query: pg.QueryConfig & { query_timeout: number } = { text, values, query_timeout: ANSWER_WITHIN_MS };
  return (await client.query<Row>(query)).rows;
}

async function refuseUnfit(client: pg.Client): Promise<void> {
  const [server] = await ask<{ version: string; encoding: string; readOnly: string; standby: boolean }>(
    client,
    `select current_setting('server_version_num') as version, current_setting('server_encoding') as encoding,
            current_setting('transaction_read_only') as "readOnly", pg_is_in_recovery() as standby`,
  );
  if (!server) throw new DatabaseRefused('the database gave no answer about itself');
  if (Number(server.version) < OLDEST_SERVER) {
    throw new DatabaseRefused(`PostgreSQL 15 or newer is needed; this server is ${server.version}`);
  }
  if (server.encoding !== 'UTF8') {
    throw new DatabaseRefused(`the database's encoding must be UTF8; it is ${server.encoding}: create it with UTF8`);
  }
  if (server.standby || server.readOnly === 'on') {
    throw new NotYet('the database is read-only (a standby?): point DATABASE_URL at the primary', LOOK_EVERY_MS);
  }
}

/** Names this program knows and the database lacks. Throws when the database knows more. */
async function pending(client: pg.Client, known: readonly string[]): Promise<string[]> {
  const [table] = await ask<{ found: string | null }>(client, `select to_regclass($1) as found`, [MIGRATIONS_TABLE]);
  if (!table?.found) return [...known];
  const rows = await ask<{ name: string }>(client, `select name from ${MIGRATIONS_TABLE} order by id`);
  const applied = rows.map((row) => row.name);
  const foreign = applied.filter((name) => !known.includes(name));
  if (foreign.length > 0) {
    throw new DatabaseRefused(
      `the database is of a newer version (it has migration ${foreign.at(-1)}, this program ends at ${known.at(-1)}): start the newer program`,
    );
  }
  return known.filter((name) => !applied.includes(name));
}

async function lock(client: pg.Client): Promise<void> {
  const [answer] = await ask<{ locked: boolean }>(client, `select pg_try_advisory_lock($1) as locked`, [
    PG_MIGRATE_LOCK_ID,
  ]);
  if (answer?.locked) return;
  throw new NotYet(
    `another process holds the migration lock (advisory lock ${PG_MIGRATE_LOCK_ID}): pg_locks says which`,
    LOOK_EVERY_MS,
  );
}

function whyNot(what: string, error: unknown): NotYet | DatabaseRefused {
  const message = `${what}: ${lineOf(error)}`;
  if (errorCode(error) === LOCK_NOT_AVAILABLE) {
    const whose = 'a table to be changed is in use, by a backup or a long query: pg_locks says which';
    return new NotYet(`${message}; ${whose}`, ASK_FOR_TABLE_EVERY_MS, { cause: error });
  }
  if (isPassing(error)) return new NotYet(message, LOOK_EVERY_MS, { cause: error });
  return new DatabaseRefused(message, { cause: error });
}

/** True when the same may well work in a moment. The driver says in words alone that it gave up, or lost, a connection. */
function isPassing(error: unknown): boolean {
  return isTransient(error) || /timeout|terminated/i.test(lineOf(error));
}

function lineOf(error: unknown): string {
  const code = errorCode(error);
  const text = error instanceof Error ? error.message || error.name : String(error);
  const line = text.split('\n')[0]?.slice(0, 300) ?? '';
  return code && !line.includes(code) ? `${line} (${code})` : line;
}

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
