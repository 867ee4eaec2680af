/** Bytes on their way to a real PostgreSQL: unchanged, bounded in time, and past connections that broke. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { BytePool } from '../../../src/platform/db/byte-pool.js';
import { isTransient, StatementTimeout } from '../../../src/platform/db/db.js';
import { createDatabase, type TestDatabase } from '../../database.js';
import { until } from '../../server.js';
import { TcpProxy } from '../../tcp-proxy.js';

let db: TestDatabase;
beforeAll(async () => {
  db = await createDatabase();
});
afterAll(() => db.drop());

const one = (pool: BytePool) => pool.run<{ one: number }>({ name: 'one', text: 'select 1 as one', values: [] });
const sleep = (pool: BytePool, seconds: number) =>
  pool.run({ name: 'sleep', text: 'select pg_sleep($1::float)', values: [seconds] });
const poolOn = (url: string, size: number, statementTimeoutMs: number) =>
  new BytePool({ url, direct: true, name: 'bytes', size, statementTimeoutMs });

it('F080 every byte arrives as it is', async () => {
  const bytes = Buffer.from(Array.from({ length: 200_000 }, (_, i) => i % 256));
  const digest = {
    name: 'digest',
    text: `select encode(sha256($1::bytea), 'hex') as hex, length($1) as n`,
    values: [bytes],
  };
  const [row] = await db.bytePool().run<{ hex: string; n: number }>(digest);
  expect(row).toEqual({ hex: createHash('sha256').update(bytes).digest('hex'), n: bytes.length });
});

it('a connection that was cut while idle is not used again, and one that was cut at work is a passing fault', async () => {
  const pool = db.bytePool(1);
  const admin = await db.session();
  const cut = () =>
    admin.query(`select pg_terminate_backend(pid) from pg_stat_activity
                 where application_name = 'capstan test' and datname = current_database()`);
  await one(pool);
  await cut();
  await until('the pool works again', () =>
    one(pool).then(
      () => true,
      () => false,
    ),
  );
  const cutOff = sleep(pool, 60).catch((error: unknown) => error);
  await until('the statement is at work', async () => {
    const { rows } = await admin.query(
      `select 1 from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()`,
    );
    return rows.length > 0;
  });
  await cut();
  expect(isTransient(await cutOff)).toBe(true);
  expect(await one(pool)).toEqual([{ one: 1 }]);
});

it('a statement that takes too long for the server is a passing fault, and the next has a fresh connection', async () => {
  const pool = poolOn(db.url, 1, 100);
  try {
    const error: unknown = await sleep(pool, 60).catch((fault: unknown) => fault);
    expect(isTransient(error)).toBe(true);
    expect(await one(pool)).toEqual([{ one: 1 }]);
  } finally {
    await pool.close();
  }
});

it('a connection that went silent is given up in time, and the pool comes back with the server', async () => {
  const proxy = await TcpProxy.start(db.url);
  const pool = poolOn(proxy.through, 1, 100);
  const stray: unknown[] = [];
  const note = (error: unknown) => stray.push(error);
  process.on('unhandledRejection', note);
  try {
    await one(pool);
    proxy.goSilent();
    await expect(one(pool)).rejects.toBeInstanceOf(StatementTimeout);
    proxy.refuse();
    expect(isTransient(await one(pool).catch((error: unknown) => error))).toBe(true);
    proxy.speak();
    await proxy.comeUp();
    await until('the pool has a connection again', () =>
      one(pool).then(
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

it('a statement the server refuses is no passing fault', async () => {
  const fault: unknown = await db
    .bytePool()
    .run({ name: 'bad', text: 'select 1 / $1::integer', values: [0] })
    .catch((error: unknown) => error);
  expect(fault).toMatchObject({ code: '22012' });
  expect(isTransient(fault)).toBe(false);
});
