/** Lists of runs among 300,000 that have ended: each shows what it should, reads by indexes, and looks at a bounded number. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeInput } from '../../src/platform/http/input.js';
import type { PagePlace } from '../../src/platform/http/page.js';
import { listRuns, matchingRuns, type RunFilter } from '../../src/runs/list.sql.js';
import { RunListQuery, runListRequest } from '../../src/runs/run-list.dto.js';
import { Ground } from './ground.fixture.js';

const { fillRuns, LISTS } = await import(new URL('../bench/many-runs.mjs', import.meta.url).href);

const RUNS = 300_000;
/** That one page may read: a walk, its end, and what is counted for it. */
const MOST_ROWS = 90_000;

let ground: Ground;
/** One session, so that it can tell what it has read itself. */
let pool: ReturnType<Ground['db']['pool']>;
beforeAll(async () => {
  ground = await Ground.open();
  pool = ground.db.pool(1);
  await fillRuns(ground.sql, RUNS, ground.organizationId);
}, 120_000);
afterAll(() => ground.close());

function filterOf(query: string): RunFilter {
  const parameters: Record<string, string | string[]> = {};
  for (const name of new Set(new URLSearchParams(query).keys())) {
    const values = new URLSearchParams(query).getAll(name);
    parameters[name] = values.length === 1 ? (values[0] ?? '') : values;
  }
  return runListRequest(decodeInput(RunListQuery, parameters, '?')).filter;
}

function search(filter: RunFilter, after: PagePlace | undefined, limit: number) {
  return { organizationId: ground.organizationId, filter, after, limit };
}

/** Every run that a caller sees who walks the pages to the end; `most` pages at most. */
async function walked(filter: RunFilter, limit: number, most: number): Promise<string[]> {
  const ids: string[] = [];
  let after: PagePlace | undefined;
  for (let page = 0; page < most; page += 1) {
    const { items, next } = await listRuns(pool, search(filter, after, limit));
    expect(items.length).toBeLessThanOrEqual(limit);
    ids.push(...items.map(({ id }) => id));
    if (!next) return ids;
    after = next;
  }
  return ids;
}

/** The first of them as nobody would ask: all rows are read, and told apart one by one. */
async function expected(filter: RunFilter, limit: number): Promise<string[]> {
  const { rows } = await ground.sql.query(
    `select r.id from runs r left join live_runs l on l.run_id = r.id
     where ($1::text[] is null or coalesce(r.state, l.state) = any ($1))
       and ($2::text is null or r.kind = $2) and ($3::text is null or r.queue = $3)
       and ($4::text is null or r.origin = $4) and ($5::text is null or r.principal ->> 'id' = $5)
       and ($6::jsonb is null or r.labels @> $6)
       and ($7::text[] is null or regexp_split_to_array(lower(r.name), '[^a-z0-9]+') @> $7)
     order by r.created_at desc, r.id desc limit $8`,
    [
      filter.states ?? null,
      filter.kind ?? null,
      filter.queue ?? null,
      filter.origin ?? null,
      filter.principal ?? null,
      filter.labels ?? null,
      filter.words?.split(' ') ?? null,
      limit,
    ],
  );
  return rows.map(({ id }) => id);
}

interface Reads {
  readonly seqScans: number;
  readonly rows: number;
}

async function reads(): Promise<Reads> {
  await pool.run((sql) => sql`select pg_stat_force_next_flush()`);
  const [row] = await pool.run<Reads[]>(
    (sql) => sql`
    select sum(seq_scan)::integer as "seqScans", sum(coalesce(idx_tup_fetch, 0) + seq_tup_read)::integer as rows
    from pg_stat_user_tables where relname in ('runs', 'ended_runs', 'live_runs')`,
  );
  return row ?? { seqScans: Number.NaN, rows: Number.NaN };
}

describe.each(LISTS as [title: string, query: string][])('%s', (_, query) => {
  it('F142 reads no table from its beginning to its end, and a bounded number of rows', async () => {
    const filter = filterOf(query);
    const before = await reads();
    await listRuns(pool, search(filter, undefined, 50));
    const after = await reads();
    expect(after.seqScans - before.seqScans).toBe(0);
    expect(after.rows - before.rows).toBeLessThan(MOST_ROWS);
  });

  it('shows the runs it should, each once and newest first, to who walks its pages', async () => {
    const filter = filterOf(query);
    const first = await expected(filter, 1_000);
    expect((await walked(filter, 100, 10 + Math.ceil(RUNS / 10_000))).slice(0, 1_000)).toEqual(first);
    const places = await matchingRuns(pool, search(filter, undefined, 50));
    expect(places.items.map(({ id }) => id)).toEqual(first.slice(0, places.items.length));
  });
});

it('a page that found few among many says where to go on, and the next begins there', async () => {
  const filter = filterOf('queue=retired');
  const { items, next } = await listRuns(pool, search(filter, undefined, 50));
  expect({ items, goesOn: next !== null }).toEqual({ items: [], goesOn: true });
  expect(await walked(filter, 200, 1_000)).toEqual(await expected(filter, RUNS));
});

it('runs of another organization are in no list', async () => {
  const { rows } = await ground.sql.query(
    `insert into organizations (id, name) values (gen_random_uuid(), 'foreign') returning id`,
  );
  for (const [, query] of LISTS) {
    const found = await listRuns(pool, { ...search(filterOf(query), undefined, 50), organizationId: rows[0].id });
    expect(found, query).toEqual({ items: [], next: null });
  }
});

it('times bound what is looked at', async () => {
  const { rows } = await ground.sql.query(
    'select created_at as at from runs where state is not null order by created_at desc offset 150000 limit 1',
  );
  const createdBefore: Date = rows[0].at;
  const createdAfter = new Date(createdBefore.getTime() - 60_000);
  const before = await reads();
  const { items, next } = await listRuns(pool, search({ createdAfter, createdBefore }, undefined, 50));
  expect((await reads()).rows - before.rows).toBeLessThan(500);
  expect([items.length, next]).toEqual([9, null]);
  const narrowed = { createdAfter, createdBefore, kind: 'http' } as const;
  expect((await listRuns(pool, search(narrowed, undefined, 50))).items.map(({ id }) => id)).toEqual(
    items.filter(({ kind }) => kind === 'http').map(({ id }) => id),
  );
});
