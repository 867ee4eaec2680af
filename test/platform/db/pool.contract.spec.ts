/** A pool on a real PostgreSQL: nobody waits behind a slow statement, and a silent connection is left behind. */
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Pool, StatementTimeout } from '../../../src/platform/db/db.js';
import { createDatabase, type TestDatabase } from '../../database.js';
import { until } from '../../server.js';
import { TcpProxy } from '../../tcp-proxy.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await createDatabase();
});
afterAll(() => db.drop());

function poolOn(url: string, size: number, statementTimeoutMs: number): Pool {
  return new Pool({ url, direct: true, name: 'own', size, statementTimeoutMs, log: pino({ level: 'silent' }) });
}

/** Waits for the lock of this number and gives it back. */
function passLock(pool: Pool, lock: number): Promise<unknown> {
  return pool.run((sql) => sql`select pg_advisory_xact_lock(${lock}::bigint)`);
}

function one(pool: Pool): Promise<unknown> {
  return pool.run((sql) => sql`select ${1}::integer as one`);
}

describe('a pool of two connections', () => {
  it('sends nothing behind a slow statement while the other connection becomes free', async () => {
    const pool = db.pool(2);
    // The driver sends behind another only what it has prepared.
    for (let i = 0; i < 4; i += 1) await Promise.all([passLock(pool, 3), passLock(pool, 4), one(pool), one(pool)]);
    const holder = await db.session();
    await holder.query('select pg_advisory_lock(1), pg_advisory_lock(2)');
    const blocked = async (n: number) => {
      const { rows } = await holder.query(
        `select count(*)::integer as n from pg_stat_activity where wait_event = 'advisory' and datname = current_database()`,
      );
      return rows[0].n === n;
    };
    let slowIsDone = false;
    const slow = passLock(pool, 1).then(() => {
      slowIsDone = true;
    });
    await until('the slow statement waits', () => blocked(1));
    const other = passLock(pool, 2);
    await until('both connections are taken', () => blocked(2));
    const quick = Promise.all(Array.from({ length: 6 }, () => one(pool)));
    await holder.query('select pg_advisory_unlock(2)');
    await other;
    await Promise.race([
      quick,
      new Promise((_, reject) => setTimeout(reject, 1_500, new Error('they wait behind it'))),
    ]);
    expect(slowIsDone).toBe(false);
    await holder.query('select pg_advisory_unlock(1)');
    await slow;
  });
});

it('the bound of a statement begins when it is sent: those in line are not given up for the time they stood there', async () => {
  const pool = poolOn(db.url, 1, 1_000);
  try {
    const statements = Array.from({ length: 3 }, () => pool.run((sql) => sql`select pg_sleep(0.8)`));
    expect(await Promise.allSettled(statements)).toEqual(
      Array(3).fill(expect.objectContaining({ status: 'fulfilled' })),
    );
  } finally {
    await pool.close();
  }
});

it('a statement into a connection that went silent is given up, with the server gone as well, and leaves no other error', async () => {
  const proxy = await TcpProxy.start(db.url);
  const pool = poolOn(proxy.through, 1, 100);
  const stray: unknown[] = [];
  const note = (error: unknown) => stray.push(error);
  process.on('unhandledRejection', note);
  try {
    await pool.run((sql) => sql`select 1`);
    proxy.goSilent();
    const given = expect(pool.run((sql) => sql`select 2`)).rejects.toBeInstanceOf(StatementTimeout);
    proxy.refuse();
    await given;
    expect(pool.inFlight).toBe(0);
    proxy.speak();
    await proxy.comeUp();
    await until('the pool has a connection again', () =>
      pool
        .run((sql) => sql`select 3`)
        .then(
          () => true,
          () => false,
        ),
    );
    expect(stray).toEqual([]);
  } finally {
    process.off('unhandledRejection', note);
    await pool.close();
    await proxy.close();
  }
});
