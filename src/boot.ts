/**
 * Starts and stops a server process: settings → database → schema → first token → life as a worker → port, and back.
 * Whatever goes wrong before it is up is one line on standard error and an exit code; what was started is stopped.
 */
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Registry } from 'prom-client';
import { AccessService } from './access/access.service.js';
import { AppModule } from './app.module.js';
import { KeyService } from './audit/key.service.js';
import { RecheckLoop } from './audit/recheck.loop.js';
import { SigningKey } from './kernel/signing-key.js';
import { Bell } from './platform/bell.js';
import { type Config, effectiveSettings, processEnvironment, readConfig } from './platform/config/config.js';
import { Database } from './platform/database.js';
import { isTransient } from './platform/db/db.js';
import { DatabaseMetrics } from './platform/db/db.metrics.js';
import { DatabaseRefused, migrate } from './platform/db/migrate.js';
import { Wake } from './platform/db/wake.js';
import { createApp } from './platform/http/app.js';
import { listen, listenFault, refuseTakenPort } from './platform/http/listen.js';
import { Traffic } from './platform/http/traffic.js';
import { createLogger, type Logger } from './platform/log/logger.js';
import { Platform } from './platform/platform.js';
import { closePools, makePools, withAddress } from './platform/pools.js';
import { DataDirError } from './platform/postgres/data-directory.js';
import { StartRefused } from './platform/start-refused.js';
import { systemTiming } from './platform/time.js';
import { adminToken } from './replica/admin-token.js';
import { keptSeed, makeSeed } from './replica/audit-key.js';
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
/** A start that takes longer says so at its port. Others are over by then. */
const OPEN_AFTER_MS = 5_000;
/** Until `/readyz` says of a start that is over what it will say from then on. */
const USABLE_WITHIN_MS = 5_000;
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
      start({ kind, config, log, undo, stopSignal: signals.stop }).then(() => true),
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

/** What a start is given, and what stopping needs. */
interface Starting {
  readonly kind: 'replica' | 'worker';
  readonly config: Config;
  readonly log: Logger;
  readonly undo: Undo;
  readonly stopSignal: AbortSignal;
}

/**
 * Opens the port when all the rest is up: until then a connection is refused, which every balancer takes for a reason
 * to ask another. When that takes longer the port opens before, since what waits must not look dead.
 */
async function start(starting: Starting): Promise<void> {
  const { kind, config, log, undo } = starting;
  const database = new Database(config, log);
  if (database.isBundled && kind === 'worker') {
    throw new StartRefused('a worker needs DATABASE_URL, the database that it shares with its replicas');
  }
  const hasPort = kind === 'replica' || hasOwnPort();
  if (hasPort) await refuseTakenPort(config);
  undo.push(() => database.close());
  const platform = createPlatform(config, database, log);
  undo.push(() => closePools(platform.pools));
  // A bundled database has no other replica. What rings while the last requests are answered is told as well.
  const wake = database.isBundled ? undefined : new Wake(database.direct, platform);
  undo.push(async () => wake?.stop());
  const app = await createApp(
    kind === 'replica' ? AppModule.forRoot(platform) : AppModule.forWorker(platform),
    platform,
  );
  undo.push(() => app.close());
  if (config.metricsPort !== undefined) await listenForMetrics(platform, config.metricsPort, undo);
  const [traffic, started] = [app.get(Traffic), app.get(Replica)];
  const up = bringUp({ ...starting, database, platform, wake, app, replica: started });
  await Promise.race([up, systemTiming.delay(OPEN_AFTER_MS)]);
  const url = hasPort ? await listen(app, config) : undefined;
  if (traffic.phase === 'starting') log.info({ code: 'listening', url }, 'listening; not ready yet');
  const { hasToken } = await up;
  log.info({ code: 'started', kind, name: config.name, url }, 'up');
  if (kind === 'replica' && url !== undefined) {
    const standing = { url, config: platform.config, embedded: database.isBundled, hasToken };
    process.stdout.write(`${banner(standing)}\n`);
  }
}

interface Parts extends Starting {
  readonly database: Database;
  readonly platform: Platform;
  readonly wake: Wake | undefined;
  readonly app: NestFastifyApplication;
  readonly replica: Replica;
}

/** Resolves when requests can be served. */
async function bringUp(parts: Parts): Promise<{ hasToken: boolean }> {
  const { kind, config, log, undo, stopSignal, database, platform, app, replica } = parts;
  const [traffic, readiness, access] = [app.get(Traffic), app.get(ReadinessService), app.get(AccessService)];
  traffic.phase = 'starting';
  await database.open();
  readiness.start();
  await migrate({ databaseUrl: database.direct, waitMs: Number.POSITIVE_INFINITY, log });
  const hasToken = await untilReached(platform, () => admitFirst(access, config, database));
  if (kind === 'replica') await untilReached(platform, () => admitKey(app.get(KeyService), config, database));
  await ensurePartitions(platform.pools.work, PARTITION_DAYS_AHEAD).catch((error: unknown) => {
    log.warn(
      { code: 'partitions_not_made', err: error },
      'partitions are made later; until then the default one serves',
    );
  });
  parts.wake?.start();
  const hasBalancer = kind === 'replica' && !database.isBundled;
  undo.push(() => untilNoticed(traffic, hasBalancer && stopSignal.reason === 'SIGTERM', undo.force));
  undo.push(() => replica.stop(undo.force));
  undo.push(async () => traffic.noteStopping(config.drainTimeoutMs, undo.force));
  const serving =
    kind === 'replica' ? { recheck: app.get(RecheckLoop), signs: app.get(KeyService).ownFingerprint } : undefined;
  await untilReached(platform, () => replica.start(kind, serving));
  await readiness.untilUsable(USABLE_WITHIN_MS);
  if (!stopSignal.aborted) traffic.phase = 'serving';
  return { hasToken };
}

/** Makes the first organization and tokens where there are none. Whether there is a token then. */
async function admitFirst(access: AccessService, config: Config, database: Database): Promise<boolean> {
  await access.prepare();
  if (config.bootstrapToken !== undefined) await access.bootstrap(config.bootstrapToken);
  if (database.isBundled) await access.admit(await adminToken(config.dataDir), 'admin');
  return access.hasToken();
}

/** Only an embedded install makes a signing key for itself, and only while its installation has none. */
async function admitKey(keys: KeyService, { auditKey, dataDir }: Config, { isBundled }: Database): Promise<void> {
  let seed = auditKey ?? (isBundled ? await keptSeed(dataDir) : undefined);
  if (seed === undefined && isBundled && !(await keys.isRecorded())) seed = await makeSeed(dataDir);
  await keys.admit(seed && SigningKey.of(seed));
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
  log.info(
    { code: 'stopping', signal: String(signals.stop.reason) },
    'stopping; another signal, a second later or more, stops at once',
  );
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

function createPlatform(config: Config, database: Database, log: Logger): Platform {
  const metrics = new Registry();
  const pools = makePools(database, log, new DatabaseMetrics(metrics));
  return new Platform(withAddress(config, database), log, metrics, systemTiming, pools, {
    claimable: new Bell(),
    canceled: new Bell(),
    ended: new Bell<readonly string[]>(),
  });
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
