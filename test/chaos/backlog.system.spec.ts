/**
 * A replica under a backlog of a million runs, while a session elsewhere holds a snapshot open for a minute. What its
 * claims cost is counted by PostgreSQL, in pages that they touched for each run that they took.
 */
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ServerProcess, startServer, until } from '../server.js';
import { ChaosDatabase } from './database.fixture.js';

const SECONDS = 60;
const QUEUED = 1_000_000;
const ASIDE = 100_000;

let db: ChaosDatabase;
let server: ServerProcess | undefined;
beforeAll(async () => {
  db = await ChaosDatabase.start(['shared_preload_libraries=pg_stat_statements']);
}, 60_000);
afterAll(async () => {
  server?.child.kill('SIGKILL');
  await server?.finished;
  await db?.close();
});

async function start(env: Readonly<Record<string, string>>): Promise<ServerProcess> {
  return startServer({ DATABASE_URL: db.url, CAPSTAN_BOOTSTRAP_TOKEN: 'cap_of_the_backlog_0123456789', ...env });
}

async function fill(queue: string, n: number, notBefore: string | null): Promise<void> {
  await db.query(
    `with made as (
       insert into runs (id, organization_id, kind, queue, priority, labels, spec, spec_digest, origin, principal, root_id,
                         created_at, not_before)
       select id, (select id from organizations limit 1), 'noop', $1, 0, '{}', '{}', 'sha256:none', 'api',
              '{"type":"system","id":"backlog","name":"backlog"}', id, now(), $3
       from (select gen_random_uuid() as id from generate_series(1, $2)) as new
       returning id, organization_id, created_at, queue, priority, not_before
     )
     insert into live_runs (run_id, organization_id, created_at, run_day, state, queue, priority, not_before)
     select id, organization_id, created_at, (created_at at time zone 'UTC')::date, 'pending', queue, priority, not_before
     from made`,
    [queue, n, notBefore],
  );
}

interface Cost {
  readonly calls: number;
  readonly rows: number;
  readonly pages: number;
}

/** What the claims behind a mark have cost since the last time, and those from the front. */
async function costs(): Promise<{ readonly marked: Cost; readonly front: Cost }> {
  const rows = await db.query<Cost & { readonly marked: boolean }>(
    `select query like '%jsonb_to_recordset%' as marked, sum(calls)::integer as calls, sum(rows)::integer as rows,
            sum(shared_blks_hit + shared_blks_read)::float8 as pages
     from pg_stat_statements where query like '%candidate as materialized%' group by 1`,
  );
  await db.query('select pg_stat_statements_reset()');
  const of = (marked: boolean) => rows.find((row) => row.marked === marked) ?? { calls: 0, rows: 0, pages: 0 };
  return { marked: of(true), front: of(false) };
}

it('F014 F017 with a million runs queued and a snapshot held open for a minute its claims cost what they cost at first', {
  timeout: 600_000,
}, async () => {
  const first = await start({ CAPSTAN_SLOTS: '0' });
  first.child.kill('SIGTERM');
  await first.finished;
  await fill('backlog', QUEUED, null);
  await fill('paused', ASIDE, null);
  await fill('later', ASIDE, '2100-01-01T00:00:00Z');
  await db.query(
    `insert into paused_queues (name, at, by, by_name, reason) values ('paused', now(), 'tok_test', 'test', 'a test')`,
  );
  await db.query('create extension pg_stat_statements');
  await db.query('vacuum analyze live_runs');
  const holder = new pg.Client(db.directUrl);
  await holder.connect();
  await holder.query('begin isolation level repeatable read');
  await holder.query('select count(*) from paused_queues');

  server = await start({ CAPSTAN_QUEUES: '*', CAPSTAN_SLOTS: '100', CAPSTAN_LOG_LEVEL: 'warn' });
  const taken = async () => QUEUED - (await left('backlog'));
  await until('the replica works', async () => (await taken()) > 2_000, 60_000);
  await costs();
  await pause(SECONDS / 6);
  const early = await costs();
  await pause(SECONDS - SECONDS / 3);
  await costs();
  await pause(SECONDS / 6);
  const late = await costs();
  await holder.query('rollback');
  await holder.end();

  const perRun = ({ pages, rows }: Cost) => pages / rows;
  const n = await taken();
  expect(n, 'enough to walk over').toBeGreaterThan(10_000);
  expect(perRun(late.marked)).toBeLessThan(1.5 * perRun(early.marked));
  expect(late.front.calls, 'it looks from the front about once a second').toBeLessThan(2 * (SECONDS / 6));
  expect(late.front.calls).toBeGreaterThan(0);
  expect([await left('paused'), await left('later')]).toEqual([ASIDE, ASIDE]);
  expect(server.log(), 'nothing was given up').not.toMatch(/"code":"(loop_failed|db_\w+|run_\w+_retried)"/);
});

async function left(queue: string): Promise<number> {
  const [row] = await db.query<{ n: number }>('select count(*)::integer as n from live_runs where queue = $1', [queue]);
  return row?.n ?? 0;
}

/** Time in which the replica works: this is what the test is about. */
const pause = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
