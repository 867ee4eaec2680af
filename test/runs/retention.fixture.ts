/** A past for runs that are old: the database's clocks are moved, and the product's own statements do the rest. */
import { createHash } from 'node:crypto';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { newId } from '../../src/kernel/ids.js';
import type { Pool } from '../../src/platform/db/db.js';
import { claimIfLive, startIfHeld } from '../../src/runs/claim.sql.js';
import { finishIfHeld } from '../../src/runs/finish.sql.js';
import { appendOutputIfHeld } from '../../src/runs/output.sql.js';
import { ensurePartitions } from '../../src/runs/partitions.sql.js';
import { RetentionMetrics } from '../../src/runs/retention.metrics.js';
import { RetentionSweep } from '../../src/runs/retention-sweep.service.js';
import type { NewRun } from '../../src/runs/submit.sql.js';
import type { Ground } from './ground.fixture.js';

export const DAY_MS = 86_400_000;

/** From here on the database's clocks are so many days behind. */
export async function daysAgo(ground: Ground, days: number): Promise<void> {
  for (const [clock, volatility, now] of [
    ['db_now', 'stable', 'now()'],
    ['db_clock', 'volatile', 'clock_timestamp()'],
  ]) {
    await ground.sql.query(
      `create or replace function ${clock}() returns timestamptz language sql ${volatility} as
       'select ${now} - interval ''${days} days'''`,
    );
  }
}

export interface Making {
  /** When they are made; they end as soon, or when they say. */
  readonly days: number;
  readonly endedDays?: number;
  /** What each of them writes. */
  readonly output?: string;
  /** Whether the days have partitions of their own. */
  readonly partitions?: boolean;
}

/** Makes runs that ended in the past; the clocks are right again afterwards. Returns their ids. */
export async function endedRuns(ground: Ground, making: Making, ...overs: Partial<NewRun>[]): Promise<string[]> {
  const { days, endedDays = days, output, partitions = true } = making;
  const queue = `q-${newId()}`;
  await daysAgo(ground, days);
  if (partitions) await ensurePartitions(ground.pool, 0);
  const runs = await ground.submit(...overs.map((over) => ({ queue, ...over })));
  await daysAgo(ground, endedDays);
  const worker = await ground.worker({ queues: [queue] });
  const claimed = await claimIfLive(ground.pool, worker, [queue], runs.length);
  const holds = claimed.map(({ runId, fence }) => ({ runId, fence }));
  await startIfHeld(ground.pool, worker, holds);
  if (output !== undefined) {
    const bytePool = ground.db.bytePool(1);
    const data = Buffer.from(output);
    const batch = { batch: 1, stream: 1 as const, at: new Date(), pos: 0, streamPos: 0, bytes: data.length };
    for (const hold of holds) await appendOutputIfHeld(bytePool, worker, hold, [batch], data);
  }
  const ended = await finishIfHeld(
    ground.pool,
    worker,
    holds.map(({ runId, fence }) => ({ ...ground.finish(runId, {}, fence) })),
  );
  if (ended.length !== overs.length) throw new Error('not every run could be ended');
  await daysAgo(ground, 0);
  return runs.map(({ id }) => id);
}

export interface Sweeper {
  readonly sweep: RetentionSweep;
  readonly registry: Registry;
  /** Steps until there is nothing left to do. Returns how many steps that took. */
  pass(): Promise<number>;
}

/** A replica's removals. */
export function sweeper(pool: Pool, retentionMs = 30 * DAY_MS): Sweeper {
  const registry = new Registry();
  const platform = {
    log: pino({ level: 'silent' }),
    config: { retentionMs, idempotencyTtlMs: 7 * DAY_MS },
    pools: { access: pool },
  };
  const sweep = new RetentionSweep(platform, { id: newId(), name: 'sweeper' }, new RetentionMetrics(registry));
  const pass = async () => {
    for (let steps = 1; ; steps += 1) if ((await sweep.step()) === 'idle') return steps;
  };
  return { sweep, registry, pass };
}

/** How many rows each table has of these runs. */
export async function rowsOf(ground: Ground, ids: readonly string[]): Promise<Record<string, number>> {
  const { rows } = await ground.sql.query(
    `select (select count(*)::integer from runs where id = any ($1)) as runs,
            (select count(*)::integer from live_runs where run_id = any ($1)) as live,
            (select count(*)::integer from ended_runs where run_id = any ($1)) as listed,
            (select count(*)::integer from run_events where run_id = any ($1)) as events,
            (select count(*)::integer from run_output where run_id = any ($1)) as output,
            (select count(*)::integer from run_output_cuts where run_id = any ($1)) as cuts`,
    [ids],
  );
  return rows[0];
}

export const NOTHING = { runs: 0, live: 0, listed: 0, events: 0, output: 0, cuts: 0 };

/** The entries of removals in the organization's chain, oldest first. */
export async function removals(ground: Ground): Promise<Record<string, unknown>[]> {
  const { rows } = await ground.sql.query(
    `select claim from audit_entries where chain_id = $1 and action = 'runs.removed' order by seq`,
    [ground.chain],
  );
  return rows.map(({ claim }) => JSON.parse(claim).payload);
}

/** The digest of a removal, from nothing but the entries of the ends of these runs. */
export async function digestOfEnds(ground: Ground, ids: readonly string[]): Promise<string> {
  const { rows } = await ground.sql.query(
    `select claim from audit_entries where run_id = any ($1) and action = 'run.ended'`,
    [ids],
  );
  const lines = rows.map(({ claim }) => {
    const { object, state, endedAt } = JSON.parse(claim).payload;
    return `${object} ${state} ${endedAt}\n`;
  });
  return `sha256:${createHash('sha256').update(lines.sort().join('')).digest('hex')}`;
}

/** The days, by how long they are ago, that have a partition of their own. */
export async function partitionDays(ground: Ground, table = 'run_events'): Promise<number[]> {
  const { rows } = await ground.sql.query(
    `select n from generate_series(-5, 400) as n
     where to_regclass($1 || '_' || to_char((now() at time zone 'UTC')::date - n, 'YYYYMMDD')) is not null order by n`,
    [table],
  );
  return rows.map(({ n }) => Number(n));
}
