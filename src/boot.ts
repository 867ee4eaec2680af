/**
 * Starts and stops a server process: settings → port → database → schema → first token → life as a worker, and back.
 * Whatever goes wrong before it is up is one line on standard error and an exit code; what was started is stopped.
 */
import { Registry } from 'prom-client';
import { AccessService } from './access/access.service.js';
import { AppModule } from './app.module.js';
import { Bell } from './platform/bell.js';
import { type Config, effectiveSettings, processEnvironment, readConfig } from './platform/config/config.js';
import { Database } from './platform/database.js';
import { isTransient } from './platform/db/db.js';
import { DatabaseRefused, migrate } from './platform/db/migrate.js';
import { Wake } from './platform/db/wake.js';
import { createApp } from './platform/http/app.js';
import { listen, listenFault } from './platform/http/listen.js';
import { Traffic } from './platform/http/traffic.js';
import { createLogger, type Logger } from './platform/log/logger.js';
import { Platform } from './platform/platform.js';
import { closePools, makePools, withAddress } from './platform/pools.js';
import { DataDirError } from './platform/postgres/data-directory.js';
import { StartRefused } from './platform/start-refused.js';
import { systemTiming } from './platform/time.js';
import { adminToken } from './replica/admin-token.js';
import { banner } from './replica/banner.js';
import { serveMetrics } from './replica/metrics-server.js';
import { ReadinessService } from './replica/readiness.service.js';
import { Replica } from './replica/replica.service.js';
import { listenForStop, type StopSignals, untilAborted, untilNoticed } from './replica/stop.js';
import { Undo } from './replica/undo.js';
import { ensurePartitions } from './runs/partitions.sql.js';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
/** A command ends at last; a server waits for its database as long as it takes. */
const MIGRATE_WAIT_MS = 60_000;
const PARTITION_DAYS_AHEAD = 3;
/** What stopping may take beyond drain time and grace. */
const STOP_EXTRA_MS = 5_000;

/** `capstan serve`: API, console and worker. Ends the process. */
export function serve(): Promise<void> {
  return supervise('replica');
}

/** `capstan worker`: executes only. Ends the process. */
export function worker(): Promise<void> {
  return supervise('worker');
}

/** `capstan migrate`: brings the database to this program's schema and says what was applied. */
export async function migrateOnly(): Promise<void> {
  const config = settings();
  const log = createLogger(config.logLevel);
  const undo = new Undo(log);
  try {
    const database = new Database(config, log);
    undo.push(() => database.close());
    await database.open();
    const applied = await migrate({ databaseUrl: database.direct, waitMs: MIGRATE_WAIT_MS, log });
    process.stdout.write(
      applied.length === 0 ? 'nothing to apply\n' : applied.map((name) => `applied ${name}\n`).join(''),
    );
    await undo.all();
  } catch (error) {
    await undo.all();
    refuse(error);
  }
}

async function supervise(kind: 'replica' | 'worker'): Promise<void> {
  const config = settings();
  const log = createLogger(config.logLevel);
  const signals = listenForStop();
  // A fault that nobody caught must not end what others rely on; fences keep it from doing harm.
  process.on('uncaughtException', (error) => log.error({ code: 'bug', err: error }, 'uncaught exception; going on'));
  process.on('unhandledRejection', (error) => log.error({ code: 'bug', err: error }, 'unhandled rejection; going on'));
  const undo = new Undo(log);
  const stopped = untilAborted(signals.stop);
  try {
    const isUp = await Promise.race([
      start(kind, config, log, undo, signals.stop).then(() => true),
      stopped.then(() => false),
    ]);
    if (!isUp) undo.hurry();
  } catch (error) {
    await undo.all();
    refuse(error);
    return;
  }
  await stopped;
  // In the middle of a start, what it goes on to make ends with this process: everything watches a pipe of it.
  await stop(config, log, undo, signals);
}

