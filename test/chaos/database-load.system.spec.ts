/** A database that is short of connections, far away, or refuses transactions that got into each other's way. */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../server.js';
import { CLEAN } from './effects.fixture.js';
import { Load } from './load.fixture.js';
import { scaled } from './scale.js';
import { Stage } from './stage.fixture.js';
import { Watch } from './watch.fixture.js';

/** Far fewer than the 84 that four replicas may open; PostgreSQL keeps three of them for superusers. */
const MAX_CONNECTIONS = 30;
const TTL_MS = 15_000;

describe('four replicas on a database with far fewer connections than they may open, of which others take what is left', () => {
  let stage: Stage;
  let watch: Watch;

  beforeAll(async () => {
    stage = await Stage.open(['r1', 'r2', 'r3', 'r4'], { flags: [`max_connections=${MAX_CONNECTIONS}`] });
    watch = Watch.over(stage.all());
  });
  afterAll(() => stage?.close());

  it('F041 leases are renewed in time however few connections are left, and nothing is lost', async () => {
    const tools = await Promise.all([1, 2, 3, 4].map(() => stage.submit(stage.effects.tool(scaled(15, 60)))));
    await stage.untilRunning(4);
    const before = await lives();
    const load = Load.start(stage, { perSecond: 10 });
    const eaters = await eat();
    let isOver = false;
    const thinnest = thinnestLease(() => isOver);
    await wait(scaled(6_000, 40_000));
    // All four come back at once, to a server that has room for half of them.
    await stage.db.restart('fast');
    await wait(scaled(8_000, 40_000));
    await Promise.all(eaters.map((client) => client.end().catch(() => undefined)));
    await load.stop();
    isOver = true;
    expect(await thinnest).toBeGreaterThan(TTL_MS / 2);
    expect(Object.keys(load.statuses).filter((status) => !['201', '503'].includes(status))).toEqual([]);
    const ended = await stage.untilEnded(60_000);
    expect(ended.filter(({ id }) => tools.includes(id)).map(({ state }) => state)).toEqual(Array(4).fill('succeeded'));
    expect(await load.faults()).toEqual([]);
    expect(await lives()).toEqual(before);
    await until('everybody is ready', () => watch.allReady());
    expect(watch.faults()).toEqual([]);
    await watch.stop();
  });

  async function lives(): Promise<unknown[]> {
    return stage.db.query('select id, name, state from workers order by id');
  }

  /** The shortest time that any lease still held, as looked at all the time. */
  async function thinnestLease(isOver: () => boolean): Promise<number> {
    let thinnestMs = TTL_MS;
    while (!isOver()) {
      const [row] = await stage.db
        .query<{ ms: number }>(
          'select min(extract(epoch from lease_until - clock_timestamp()) * 1000)::float8 as ms from workers where ended_at is null',
        )
        .catch(() => []);
      thinnestMs = Math.min(thinnestMs, row?.ms ?? TTL_MS);
      await wait(200);
    }
    return thinnestMs;
  }

  /** Sessions of others, until there is room for no more. */
  async function eat(): Promise<pg.Client[]> {
    const clients: pg.Client[] = [];
    for (;;) {
      const client = new pg.Client({ connectionString: stage.db.url });
      client.on('error', () => undefined);
      try {
        await client.connect();
      } catch {
        return clients;
      }
      clients.push(client);
    }
  }
});

