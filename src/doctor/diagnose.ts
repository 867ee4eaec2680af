/**
 * `capstan doctor` up to its words: settings → the way to the database → what is found there. The database is the one
 * that was set, or the embedded one: beside the replica that runs it, and else started for the time.
 */
import type { Diagnosis, OnProgress } from '../kernel/diagnosis.js';
import { type Config, readConfig } from '../platform/config/config.js';
import type { Environment } from '../platform/config/setting.js';
import { Database } from '../platform/database.js';
import { errorCode, isTransient, Pool } from '../platform/db/db.js';
import { createLogger } from '../platform/log/logger.js';
import { lookBeside } from '../platform/postgres/beside.js';
import { DataDirError } from '../platform/postgres/data-directory.js';
import { systemTiming } from '../platform/time.js';
import { Budget } from './budget.js';
import { examine, LONGEST_STATEMENT_MS } from './doctor.service.js';
import { NotGranted, serverFacts } from './server.sql.js';

/** What is found is told; nothing is logged beside it. */
const log = createLogger('silent');

export interface DiagnoseOptions {
  readonly isAll: boolean;
  readonly onProgress: OnProgress;
}

export async function diagnose(env: Environment, options: DiagnoseOptions): Promise<Diagnosis> {
  const reading = readConfig(env);
  if (!reading.ok) return { kind: 'settings', faults: reading.faults.map(({ message }) => message) };
  const budget = new Budget(systemTiming, options.isAll);
  const { onProgress } = options;
  let close: () => Promise<void> = async () => undefined;
  try {
    const way = await wayToDatabase(reading.config);
    close = way.close;
    const facts = await through(way.url, false, serverFacts);
    const checks = await through(way.url, true, (pool) => examine(pool, facts, { budget, onProgress }));
    return { kind: 'looked', checks };
  } catch (error) {
    const why = whyUnreachable(error);
    if (why === undefined) throw error;
    return { kind: 'unreachable', why };
  } finally {
    await close();
  }
}

interface Way {
  readonly url: string;
  readonly close: () => Promise<void>;
}

async function wayToDatabase(config: Config): Promise<Way> {
  const { databaseDirectUrl, dataDir } = config;
  if (databaseDirectUrl !== undefined) return { url: databaseDirectUrl, close: async () => undefined };
  const beside = lookBeside(dataDir, 'capstan');
  if (beside.state === 'running') return { url: beside.url, close: async () => undefined };
  if (beside.state === 'none') {
    throw new DataDirError(
      `There is no installation in ${dataDir}: set DATABASE_URL, or CAPSTAN_DATA_DIR to its folder`,
    );
  }
  const database = new Database(config, log);
  await database.open();
  return { url: database.direct, close: () => database.close() };
}

/** One connection; `isReadOnly` makes the server refuse whatever would change something. */
async function through<T>(url: string, isReadOnly: boolean, work: (pool: Pool) => Promise<T>): Promise<T> {
  const pool = new Pool({
    url,
    direct: true,
    name: 'doctor',
    size: 1,
    statementTimeoutMs: LONGEST_STATEMENT_MS,
    isReadOnly,
    log,
  });
  try {
    return await work(pool);
  } finally {
    await pool.close();
  }
}

/** One line; the driver names host and role in it, never a password. */
function whyUnreachable(error: unknown): string | undefined {
  const text = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
  if (error instanceof DataDirError || error instanceof NotGranted) return text;
  const code = errorCode(error) ?? '';
  // 28…: who we are isn't known there; 3D000: there is no such database; 42501: we may not connect to it; 08P01: a pooler
  // that refuses our parameters.
  if (isTransient(error) || /^(28|3D|08|42501)/.test(code))
    return code === '' || text.includes(code) ? text : `${text} (${code})`;
  return undefined;
}
