/** What is counted of statements: each once, by what became of it. */
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { BytePool } from '../../../src/platform/db/byte-pool.js';
import { Pool } from '../../../src/platform/db/db.js';
import { DatabaseMetrics } from '../../../src/platform/db/db.metrics.js';
import { createDatabase, type TestDatabase } from '../../database.js';
import { readExposition, valueIn } from '../../exposition.js';
import { until } from '../../server.js';
import { TcpProxy } from '../../tcp-proxy.js';

let db: TestDatabase;
let registry: Registry;
let metrics: DatabaseMetrics;
beforeAll(async () => {
  db = await createDatabase();
});
beforeEach(() => {
  registry = new Registry();
  metrics = new DatabaseMetrics(registry);
});
afterAll(() => db.drop());

function poolOn(url: string, statementTimeoutMs = 5_000): Pool {
  const log = pino({ level: 'silent' });
  return new Pool({ url, direct: true, name: 'work', size: 1, statementTimeoutMs, log, watch: metrics.of('work') });
}

const execute = (pool: Pool, text: string) => pool.run((sql) => sql.unsafe(text)).catch(() => undefined);
const value = async (name: string, labels: Record<string, string> = {}) =>
  valueIn(readExposition(await registry.metrics()), name, { pool: 'work', ...labels });
const answers = () => value('capstan_db_statement_seconds_count');
/** The kinds that are not at 0. */
async function errors(pool = 'work'): Promise<Record<string, number>> {
  const family = readExposition(await registry.metrics()).get('capstan_db_errors_total');
  const mine = family?.samples.filter(({ labels, value }) => labels.pool === pool && value > 0) ?? [];
  return Object.fromEntries(mine.map(({ labels, value }) => [labels.kind ?? '', value]));
}

it('has all its lines from the start', async () => {
  metrics.of('work');
  expect(await answers()).toBe(0);
  for (const kind of [
    'overloaded',
    'timeout',
    'no_room',
    'lock',
    'conflict',
    'read_only',
    'data',
    'connection',
    'other',
  ]) {
    expect(await value('capstan_db_errors_total', { kind }), kind).toBe(0);
  }
});

it('tells what was carried out from what was not, and why not, without any text of it', async () => {
  const pool = poolOn(db.url, 200);
  await execute(pool, 'create table t (n integer unique)');
  await execute(pool, 'insert into t values (1)');
  await execute(pool, 'insert into t values (1)');
  await execute(pool, 'select no_such_thing');
  await execute(pool, 'select pg_sleep(60)');
  await execute(pool, `set lock_timeout = '10ms'`);
  const holder = await db.session();
  await holder.query('begin; lock table t');
  await execute(pool, 'select * from t');
  await holder.query('rollback');
  await execute(pool, 'set default_transaction_read_only = on');
  await execute(pool, 'insert into t values (2)');
  expect(await errors()).toEqual({ data: 1, other: 1, timeout: 1, lock: 1, read_only: 1 });
  expect(await answers()).toBe(4);
  expect(await registry.metrics()).not.toContain('no_such_thing');
  await pool.close();
});

it('counts a statement that found no connection in time, and one whose connection broke', async () => {
  const proxy = await TcpProxy.start(db.url);
  const pool = poolOn(proxy.through, 500);
  await execute(pool, 'select 1');
  proxy.goSilent();
  const first = execute(pool, 'select 2');
  await until('it is under way', () => pool.inFlight === 1);
  const second = execute(pool, 'select 3');
  expect(pool.waiting).toBe(1);
  await Promise.all([first, second]);
  const counted = await errors();
  expect(Object.values(counted).reduce((sum, n) => sum + n, 0)).toBe(2);
  expect(counted.timeout).toBeGreaterThanOrEqual(1);
  await proxy.close();
  await execute(pool, 'select 4');
  expect((await errors()).connection).toBe(1);
  expect(await answers()).toBe(1);
  await pool.close();
});

it('counts those that carry bytes as well', async () => {
  const options = { url: db.url, direct: true, name: 'output', size: 1, statementTimeoutMs: 5_000 };
  const pool = new BytePool({ ...options, watch: metrics.of('output') });
  await pool.run({ name: 'one', text: 'select $1::bytea', values: [Buffer.from('x')] });
  await pool.run({ name: 'two', text: 'select 1/0', values: [] }).catch(() => undefined);
  const families = readExposition(await registry.metrics());
  expect(valueIn(families, 'capstan_db_statement_seconds_count', { pool: 'output' })).toBe(1);
  expect(await errors('output')).toEqual({ data: 1 });
  await pool.close();
});