describe('three replicas whose transactions get into the way of others', () => {
  let stage: Stage;
  let watch: Watch;

  beforeAll(async () => {
    stage = await Stage.open(['r1', 'r2', 'r3'], { env: { CAPSTAN_SLOTS: '10' } });
    watch = Watch.over(stage.all());
  });
  afterAll(() => stage?.close());

  it('F155 deadlocks and serialization failures are retried: no caller sees one, no loop ends, no run is lost', async () => {
    await stage.db.query(`
      create function get_in_the_way() returns trigger language plpgsql as $$
      begin
        if random() < 0.01 then raise exception 'could not serialize' using errcode = '40001'; end if;
        return new;
      end $$`);
    await stage.db.query(
      'create trigger in_the_way before update on live_runs for each row execute function get_in_the_way()',
    );
    const deadlocks = async () =>
      (await stage.db.query<{ n: number }>('select sum(deadlocks)::integer as n from pg_stat_database'))[0]?.n ?? 0;
    const before = await deadlocks();
    const load = Load.start(stage, {
      perSecond: 15,
      body: () => ({ kind: 'command', spec: { argv: ['sleep', '0.6'] } }),
    });
    const answers: Record<number, number> = {};
    const [endAt, givenUpAt] = [Date.now() + scaled(8_000, 600_000), Date.now() + scaled(90_000, 700_000)];
    let isOver = false;
    const crossing = cross(() => !isOver);
    // Whether two get into each other's way is chance: at least one deadlock is waited for.
    const isWanted = async () => Date.now() < endAt || ((await deadlocks()) === before && Date.now() < givenUpAt);
    for (let round = 0; await isWanted(); round += 1) {
      const ids = [...load.acknowledged.values()].slice(-60).filter((_, i) => i % 3 === 0);
      const cancels = ids.map((id, i) =>
        stage.call(stage.all()[(round + i) % 3] ?? '', 'POST', `/v1/runs/${id}/cancel`),
      );
      const answered = await Promise.all(cancels.map((cancel) => cancel.catch(() => ({ status: 0 }))));
      for (const { status } of answered) answers[status] = (answers[status] ?? 0) + 1;
      await wait(400);
    }
    isOver = true;
    await crossing;
    await load.stop();
    await stage.db.query('drop trigger in_the_way on live_runs');
    await stage.untilEnded(60_000);
    const provoked = (await deadlocks()) - before;
    expect(provoked).toBeGreaterThan(0);
    expect(Object.keys(answers).filter((status) => !['200', '202', '409', '503'].includes(status))).toEqual([]);
    expect(await load.faults()).toEqual([]);
    expect(await stage.faults()).toEqual([]);
    expect(watch.faults()).toEqual([]);
  });

  it('F008 runs are executed once each over 200 ms of latency, with the database restarted in the middle', async () => {
    for (const { proxy } of stage.all()) proxy.latencyMs = 100;
    await stage.db.terminate();
    const count = scaled(60, 500);
    const runs = await Promise.all(Array.from({ length: count }, () => stage.submit(stage.effects.tool(0))));
    await until(
      'some have ended',
      async () => (await stage.ended()).filter(({ id }) => runs.includes(id)).length > count / 3,
      60_000,
    );
    await stage.db.restart('immediate');
    const ended = (await stage.untilEnded(120_000)).filter(({ id }) => runs.includes(id));
    expect(ended).toHaveLength(count);
    expect(new Set(ended.map(({ state }) => state))).toEqual(new Set(['succeeded']));
    expect(await stage.effects.judge(ended)).toEqual(CLEAN);
    expect(await stage.faults()).toEqual([]);
    expect(watch.faults()).toEqual([]);
    await watch.stop();
  });

  /**
   * Locks live runs in the order opposite to everybody else's. While one end of a replica is held up, its next ones go
   * out together; then the newest of them is held, so that their statement has the older ones and waits, and one of
   * those is asked for.
   */
  async function cross(isWanted: () => boolean): Promise<void> {
    const [first, second] = await Promise.all([connected(), connected()]);
    while (isWanted()) {
      await Promise.all([first.query('begin'), second.query('begin')]);
      try {
        const { rows } = await first.query<{ id: string; holder: string }>(
          `select run_id as id, holder from live_runs
           where holder = (select holder from live_runs where state = 'running' group by holder order by count(*) desc limit 1)
           order by run_id limit 20 for update skip locked`,
        );
        const [oldest, newest] = [rows.at(0), rows.at(-1)];
        if (oldest && newest && oldest !== newest) {
          await first.query('rollback');
          await first.query('begin');
          await first.query('select from live_runs where run_id = $1 for update', [oldest.id]);
          await second.query('select from live_runs where run_id = $1 for update', [newest.id]);
          await wait(900);
          await first.query('rollback');
          await wait(200);
          for (const { id } of rows.slice(1, -1)) {
            await second.query('select from live_runs where run_id = $1 for update', [id]);
          }
        }
      } catch {
        // It was the one that the deadlock chose.
      }
      await Promise.all([first.query('rollback'), second.query('rollback')]);
      await wait(100);
    }
    await Promise.all([first.end(), second.end()]);
  }

  async function connected(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: stage.db.directUrl });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }
});

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
