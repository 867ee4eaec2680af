/** A database of its own for a spec file, cloned from the migrated template, and pools on it. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { pino } from 'pino';
import { inject } from 'vitest';
import { BytePool } from '../src/platform/db/byte-pool.js';
import { Pool } from '../src/platform/db/db.js';

export interface TestDatabase {
  readonly url: string;
  /** A pool as the application uses it. */
  pool(size?: number): Pool;
  /** A pool for statements that carry bytes. */
  bytePool(size?: number): BytePool;
  /** A session of its own, for locks, pauses and tampering. */
  session(): Promise<pg.Client>;
  drop(): Promise<void>;
}

/** `empty` gives a database without any schema. */
export async function createDatabase(options: { empty?: boolean } = {}): Promise<TestDatabase> {
  const name = `t_${randomUUID().replaceAll('-', '').slice(0, 16)}`;
  const admin = new pg.Client(inject('postgresUrl'));
  await admin.connect();
  await admin.query(`create database ${name}${options.empty ? '' : ' template capstan_template'}`);
  const url = new URL(inject('postgresUrl'));
  url.pathname = name;
  const pools: { close(): Promise<void> }[] = [];
  const sessions: pg.Client[] = [];
  return {
    url: url.href,
    pool(size = 4) {
      const pool = new Pool({
        url: url.href,
        direct: true,
        name: 'test',
        size,
        statementTimeoutMs: 10_000,
        log: pino({ level: 'silent' }),
      });
      pools.push(pool);
      return pool;
    },
    bytePool(size = 4) {
      const pool = new BytePool({ url: url.href, direct: true, name: 'test', size, statementTimeoutMs: 10_000 });
      pools.push(pool);
      return pool;
    },
    async session() {
      const client = new pg.Client(url.href);
      client.on('error', () => undefined);
      await client.connect();
      sessions.push(client);
      return client;
    },
    async drop() {
      await Promise.all(pools.map((pool) => pool.close()));
      await Promise.all(sessions.map((session) => session.end()));
      await admin.query(`drop database ${name} with (force)`);
      await admin.end();
    },
  };
}
