/**
 * Starts and stops a server process: settings → database → schema → first token → HTTP → life as a worker, and back.
 * Whatever goes wrong before it is up is one line on standard error and an exit code; what was started is stopped.
 */
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Registry } from 'prom-client';
import { AccessService } from './access/access.service.js';
import { AppModule } from './app.module.js';
import { Bell } from './platform/bell.js';
import { type Config, effectiveSettings, processEnvironment, readConfig } from './platform/config/config.js';
import { BytePool } from './platform/db/byte-pool.js';
import { Pool } from './platform/db/db.js';
import { DatabaseRefused, migrate } from './platform/db/migrate.js';
import { createApp } from './platform/http/app.js';
import { createLogger, type Logger } from './platform/log/logger.js';
import { Platform } from './platform/platform.js';
import { DataDirError } from './platform/postgres/data-directory.js';
import { startEmbeddedPostgres } from './platform/postgres/embedded.js';
import { systemTiming } from './platform/time.js';
import { adminToken } from './replica/admin-token.js';
import { banner } from './replica/banner.js';
import { serveMetrics } from './replica/metrics-server.js';
import { Replica } from './replica/replica.service.js';
import { listenForStop, type StopSignals, untilAborted } from './replica/stop.js';
import { ensurePartitions } from './runs/partitions.sql.js';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
const DATABASE_WAIT_MS = 60_000;
const PARTITION_DAYS_AHEAD = 3;
const POSTGRES_STOP_MS = 3_000;
/** What stopping may take beyond drain time and grace. */
const STOP_EXTRA_MS = 5_000;

/** Why a start is given up: one line for the person. */
class StartRefused extends Error {
  override readonly name = 'StartRefused';
}

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
    const { direct } = await openDatabase(config, log, undo);
    const applied = await migrate({ databaseUrl: direct, waitMs: DATABASE_WAIT_MS, log });
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
    const isUp = await Promise.race([start(kind, config, log, undo).then(() => true), stopped.then(() => false)]);
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