/** Opens the port first: what takes long, or waits for others, must not look dead. */
async function start(
  kind: 'replica' | 'worker',
  config: Config,
  log: Logger,
  undo: Undo,
  stopSignal: AbortSignal,
): Promise<void> {
  const database = new Database(config, log);
  if (database.isBundled && kind === 'worker') {
    throw new StartRefused('a worker needs DATABASE_URL, the database that it shares with its replicas');
  }
  undo.push(() => database.close());
  let replica: Replica | undefined;
  const platform = createPlatform(config, database, log, () => replica?.noteSessionLost());
  undo.push(() => closePools(platform.pools));
  const app = await createApp(
    kind === 'replica' ? AppModule.forRoot(platform) : AppModule.forWorker(platform),
    platform,
  );
  undo.push(() => app.close());
  const traffic = app.get(Traffic);
  traffic.phase = 'starting';
  const url = kind === 'replica' || hasOwnPort() ? await listen(app, config) : undefined;
  if (config.metricsPort !== undefined) await listenForMetrics(platform, config.metricsPort, undo);
  if (url !== undefined) log.info({ code: 'listening', url }, 'listening; not ready yet');
  app.get(ReadinessService).start();

  await database.open();
  await migrate({ databaseUrl: database.direct, waitMs: Number.POSITIVE_INFINITY, log });
  const access = app.get(AccessService);
  const hasToken = await untilReached(platform, () => admitFirst(access, config, database));
  await ensurePartitions(platform.pools.work, PARTITION_DAYS_AHEAD).catch((error: unknown) => {
    log.warn(
      { code: 'partitions_not_made', err: error },
      'partitions are made later; until then the default one serves',
    );
  });
  if (!database.isBundled) {
    // A bundled database has no other replica.
    const wake = new Wake(database.direct, platform);
    undo.push(() => wake.stop());
    wake.start();
  }
  const started = app.get(Replica);
  replica = started;
  const hasBalancer = kind === 'replica' && !database.isBundled;
  undo.push(() => untilNoticed(traffic, hasBalancer && stopSignal.reason === 'SIGTERM', undo.force));
  undo.push(() => started.stop(undo.force));
  undo.push(async () => traffic.noteStopping(config.drainTimeoutMs, undo.force));
  await started.start(kind);
  traffic.phase = 'serving';
  log.info({ code: 'started', kind, name: config.name, url }, 'up');
  if (kind === 'replica' && url !== undefined) {
    const standing = { url, config: platform.config, embedded: database.isBundled, hasToken };
    process.stdout.write(`${banner(standing)}\n`);
  }
}

/** Makes the first organization and tokens where there are none. Whether there is a token then. */
async function admitFirst(access: AccessService, config: Config, database: Database): Promise<boolean> {
  await access.prepare();
  if (config.bootstrapToken !== undefined) await access.bootstrap(config.bootstrapToken);
  if (database.isBundled) await access.admit(await adminToken(config.dataDir), 'admin');
  return access.hasToken();
}

/** A database that goes away in the middle of a start is waited for like one that was never there. */
async function untilReached<T>({ log, timing }: Platform, work: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isTransient(error)) throw error;
      if (attempt === 0) log.warn({ code: 'database_awaited', err: error }, 'not ready: waiting for the database');
      await timing.delay(500);
    }
  }
}

async function listenForMetrics({ metrics, config, log }: Platform, port: number, undo: Undo): Promise<void> {
  const server = await serveMetrics(metrics, config.host, port).catch((error: unknown) => {
    throw new StartRefused(listenFault(error, 'CAPSTAN_METRICS_PORT', port));
  });
  undo.push(async () => void server.close());
  log.info({ code: 'metrics_served', address: server.address() }, 'metrics are served on a port of their own');
}

/** Everything that was started is stopped in the reverse order, within drain time, grace and a little more. */
async function stop(config: Config, log: Logger, undo: Undo, signals: StopSignals): Promise<void> {
  const limitMs = config.drainTimeoutMs + config.killGraceMs + STOP_EXTRA_MS;
  log.info({ code: 'stopping', signal: String(signals.stop.reason) }, 'stopping; a second signal stops at once');
  setTimeout(() => {
    log.error({ code: 'stop_overdue', limitMs }, 'stopping took too long; leaving the rest to a janitor');
    process.exit(EXIT_FAILED);
  }, limitMs).unref();
  signals.force.addEventListener('abort', () => undo.hurry());
  await undo.all();
  log.info({ code: 'stopped' }, 'stopped');
  process.exit(0);
}

function settings(): Config {
  const result = readConfig(processEnvironment());
  if (result.ok) return result.config;
  for (const fault of result.faults) process.stderr.write(`capstan: ${fault.message}\n`);
  process.exit(EXIT_USAGE);
}

function createPlatform(config: Config, database: Database, log: Logger, onWorkLost: () => void): Platform {
  return new Platform(
    withAddress(config, database),
    log,
    new Registry(),
    systemTiming,
    makePools(database, { log, onWorkLost }),
    { claimable: new Bell(), canceled: new Bell(), ended: new Bell<readonly string[]>() },
  );
}

/** A worker serves its health only when it was told a port. */
function hasOwnPort(): boolean {
  return effectiveSettings(processEnvironment()).some(
    ({ name, source }) => name === 'CAPSTAN_PORT' && source !== 'default',
  );
}

function refuse(error: unknown): void {
  const known = error instanceof StartRefused || error instanceof DataDirError || error instanceof DatabaseRefused;
  const text = known ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.stderr.write(`capstan: ${text}\n`);
  process.exit(EXIT_FAILED);
}
