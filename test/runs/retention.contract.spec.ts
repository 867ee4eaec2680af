/** What is kept no longer goes, with all that belongs to it; nothing else does, whoever removes and however many at once. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { encodeId, newId } from '../../src/kernel/ids.js';
import { END_STATES } from '../../src/kernel/run-words.js';
import { ensurePartitions } from '../../src/runs/partitions.sql.js';
import { expectLaws } from '../doctor/laws.fixture.js';
import { Ground } from './ground.fixture.js';
import {
  DAY_MS,
  daysAgo,
  digestOfEnds,
  endedRuns,
  NOTHING,
  partitionDays,
  removals,
  rowsOf,
  sweeper,
} from './retention.fixture.js';

let ground: Ground;
beforeEach(async () => {
  ground = await Ground.open();
});
afterEach(() => ground.close());

const MANY = Array.from({ length: 30 }, () => ({}));

describe('a removal', () => {
  it('S1-25 C18 takes old runs with their list, events, output and cuts; what the chain says of them stays', async () => {
    const old = await endedRuns(ground, { days: 31, output: 'said' }, {}, {}, {});
    await ground.sql.query(
      `insert into run_output_cuts select run_day, run_id, fence, 1, 2, 4, 4, 1, 0 from run_output where run_id = $1`,
      [old[0]],
    );
    const young = await endedRuns(ground, { days: 29, output: 'said' }, {});
    const before = await rowsOf(ground, young);
    await sweeper(ground.pool).pass();
    expect(await rowsOf(ground, old)).toEqual(NOTHING);
    expect(await rowsOf(ground, young)).toEqual(before);
    expect((await ground.look(old[0] ?? '')).entries).toEqual(['run.submitted', 'run.ended']);
    await expectLaws(ground.db.url);
  });

  it('C18 is itself an entry: counts, span, and a digest that the entries of the ends give again', async () => {
    const ids = await endedRuns(ground, { days: 40, output: 'four' }, {}, {});
    await sweeper(ground.pool).pass();
    const { rows } = await ground.sql.query(
      `select min(claim::json #>> '{payload,endedAt}') as oldest, max(claim::json #>> '{payload,endedAt}') as newest
       from audit_entries where action = 'run.ended'`,
    );
    expect(await removals(ground)).toEqual([
      {
        action: 'runs.removed',
        object: 'runs',
        principal: expect.stringMatching(/^wrk_/),
        principalName: 'sweeper',
        runs: 2,
        events: 4,
        outputChunks: 2,
        outputBytes: 8,
        before: expect.stringMatching(/Z$/),
        oldestEndedAt: rows[0].oldest,
        newestEndedAt: rows[0].newest,
        digest: await digestOfEnds(ground, ids),
      },
    ]);
  });

  it('counts and deletes the same where the rows of a day are deleted one by one, its partition being needed', async () => {
    const ids = await endedRuns(ground, { days: 40, output: 'four' }, {}, {});
    const [live] = await pendingSince(40, {});
    await sweeper(ground.pool).pass();
    expect(await rowsOf(ground, ids)).toEqual(NOTHING);
    expect(await removals(ground)).toMatchObject([{ runs: 2, events: 4, outputChunks: 2, outputBytes: 8 }]);
    expect(await rowsOf(ground, [live ?? ''])).toMatchObject({ runs: 1, live: 1, events: 1 });
    expect(await partitionDays(ground)).toContain(40);
  });

  it('F018 leaves nothing in any table that grew with the runs, the record apart', async () => {
    const grown = async () => {
      const { rows } = await ground.sql.query(
        `select sum((xpath('/row/n/text()', query_to_xml('select count(*) as n from ' || c.oid::regclass, false, true, '')))[1]::text::bigint)::integer as n,
                regexp_replace(relname, '_(\\d{8}|default)$', '') as relname
         from pg_class c where relkind = 'r' and relnamespace = 'public'::regnamespace group by 2`,
      );
      return Object.fromEntries(rows.map(({ relname, n }) => [relname, n]));
    };
    const before = await grown();
    await endedRuns(ground, { days: 100, output: 'x' }, ...MANY.map(() => ({ key: newId(), labels: { a: 'b' } })));
    const loaded = await grown();
    expect(loaded.runs).toBe(30);
    expect(loaded.idempotency_keys).toBe(30);
    await sweeper(ground.pool).pass();
    const { audit_entries, workers, ...after } = await grown();
    expect(after).toEqual({ ...before, audit_entries: undefined, workers: undefined });
  });

  it('goes in batches of a bounded size, each an entry of its own', async () => {
    await endedRuns(ground, { days: 50, output: 'x'.repeat(40 * 1024) }, ...MANY);
    const steps = await sweeper(ground.pool).pass();
    expect(steps).toBeGreaterThan(2);
    expect(await removals(ground)).toHaveLength(1);
  });
});

/** Runs made so many days ago that have not ended. */
async function pendingSince(days: number, ...overs: object[]): Promise<string[]> {
  await daysAgo(ground, days);
  const runs = await ground.submit(...overs);
  await daysAgo(ground, 0);
  return runs.map(({ id }) => id);
}