async function start(kind: 'replica' | 'worker', config: Config, log: Logger, undo: Undo): Promise<void> {
  const embedded = config.databaseUrl === undefined;
  if (embedded && kind === 'worker') {
    throw new StartRefused('a worker needs DATABASE_URL, the database that it shares with its replicas');
  }
  const { shared, direct } = await openDatabase(config, log, undo);
  const settled = { ...config, databaseUrl: shared, databaseDirectUrl: direct };
  await migrate({ databaseUrl: direct, waitMs: DATABASE_WAIT_MS, log });

  let replica: Replica | undefined;
  const platform = createPlatform(settled, log, () => replica?.noteSessionLost());
  undo.push(() => closePools(platform));
  const app = await createApp(
    kind === 'replica' ? AppModule.forRoot(platform) : AppModule.forWorker(platform),
    platform,
  );
  undo.push(() => app.close());
  const access = app.get(AccessService);
  await access.prepare();
  await ensurePartitions(platform.pools.work, PARTITION_DAYS_AHEAD).catch((error: unknown) => {
    log.warn(
      { code: 'partitions_not_made', err: error },
      'partitions are made later; until then the default one serves',
    );
  });
  if (config.bootstrapToken !== undefined) await access.bootstrap(config.bootstrapToken);
  if (embedded) await access.admit(await adminToken(config.dataDir), 'admin');

  const url = kind === 'replica' || hasOwnPort() ? await listen(app, config) : undefined;
  if (config.metricsPort !== undefined) {
    const server = await serveMetrics(platform.metrics, config.host, config.metricsPort).catch((error: unknown) => {
      throw new StartRefused(listenFault(error, 'CAPSTAN_METRICS_PORT', config.metricsPort ?? 0));
    });
    undo.push(async () => void server.close());
    log.info({ code: 'metrics_served', address: server.address() }, 'metrics are served on a port of their own');
  }
  const started = app.get(Replica);
  replica = started;
  undo.push(() => started.stop(undo.force));
  await started.start(kind);
  log.info({ code: 'started', kind, name: config.name, url }, 'up');
  if (kind === 'replica' && url !== undefined) {
    process.stdout.write(`${banner({ url, config: settled, embedded, hasToken: await access.hasToken() })}\n`);
  }
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

/** How the database is reached by everybody, and past a pooler. */
interface DatabaseUrls {
  readonly shared: string;
  readonly direct: string;
}

/** The database that was set, or an embedded one that is started now. */
async function openDatabase(config: Config, log: Logger, undo: Undo): Promise<DatabaseUrls> {
  const { databaseUrl, databaseDirectUrl } = config;
  if (databaseUrl !== undefined) return { shared: databaseUrl, direct: databaseDirectUrl ?? databaseUrl };
  const embedded = await startEmbeddedPostgres({
    dataDir: config.dataDir,
    databaseName: 'capstan',
    log: (line) => log.warn({ code: 'postgres' }, line),
  });
  undo.push(() => embedded.stop(POSTGRES_STOP_MS));
  return { shared: embedded.url, direct: embedded.url };
}

function createPlatform(
  config: Config & { readonly databaseUrl: string },
  log: Logger,
  onSessionLost: () => void,
): Platform {
  const direct = config.databaseDirectUrl === config.databaseUrl;
  const pool = (name: string, size: number, lost?: () => void) =>
    new Pool({
      url: config.databaseUrl,
      direct,
      name,
      size,
      statementTimeoutMs: 5_000,
      log,
      ...(lost ? { onSessionLost: lost } : {}),
    });
  return new Platform(
    config,
    log,
    new Registry(),
    systemTiming,
    {
      work: pool('work', 4, onSessionLost),
      submit: pool('submit', 2),
      output: new BytePool({ url: config.databaseUrl, direct, name: 'output', size: 4, statementTimeoutMs: 5_000 }),
      access: pool('access', 2),
      read: pool('read', 6),
    },
    { claimable: new Bell(), canceled: new Bell(), ended: new Bell<readonly string[]>() },
  );
}

async function closePools({ pools }: Platform): Promise<void> {
  await Promise.all(Object.values(pools).map((pool: { close(): Promise<void> }) => pool.close()));
}

async function listen(app: NestFastifyApplication, config: Config): Promise<string> {
  try {
    // Not through Nest, which would log the fault before it is told in one line.
    await app.getHttpAdapter().getInstance().listen({ port: config.port, host: config.host });
  } catch (error) {
    throw new StartRefused(listenFault(error, 'CAPSTAN_PORT', config.port));
  }
  const address = app.getHttpServer().address();
  const port = typeof address === 'object' && address !== null ? address.port : config.port;
  const host = config.host === '0.0.0.0' || config.host === '::' ? '127.0.0.1' : config.host;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function listenFault(error: unknown, setting: string, port: number): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'EADDRINUSE') return `port ${port} is in use by another program: set ${setting} to a free one`;
  if (code === 'EACCES') return `port ${port} may not be opened by this user: set ${setting} to one above 1023`;
  return `can't listen on port ${port}: ${error instanceof Error ? error.message : String(error)}`;
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

/** What was started, to be stopped in the reverse order. A fault in one step doesn't keep the others from running. */
class Undo {
  private readonly steps: (() => Promise<void>)[] = [];
  private readonly forcing = new AbortController();

  constructor(private readonly log: Logger) {}

  /** Aborts when there is no more time for tools. */
  get force(): AbortSignal {
    return this.forcing.signal;
  }

  push(step: () => Promise<void>): void {
    this.steps.push(step);
  }

  hurry(): void {
    this.forcing.abort();
  }

  async all(): Promise<void> {
    for (let step = this.steps.pop(); step; step = this.steps.pop()) {
      await step().catch((error: unknown) =>
        this.log.warn({ code: 'stop_fault', err: error }, 'a part did not stop in order'),
      );
    }
  }
}
