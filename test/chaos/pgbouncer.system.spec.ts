/** Through a pooler in transaction mode: everything works, and no client's settings reach another's statements. */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../server.js';
import { CLEAN } from './effects.fixture.js';
import { Load } from './load.fixture.js';
import { type PgBouncer, startPgBouncer } from './pgbouncer.fixture.js';
import { Stage } from './stage.fixture.js';
import { Watch } from './watch.fixture.js';

describe('behind PgBouncer in transaction mode', () => {
  let stage: Stage;
  let pooler: PgBouncer;

  beforeAll(async () => {
    stage = await Stage.open([]);
    pooler = await startPgBouncer(stage.db.url, 6);
    const env = { DATABASE_URL: pooler.url, DATABASE_DIRECT_URL: stage.db.url };
    await Promise.all(['r1', 'r2'].map((name) => stage.add(name, { env })));
  });
  afterAll(async () => {
    await pooler?.close();
    await stage?.close();
  });

  it('F036 runs are submitted, executed, followed and canceled, over few connections for many clients', async () => {
    const watch = Watch.over(stage.all());
    const load = Load.start(stage, {
      perSecond: 8,
      body: () => ({ kind: 'command', spec: { argv: ['echo', 'hello'] } }),
    });
    const [r1, r2] = [stage.get('r1'), stage.get('r2')];
    const long = await stage.submit(stage.effects.tool(60));
    await until('the long run is running', async () => (await stage.live()).running);
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    for (const path of [
      '/v1/runs',
      `/v1/runs/${long}`,
      `/v1/runs/${long}/events`,
      '/v1/workers',
      '/v1/audit/verify',
      '/metrics',
    ]) {
      const answer = await fetch(r1.url + path, {
        headers: { authorization: 'Bearer a-token-of-the-operator-0123456789' },
      });
      expect([path, answer.status]).toEqual([path, 200]);
    }
    await load.stop();
    await until('the long run is running', async () => (await stage.live()).running);
    expect((await stage.call(r2, 'POST', `/v1/runs/${long}/cancel`)).status).toBeLessThan(300);
    const ended = await stage.untilEnded(60_000);
    expect(ended.filter(({ state }) => state !== 'succeeded').map(({ id }) => id)).toEqual([long]);
    expect(await load.faults()).toEqual([]);
    expect(load.statuses).toEqual({ 201: load.acknowledged.size });
    expect(await stage.effects.judge(ended.filter(({ id }) => id === long))).toEqual(CLEAN);
    expect(watch.faults()).toEqual([]);
    await watch.stop();
    expect(await stage.faults()).toEqual([]);
  });

  it('F036 leaves no setting behind on a connection that the next client gets', async () => {
    const settings = [
      'search_path',
      'statement_timeout',
      'lock_timeout',
      'synchronous_commit',
      'transaction_read_only',
    ];
    const seen = async (url: string) => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      const { rows } = await client.query('select name, setting from pg_settings where name = any ($1) order by name', [
        settings,
      ]);
      await client.end();
      return JSON.stringify(rows);
    };
    const direct = await seen(stage.db.directUrl);
    const through = await Promise.all(Array.from({ length: 12 }, () => seen(pooler.url)));
    expect(new Set(through)).toEqual(new Set([direct]));
  });

  it('F036 holds the session of the keeper past the pooler, and no lock of a session', async () => {
    const sessions = await stage.db.query<{ name: string; n: number }>(
      `select application_name as name, count(*)::integer as n from pg_stat_activity
       where application_name like 'capstan%' group by 1 order by 1`,
    );
    const names = sessions.map(({ name }) => name);
    expect(sessions.find(({ name }) => name === 'capstan keeper')?.n).toBe(2);
    expect(names).toContain('capstan listen');
    expect(await stage.db.query(`select * from pg_locks where locktype = 'advisory'`)).toEqual([]);
  });
});
