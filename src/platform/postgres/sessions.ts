/**
 * The two sessions of the launcher itself: a short one that sees to the application's role and database, and a lasting
 * one that marks the server as in use for as long as this process lives.
 */
import { createHmac } from 'node:crypto';
import pg from 'pg';
import { DataDirError } from './data-directory.js';

/** Where a server listens, and the secret its passwords come from. */
export interface ServerAddress {
  readonly port: number;
  readonly password: string;
}

const RECONNECT_AFTER_MS = 200;

/** Connection URL of the superuser. */
export function adminUrl({ port, password }: ServerAddress): string {
  return `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
}

/** Connection URL of the role that owns the database and is named like it. Its password opens nothing else. */
export function ownerUrl(address: ServerAddress, databaseName: string): string {
  return `postgres://${databaseName}:${ownerPassword(address, databaseName)}@127.0.0.1:${address.port}/${databaseName}`;
}

/** Makes role and database when they are missing. */
export async function ensureDatabase(address: ServerAddress, databaseName: string): Promise<void> {
  if (await opens(ownerUrl(address, databaseName))) return;
  const client = quietClient(adminUrl(address));
  try {
    await client.connect();
    const name = client.escapeIdentifier(databaseName);
    const password = client.escapeLiteral(ownerPassword(address, databaseName));
    const { rows } = await client.query<{ role: boolean; database: boolean }>(
      `select exists (select from pg_roles where rolname = $1)     as role,
              exists (select from pg_database where datname = $1)  as database`,
      [databaseName],
    );
    await client.query(`${rows[0]?.role ? 'alter' : 'create'} role ${name} login password ${password}`);
    if (!rows[0]?.database) await client.query(`create database ${name} owner ${name}`);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** A session that is opened again whenever it is lost, until `close()`. */
export class OwnerSession {
  readonly #url: string;
  #client: pg.Client | undefined;
  #isClosed = false;

  private constructor(url: string) {
    this.#url = url;
  }

  /** @throws DataDirError when the password doesn't open the server. */
  static async open(address: ServerAddress): Promise<OwnerSession> {
    const session = new OwnerSession(adminUrl(address));
    try {
      await session.#connect();
      return session;
    } catch (error) {
      session.close();
      if (!(error instanceof pg.DatabaseError) || error.code !== '28P01') throw error;
      throw new DataDirError(
        'The password in the data folder does not open its PostgreSQL: restore postgres-password from a backup',
        { cause: error },
      );
    }
  }

  /** Returns at once: the server may be gone, and then nothing answers the goodbye. */
  close(): void {
    this.#isClosed = true;
    this.#client?.end().catch(() => undefined);
  }

  async #connect(): Promise<void> {
    const client = quietClient(this.#url, 'capstan data folder');
    this.#client = client;
    client.once('end', () => this.#reconnectLater());
    await client.connect();
  }

  #reconnectLater(): void {
    if (this.#isClosed) return;
    // A failed attempt ends its client too, and so leads to the next one.
    setTimeout(() => !this.#isClosed && this.#connect().catch(() => undefined), RECONNECT_AFTER_MS).unref();
  }
}

function ownerPassword({ password }: ServerAddress, databaseName: string): string {
  return createHmac('sha256', password).update(databaseName).digest('base64url');
}

async function opens(url: string): Promise<boolean> {
  const client = quietClient(url);
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Without a listener a lost connection would be an uncaught error. */
function quietClient(connectionString: string, name = 'capstan start'): pg.Client {
  const client = new pg.Client({ connectionString, application_name: name, connectionTimeoutMillis: 5_000 });
  client.on('error', () => undefined);
  return client;
}