describe('what stays', () => {
  it('F145 a run that has not ended, however old, in every state there is', async () => {
    await daysAgo(ground, 300);
    await ensurePartitions(ground.pool, 0);
    await daysAgo(ground, 0);
    const worker = await ground.worker();
    const states = ['held', 'pending', 'claimed', 'running', 'parked'] as const;
    const live: string[] = [];
    for (const state of states) live.push(await ground.runIn(state, { holder: worker }));
    await ground.sql.query(`update runs set created_at = created_at - interval '300 days'`);
    await ground.sql.query(
      `update live_runs set created_at = created_at - interval '300 days', run_day = run_day - 300`,
    );
    const ended = await endedRuns(ground, { days: 300 }, {});
    const before = await rowsOf(ground, live);
    await sweeper(ground.pool, DAY_MS).pass();
    expect(await rowsOf(ground, live)).toEqual(before);
    expect(before).toMatchObject({ runs: 5, live: 5 });
    expect(await rowsOf(ground, ended)).toEqual(NOTHING);
  });

  it('a run that ended lately, although it was made long ago', async () => {
    const late = await endedRuns(ground, { days: 300, endedDays: 2 }, {}, {});
    const early = await endedRuns(ground, { days: 300, endedDays: 299 }, {}, {});
    await sweeper(ground.pool).pass();
    expect(await rowsOf(ground, late)).toMatchObject({ runs: 2, listed: 2, events: 4 });
    expect(await rowsOf(ground, early)).toEqual(NOTHING);
  });

  it('a run that has a live row, whatever its record says', async () => {
    const [id = ''] = await endedRuns(ground, { days: 40 }, {});
    await ground.sql.query(
      `insert into live_runs (run_id, organization_id, created_at, run_day, state, queue, priority)
       select id, organization_id, created_at, (created_at at time zone 'UTC')::date, 'pending', queue, 0 from runs`,
    );
    await sweeper(ground.pool).pass();
    expect(await rowsOf(ground, [id])).toMatchObject({ runs: 1, live: 1, events: 2 });
  });

  it('F145 the family of a run that lives: its ended children, and the ended parents between', async () => {
    const [root = ''] = await pendingSince(50, {});
    const [middle = '', leaf = ''] = await endedRuns(ground, { days: 50 }, {}, {});
    await adopt(root, root, middle);
    await adopt(middle, root, leaf);
    await sweeper(ground.pool).pass();
    expect(await rowsOf(ground, [root, middle, leaf])).toMatchObject({ runs: 3, listed: 2 });
  });

  it('a parent until its children are gone, and then not', async () => {
    const [parent = '', child = ''] = await endedRuns(ground, { days: 50 }, {}, {});
    await adopt(parent, parent, child);
    const { pass } = sweeper(ground.pool);
    await pass();
    expect(await rowsOf(ground, [parent])).toMatchObject({ runs: 1 });
    expect(await rowsOf(ground, [child])).toEqual(NOTHING);
    await pass();
    expect(await rowsOf(ground, [parent])).toEqual(NOTHING);
  });

  it.each(END_STATES)('nothing of what ended %s', async (state) => {
    const [id = ''] = await endedRuns(ground, { days: 50 }, {});
    await ground.sql.query('alter table runs disable trigger user');
    await ground.sql.query('update runs set state = $1 where id = $2', [state, id]);
    await ground.sql.query('update ended_runs set state = $1', [state]);
    await sweeper(ground.pool).pass();
    expect(await rowsOf(ground, [id])).toEqual(NOTHING);
  });
});

