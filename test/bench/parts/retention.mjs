/**
 * (h) Runs that come and go: day after day as many are made as go, by the replica that also removes what is kept no longer.
 * The database's clock is moved by a day and an hour at a time, so that with a retention of one day the runs of each day go
 * on the next, row by row, and the partitions of each on the day after that. Nothing but autovacuum takes up what is left.
 */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { MIB, median, rate } from '../figures.mjs';
import { timed } from '../lanes.mjs';

const LOAD = join(import.meta.dirname, '../load.mjs');
const STEP_HOURS = 25;
const GONE_WITHIN_MS = 600_000;
/** Until as much is there as ever will be: the runs of two days, and the space that those of the day before left. */
const SETTLING_DAYS = 3;
/** Of these nothing ever goes: entries, and lives of workers. */
const RECORD = ['audit_entries', 'audit_heads', 'workers'];

export async function retention(ground, { sizes, say }) {
  const { n, days } = sizes.retention;
  const seen = [];
  for (let day = 0; day < days; day += 1) {
    await moveClocks(ground, day * STEP_HOURS);
    const replica = await ground.replica({ CAPSTAN_SLOTS: String(sizes.slots) });
    await ground.sql.query('update organizations set retention_ms = 86400000');
    const load = await ground.load(LOAD, replica.url);
    const drained = timed(async () => {
      await load.call('batches', { n, size: 1_000, callers: 2, queue: 'default' });
      await untilNone(ground, 'live_runs where true');
    });
    const removed = timed(() => untilNone(ground, `runs where created_at < db_now() - interval '1 day'`));
    const [drainMs, removeMs] = await Promise.all([drained, removed]);
    seen.push({ drainMs, removeMs, ...(await standing(ground)) });
    say(`day ${day + 1} of ${days}: ${JSON.stringify(seen.at(-1))}`);
    await ground.endRunning();
  }
  return figuresOf(seen, n);
}

function figuresOf(seen, n) {
  const [settled, last] = [seen[SETTLING_DAYS - 1] ?? seen[0], seen.at(-1)];
  const busy = seen.slice(1);
  const removeMs = median(busy.map((day) => day.removeMs));
  const total = seen.length * n;
  return [
    rate('runs submitted and drained, none removed meanwhile', n, seen[0].drainMs),
    { ...rate('the same while as many are removed', n, median(busy.map((day) => day.drainMs))), key: 'retentionDrain' },
    rate('runs removed meanwhile', n, removeMs),
    { what: `all but the record, after ${SETTLING_DAYS} days`, value: settled.bytes / MIB, unit: 'MiB', n: total },
    { what: 'all but the record, in the end', value: last.bytes / MIB, unit: 'MiB', n: total },
    {
      key: 'retentionGrowth',
      what: 'the second beside the first',
      value: last.bytes / settled.bytes,
      unit: 'times',
      n: total,
    },
    { what: 'dead rows in the end', value: last.dead, unit: 'rows', n: total },
    { what: 'runs in the end', value: last.runs, unit: 'rows', n: total },
    { what: 'partitions of events in the end', value: last.partitions, unit: 'tables', n: total },
  ];
}

async function moveClocks({ sql }, hours) {
  await sql.query('select 1');
  const { rows } = await sql.query(`select to_regproc('db_now') is not null as there`);
  // The first day is today, before there is a schema.
  if (!rows[0].there) return;
  const [now, clock] = ['now()', 'clock_timestamp()'].map((at) => `'select ${at} + interval ''${hours} hours'''`);
  await sql.query(`create or replace function db_now() returns timestamptz language sql stable as ${now}`);
  await sql.query(`create or replace function db_clock() returns timestamptz language sql volatile as ${clock}`);
}

async function untilNone({ sql }, rows) {
  const endMs = performance.now() + GONE_WITHIN_MS;
  while ((await sql.query(`select from ${rows} limit 1`)).rowCount > 0) {
    if (performance.now() > endMs) throw new Error(`there are still ${rows}`);
    await pause(200);
  }
}

async function standing({ sql }) {
  const { rows } = await sql.query(
    `select sum(pg_total_relation_size(relid))::float8 as bytes, sum(n_dead_tup)::integer as dead,
            (select count(*)::integer from runs) as runs,
            count(*) filter (where relname ~ '^run_events_[0-9]+$')::integer as partitions
     from pg_stat_user_tables
     where relname <> all ($1)`,
    [RECORD],
  );
  return rows[0];
}
