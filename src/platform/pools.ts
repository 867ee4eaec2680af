/**
 * The connections of a process. Each pool opens as many as it needs, up to its size; the README tells operators the sum
 * (a test compares).
 */
import type { Config } from './config/config.js';
import type { Database } from './database.js';
import { BytePool } from './db/byte-pool.js';
import { Pool } from './db/db.js';
import type { DatabaseMetrics } from './db/db.metrics.js';
import { Room } from './db/room.js';
import type { Logger } from './log/logger.js';
import type { Pools } from './platform.js';

export const POOL_SIZES = Object.freeze({ work: 4, submit: 2, output: 4, access: 2, read: 6, probe: 1 });
const STATEMENT_TIMEOUT_MS = 5_000;
/** A look that takes longer says no more than one that fails. */
const PROBE_TIMEOUT_MS = 3_000;
/** When a server goes, all connections do: one line tells it. */
const TELL_LOSSES_EVERY_MS = 30_000;

export function makePools(database: Database, log: Logger, metrics: DatabaseMetrics): Pools {
  let toldAtMs = Number.NEGATIVE_INFINITY;
  const room = new Room();
  const options = (name: keyof Pools, statementTimeoutMs = STATEMENT_TIMEOUT_MS) => ({
    get url() {
      return database.shared;
    },
    direct: database.isDirect,
    name,
    size: POOL_SIZES[name],
    statementTimeoutMs,
    log,
    room,
    watch: metrics.of(name),
    onSessionLost: () => {
      if (performance.now() - toldAtMs < TELL_LOSSES_EVERY_MS) return;
      toldAtMs = performance.now();
      log.warn(
        { code: 'db_connection_lost', pool: name },
        'connections to the database were lost; others are opened when needed',
      );
    },
  });
  return {
    work: new Pool(options('work')),
    submit: new Pool(options('submit')),
    output: new BytePool(options('output')),
    access: new Pool(options('access')),
    read: new Pool(options('read')),
    probe: new BytePool(options('probe', PROBE_TIMEOUT_MS)),
  };
}

export async function closePools(pools: Pools): Promise<void> {
  await Promise.all(Object.values(pools).map((pool: { close(): Promise<void> }) => pool.close()));
}

/** The settings with the database's address, as whoever opens a session of his own asks for it. */
export function withAddress(config: Config, database: Database): Config {
  return {
    ...config,
    get databaseUrl() {
      return database.shared;
    },
    get databaseDirectUrl() {
      return database.direct;
    },
  };
}