async function adopt(parent: string, root: string, child: string): Promise<void> {
  await ground.sql.query('alter table runs disable trigger user');
  await ground.sql.query('update runs set parent_id = $1, root_id = $2 where id = $3', [parent, root, child]);
  await ground.sql.query('alter table runs enable trigger user');
}

describe('S1-26 each organization', () => {
  it('keeps its runs for as long as it says, and the others for as long as the setting says', async () => {
    const mine = await endedRuns(ground, { days: 10, output: 'x' }, {});
    const organizationId = newId();
    const chain = encodeId('org', organizationId);
    await ground.sql.query(`insert into organizations (id, name) values ($1, 'brief')`, [organizationId]);
    await ground.sql.query(`insert into audit_heads (chain_id, organization_id) values ($2, $1)`, [
      organizationId,
      chain,
    ]);
    const theirs = await endedRuns(ground, { days: 10, output: 'x' }, { organizationId, chain });
    await ground.sql.query(`update organizations set retention_ms = $1 where id = $2`, [DAY_MS, organizationId]);
    await sweeper(ground.pool).pass();
    expect(await rowsOf(ground, theirs)).toEqual(NOTHING);
    expect(await rowsOf(ground, mine)).toMatchObject({ runs: 1, listed: 1, events: 2, output: 1 });
    expect(await removals(ground), 'each chain tells of its own').toEqual([]);
  });
});

describe('several replicas at once', () => {
  it('F145 remove each run once, and say so once', async () => {
    const ids = await endedRuns(ground, { days: 45 }, ...MANY);
    const sweepers = Array.from({ length: 3 }, () => sweeper(ground.pool));
    await Promise.all(sweepers.map(({ pass }) => pass()));
    for (const { pass } of sweepers) await pass();
    expect(await rowsOf(ground, ids)).toEqual(NOTHING);
    const told = await removals(ground);
    expect(told.reduce((sum, { runs }) => sum + Number(runs), 0)).toBe(30);
    const counts = await Promise.all(
      sweepers.map(async ({ registry }) => (await registry.getMetricsAsJSON())[0]?.values[0]?.value ?? 0),
    );
    expect(counts.reduce((sum, n) => sum + n, 0)).toBe(30);
    for (const { pass } of sweepers) await pass();
    expect(await removals(ground)).toHaveLength(told.length);
  });
});

describe('a key whose run was removed', () => {
  const keysOf = async () =>
    (await ground.sql.query('select key from idempotency_keys order by key')).rows.map(({ key }) => key);

  it('is kept until its time after the end of the run is over, and no longer', async () => {
    await endedRuns(ground, { days: 60, endedDays: 5 }, { key: 'ended 5 days ago' });
    await endedRuns(ground, { days: 60, endedDays: 20 }, { key: 'ended 20 days ago' });
    const { pass } = sweeper(ground.pool, DAY_MS);
    await pass();
    expect((await ground.sql.query('select from runs')).rowCount).toBe(0);
    expect(await keysOf()).toEqual(['ended 5 days ago']);
    await pass();
    expect(await keysOf(), 'the record is gone, and the chain remembers').toEqual(['ended 5 days ago']);
    await daysAgo(ground, -3);
    await pass();
    expect(await keysOf()).toEqual([]);
  });

  it('is kept until the last of several runs has been over for that long', async () => {
    const [first = ''] = await endedRuns(ground, { days: 60 }, {});
    const [last = ''] = await endedRuns(ground, { days: 60, endedDays: 5 }, {});
    await ground.sql.query(
      `insert into idempotency_keys (organization_id, key, digest, run_id, run_ids, created_at)
       values ($1, 'whole', '', $2, $3, now() - interval '60 days')`,
      [ground.organizationId, first, [first, last]],
    );
    const { pass } = sweeper(ground.pool, DAY_MS);
    await pass();
    await pass();
    expect((await ground.sql.query('select from runs')).rowCount).toBe(0);
    expect(await keysOf()).toEqual(['whole']);
    await daysAgo(ground, -3);
    await pass();
    expect(await keysOf()).toEqual([]);
  });
});

