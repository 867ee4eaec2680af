/** A role that may have fewer connections than its processes would open: they take turns, and the lease comes first. */
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { BytePool } from '../../../src/platform/db/byte-pool.js';
import { isNoRoom, isTransient, Pool, TRIM_EVERY_MS } from '../../../src/platform/db/db.js';
import { Room } from '../../../src/platform/db/room.js';
import { createDatabase, type TestDatabase } from '../../database.js';
import { startServer, until } from '../../server.js';

const ROLE = `limited_${randomUUID().slice(0, 8)}`;
const TOKEN = 'a-token-of-the-operator-0123456789';
const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
const QUIET = pino({ level: 'silent' });

let db: TestDatabase;
let url: string;
let session: pg.Client;
beforeAll(async () => {
  db = await createDatabase({ empty: true });
  session = await db.session();
  await session.query(`create role ${ROLE} login password 'secret'`);
  const { rows } = await session.query<{ name: string }>('select current_database() as name');
  await session.query(`alter database ${rows[0]?.name} owner to ${ROLE}`);
  url = Object.assign(new URL(db.url), { username: ROLE, password: 'secret' }).href;
});
afterAll(async () => {
  await session.query(`reassign owned by ${ROLE} to current_user`);
  await session.query(`drop owned by ${ROLE}`);
  await session.query(`drop role ${ROLE}`);
  await db.drop();
});

async function limitTo(count: number): Promise<void> {
  await session.query(`alter role ${ROLE} connection limit ${count}`);
}

async function connections(name = '%'): Promise<number> {
  const { rows } = await session.query<{ n: number }>(
    'select count(*)::integer as n from pg_stat_activity where usename = $1 and application_name like $2',
    [ROLE, name],
  );
  return rows[0]?.n ?? 0;
}

/** One process's pools: what it has learned of the room is known to both. */
function processOf(name: string) {
  const room = new Room();
  const lost: string[] = [];
  const onSessionLost = () => void lost.push(name);
  const options = { url, direct: true, name, size: 4, statementTimeoutMs: 5_000, log: QUIET, room, onSessionLost };
  const pool = new Pool(options);
  const bytes = new BytePool(options);
  return { room, lost, pool, bytes, close: () => Promise.all([pool.close(), bytes.close()]) };
}

const nap = (pool: Pool) => pool.run((sql) => sql`select pg_sleep(0.01)`);
const byteNap = (bytes: BytePool) => bytes.run({ name: 'nap', text: 'select pg_sleep(0.01)', values: [] });

/** Until it is done; how often it wasn't. */
async function patiently(work: () => Promise<unknown>): Promise<number> {
  for (let refusals = 0; ; refusals += 1) {
    try {
      await work();
      return refusals;
    } catch (error) {
      if (!isTransient(error) || refusals > 200) throw error;
    }
  }
}

it('F041 two processes that would open sixteen connections where they may have two both get their work done', async () => {
  await limitTo(2);
  const processes = [processOf('one'), processOf('two')];
  try {
    const work = processes.flatMap(({ pool, bytes }) =>
      Array.from({ length: 8 }, async () => {
        let refusals = 0;
        for (let i = 0; i < 10; i += 1) {
          refusals += await patiently(() => nap(pool));
          refusals += await patiently(() => byteNap(bytes));
        }
        return refusals;
      }),
    );
    const refusals = (await Promise.all(work)).reduce((sum, each) => sum + each, 0);
    expect(refusals).toBeGreaterThan(0);
    await until('nothing is kept that is not used', async () => (await connections()) === 0);
  } finally {
    await Promise.all(processes.map(({ close }) => close()));
  }
});

it('a statement for which there is no connection is refused at once, and each try is followed by a rest', async () => {
  await limitTo(0);
  const { pool, bytes, lost, close } = processOf('none');
  try {
    const begunAt = performance.now();
    const tries = Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? nap(pool) : byteNap(bytes)));
    const more = Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? nap(pool) : byteNap(bytes)));
    const seen = await Promise.allSettled(tries);
    expect(seen.every((each) => each.status === 'rejected' && isNoRoom(each.reason))).toBe(true);
    await Promise.race(more.map((each) => each.catch(() => undefined)));
    expect(performance.now() - begunAt).toBeGreaterThan(500);
    await Promise.allSettled(more);
    expect(lost, 'what was never had is not lost').toEqual([]);
  } finally {
    await close();
  }
});

it('what a pool has open and does not use is closed when another is refused a connection', async () => {
  await limitTo(-1);
  const { pool, bytes, room, lost, close } = processOf('full');
  try {
    await Promise.all([...Array(4)].flatMap(() => [nap(pool), byteNap(bytes)]));
    expect(await connections()).toBe(8);
    room.noteRefused();
    await until('they are closed', async () => (await connections()) === 0);
    await Promise.all([nap(pool), byteNap(bytes)]);
    await until('they are used once', async () => (await connections()) === 0);
    expect(lost).toEqual([]);
  } finally {
    await close();
  }
});

it('while the lease keeper is refused no pool opens a connection', async () => {
  await limitTo(-1);
  const { pool, bytes, room, close } = processOf('second');
  try {
    room.noteKeeperRefused();
    const refusals = await Promise.allSettled([nap(pool), byteNap(bytes)]);
    expect(refusals.map((each) => each.status === 'rejected' && isNoRoom(each.reason))).toEqual([true, true]);
    await until('they may again', () => Promise.all([nap(pool), byteNap(bytes)]).catch(() => undefined), 5_000);
  } finally {
    await close();
  }
});

it('what a burst has opened is closed when it was not needed for a while; what is needed stays', async () => {
  await limitTo(-1);
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const { pool, bytes, lost, close } = processOf('burst');
  try {
    await Promise.all([...Array(4)].flatMap(() => [nap(pool), byteNap(bytes)]));
    vi.advanceTimersByTime(TRIM_EVERY_MS);
    for (let i = 0; i < 8; i += 1) await Promise.all([nap(pool), byteNap(bytes)]);
    expect(await connections()).toBe(8);
    vi.advanceTimersByTime(TRIM_EVERY_MS);
    await Promise.all([nap(pool), byteNap(bytes)]);
    await until('one each is left', async () => (await connections()) === 2);
    vi.advanceTimersByTime(TRIM_EVERY_MS);
    vi.advanceTimersByTime(TRIM_EVERY_MS);
    await until('none is left', async () => (await connections()) === 0);
    expect(lost).toEqual([]);
  } finally {
    await close();
    vi.useRealTimers();
  }
});

it('F041 a lease keeper that is refused gets the connection that its own process gives back', async () => {
  await limitTo(-1);
  const server = await startServer({ DATABASE_URL: url, CAPSTAN_BOOTSTRAP_TOKEN: TOKEN });
  const logged = (code: string) => server.log().includes(`"code":"${code}"`);
  try {
    await Promise.all(Array.from({ length: 40 }, () => fetch(`${server.url}/v1/runs`, { headers })));
    await limitTo((await connections()) - 1);
    await session.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1 and usename = $2',
      ['capstan keeper', ROLE],
    );
    await until('the keeper is refused', () => logged('lease_renewal_failing'));
    await until('the lease is renewed', () => logged('lease_renewal_recovered'), 5_000);
    expect(await connections('capstan keeper')).toBe(1);
    expect((await fetch(`${server.url}/v1/runs`, { headers })).status).toBeOneOf([200, 503]);
  } finally {
    server.child.kill('SIGKILL');
    await server.finished;
  }
});
