/** The renewal on a real PostgreSQL: whom it renews, whom it doesn't, and what a reap at the same time does to it. */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RenewTx, renewIfAlive } from '../../../src/execution/keeper/renew.sql.js';
import { newId } from '../../../src/kernel/ids.js';
import { createDatabase, type TestDatabase } from '../../database.js';
import { until, Workers } from './keeper.fixture.js';

let database: TestDatabase;
let workers: Workers;

beforeAll(async () => {
  database = await createDatabase();
  workers = await Workers.open(await database.session());
});
afterAll(async () => {
  await database.drop();
});

const txOf = (client: pg.Client): RenewTx => ({
  query: async (text, values) => (await client.query<Record<string, unknown>>(text, [...values])).rows,
});
const renew = (incarnation: string, client = workers.sql, wallMs = Date.now()) =>
  renewIfAlive(txOf(client), { incarnation, ttlMs: 30_000, wallMs });

describe('renewIfAlive', () => {
  it("S4-11 moves the lease of a live worker to one TTL from now, on the database's clock", async () => {
    const id = await workers.insert({ leaseMs: 1_000 });
    const row = await renew(id);
    expect(row?.state).toBe('live');
    expect(row && row.leaseUntilMs - row.nowMs).toBeGreaterThan(29_900);
    expect(await workers.leaseMs(id)).toBeGreaterThan(29_000);
  });

  it('renews a draining worker too and says so, for its tools are still running', async () => {
    const id = await workers.insert({ state: 'draining' });
    expect((await renew(id))?.state).toBe('draining');
    expect(await workers.leaseMs(id)).toBeGreaterThan(29_000);
  });

  it('revives a lease that ran out as long as nobody has reaped the row', async () => {
    const id = await workers.insert({ leaseMs: -60_000 });
    expect((await renew(id))?.state).toBe('live');
    expect(await workers.leaseMs(id)).toBeGreaterThan(29_000);
  });

  it.each(['stopped', 'lost'])('a %s worker is not renewed: that life is over', async (state) => {
    const id = await workers.insert({ state, leaseMs: -1_000 });
    expect(await renew(id)).toBeUndefined();
    expect(await workers.leaseMs(id)).toBeLessThan(0);
  });

  it("notes how far the machine's clock is ahead of the database's, in place", async () => {
    const id = await workers.insert();
    await workers.sql.query('vacuum workers');
    const updates = async () => {
      await workers.sql.query('select pg_stat_force_next_flush()');
      const { rows } = await workers.sql.query(
        `select n_tup_upd::integer as all, n_tup_hot_upd::integer as hot from pg_stat_user_tables where relname = 'workers'`,
      );
      return rows[0] as { all: number; hot: number };
    };
    const before = await updates();
    await renew(id, workers.sql, Date.now() + 3_600_000);
    const { rows } = await workers.sql.query('select clock_ahead_ms::integer as ahead from workers where id = $1', [
      id,
    ]);
    expect(Math.abs(rows[0].ahead - 3_600_000)).toBeLessThan(5_000);
    const after = await updates();
    expect([after.all - before.all, after.hot - before.hot], 'updated in place').toEqual([1, 1]);
  });

  it('an incarnation without a row is over, and another of the same name is left alone', async () => {
    const other = await workers.insert({ leaseMs: 1_000 });
    expect(await renew(newId())).toBeUndefined();
    expect(await workers.leaseMs(other)).toBeLessThan(1_000);
  });

  it('reads its times under whatever date style the role has set', async () => {
    const id = await workers.insert();
    const client = new pg.Client({
      connectionString: database.url,
      options: '-c datestyle=SQL,DMY -c timezone=Asia/Kolkata',
    });
    await client.connect();
    const row = await renew(id, client);
    await client.end();
    expect(Math.abs((row?.nowMs ?? 0) - Date.now())).toBeLessThan(5_000);
  });
});

describe('renewIfAlive against a reap at the same moment', () => {
  /** Holds the row as a reap does, lets a renewal run into it, and ends the reap with `ending`. */
  async function race(id: string, ending: string): Promise<Awaited<ReturnType<typeof renew>>> {
    const [reaper, holder] = await Promise.all([database.session(), database.session()]);
    await reaper.query('begin');
    await reaper.query('select 1 from workers where id = $1 for update', [id]);
    await reaper.query(`update workers set state = 'lost', ended_at = now() where id = $1`, [id]);
    const { rows } = await holder.query('select pg_backend_pid() as pid');
    const renewal = renew(id, holder);
    await until('the renewal waits for the row', async () => {
      const waiting = await workers.sql.query(`select 1 from pg_locks where pid = $1 and not granted`, [rows[0].pid]);
      return waiting.rowCount === 1;
    });
    await reaper.query(ending);
    return renewal;
  }

  it('a reap that commits first wins: the renewal that waited for it changes nothing', async () => {
    const id = await workers.insert({ leaseMs: -1_000 });
    expect(await race(id, 'commit')).toBeUndefined();
    expect(await workers.leaseMs(id)).toBeLessThan(0);
  });

  it('a reap that is rolled back leaves the renewal to revive the lease', async () => {
    const id = await workers.insert({ leaseMs: -1_000 });
    expect((await race(id, 'rollback'))?.state).toBe('live');
    expect(await workers.leaseMs(id)).toBeGreaterThan(29_000);
  });
});