describe('the partitions of a day', () => {
  it('are dropped, not emptied, when no run of the day stays; those of today, of days to come and the default stay', async () => {
    await ensurePartitions(ground.pool, 3);
    await endedRuns(ground, { days: 40, output: 'x' }, {}, {});
    await endedRuns(ground, { days: 0, output: 'x' }, {});
    const dead = await deadRows('run_events_');
    await sweeper(ground.pool).pass();
    for (const table of ['run_events', 'run_output']) {
      expect(await partitionDays(ground, table)).toEqual([-3, -2, -1, 0]);
      expect((await ground.sql.query(`select to_regclass('${table}_default') as it`)).rows[0].it).not.toBeNull();
    }
    expect(await deadRows('run_events_'), 'no row was deleted').toBe(dead);
    const { registry, pass } = sweeper(ground.pool);
    await pass();
    expect(await registry.getSingleMetricAsString('capstan_retention_partitions_dropped_total')).toContain('} 0');
  });

  it('are left to themselves when nothing was ever kept in them', async () => {
    await daysAgo(ground, 50);
    await ensurePartitions(ground.pool, 2);
    await daysAgo(ground, 0);
    await sweeper(ground.pool).pass();
    expect(await partitionDays(ground)).toEqual([]);
  });

  it('stay while an organization keeps runs for longer, or one of the day lives; then they go', async () => {
    await endedRuns(ground, { days: 40 }, {});
    await endedRuns(ground, { days: 60 }, {});
    const [live = ''] = await pendingSince(60, {});
    const { pass } = sweeper(ground.pool, 50 * DAY_MS);
    await pass();
    expect(await partitionDays(ground)).toEqual([40, 60]);
    expect(await rowsOf(ground, [live])).toMatchObject({ live: 1, events: 1 });
    await ground.sql.query('delete from live_runs');
    await ground.sql.query('delete from runs where id = $1', [live]);
    await pass();
    expect(await partitionDays(ground)).toEqual([40]);
  });

  it('rows of a day that came before its partition go one by one', async () => {
    const ids = await endedRuns(ground, { days: 40, output: 'x', partitions: false }, {}, {});
    await sweeper(ground.pool).pass();
    expect(await rowsOf(ground, ids)).toEqual(NOTHING);
  });

  it('are dropped later when somebody reads the table, and nobody waits behind that', async () => {
    const ids = await endedRuns(ground, { days: 40 }, {});
    const reader = await ground.db.session();
    await reader.query('begin');
    await reader.query('select count(*) from run_events');
    const { pass } = sweeper(ground.pool);
    await pass();
    expect(await rowsOf(ground, ids)).toMatchObject({ runs: 0, listed: 0, events: 2 });
    await reader.query('commit');
    await pass();
    expect(await partitionDays(ground)).toEqual([]);
    expect(await rowsOf(ground, ids)).toEqual(NOTHING);
  });
});

async function deadRows(prefix: string): Promise<number> {
  await ground.sql.query('select pg_stat_force_next_flush()');
  const { rows } = await ground.sql.query(
    `select coalesce(sum(n_tup_del), 0)::integer as n from pg_stat_user_tables where relname like $1 || '%'`,
    [prefix],
  );
  return rows[0].n;
}
