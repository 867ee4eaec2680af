/**
 * The PostgreSQL that a single machine brings along: started on a data folder, started again when it dies, stopped
 * last. Invariant: at most one server on a folder, it never outlives this process, and what was committed is there again.
 */
import { createServer } from 'node:net';
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Binaries, findBinaries } from './binaries.js';
import { createCluster, startFailure } from './cluster.js';
import {
  DataDirError,
  type DataDirectory,
  hasCluster,
  noSpace,
  openDataDirectory,
  removeLeftovers,
  takePassword,
} from './data-directory.js';
import { CLUSTER_HELD, type GuardedProcess, reasonIn, startGuarded } from './guarded-process.js';
import { clearTheWay, endServer, occupancy, stillThere } from './occupancy.js';
import { admit, chooseRunAs, type RunAs } from './run-as.js';
import { adminUrl, ensureDatabase, OwnerSession, ownerUrl, type ServerAddress } from './sessions.js';

const WAIT_FOR_PREDECESSOR_MS = 30_000;
const PORT_ATTEMPTS = 10;
const FIRST_RESTART_AFTER_MS = 50;
const LONGEST_RESTART_PAUSE_MS = 5_000;
const STOP_MS = 10_000;

export interface EmbeddedPostgresOptions {
  /** Made when missing; relative to the working directory. */
  readonly dataDir: string;
  /** Also the name of the role that owns it. */
  readonly databaseName: string;
  /** Gets one sentence for each thing worth telling an operator. */
  readonly log: (line: string) => void;
  /** More arguments for `postgres`, e.g. `['-c', 'max_connections=200']`; they win over ours. */
  readonly flags?: readonly string[];
  /** `false` gives up durability for speed: for servers whose data nobody will miss. */
  readonly durable?: boolean;
  /** As whom the server runs, when the usual choice isn't wanted. */
  readonly runAs?: (dir: DataDirectory) => Promise<RunAs>;
}

/** A running server. Its address stays the same when it has to be started again. */
export interface EmbeddedPostgres {
  /** For the application: role and database `databaseName`, no superuser. */
  readonly url: string;
  /** For the superuser `postgres` in database `postgres`. */
  readonly adminUrl: string;
  /** How often it was started again so far. */
  readonly restarts: number;
  /** A fast shutdown, cut short by SIGQUIT after `timeoutMs` and SIGKILL soon after. Safe to call twice; never rejects. */
  stop(timeoutMs?: number): Promise<void>;
}

/** Resolves when the database can be used. @throws DataDirError with the sentence for the person. */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const dir = openDataDirectory(resolve(options.dataDir));
  const runAs = await (options.runAs ?? chooseRunAs)(dir);
  const binaries = findBinaries(dir.libraryLinksPath);
  admit(dir, runAs);
  const exists = hasCluster(dir, binaries.major);
  const password = takePassword(dir, exists);
  const durable = options.durable ?? true;
  if (!exists) await createCluster(dir, { binaries, runAs, password, durable });
  const flags = [...(durable ? [] : VOLATILE_FLAGS), ...(options.flags ?? [])];
  const launcher: Launcher = { dir, runAs, binaries, flags, log: options.log };
  const { server, port } = await takeOver(launcher, password);
  const address = { port, password };
  let session: OwnerSession | undefined;
  try {
    session = await OwnerSession.open(address);
    await ensureDatabase(address, options.databaseName);
    removeLeftovers(dir);
    return keepRunning(launcher, server, address, session, options.databaseName);
  } catch (error) {
    session?.close();
    await shutDown(server, STOP_MS);
    if (error instanceof Error && error.message.includes('No space left on device')) throw noSpace(dir.path, error);
    throw error;
  }
}

interface Launcher {
  readonly dir: DataDirectory;
  readonly runAs: RunAs;
  readonly binaries: Binaries;
  readonly flags: readonly string[];
  readonly log: (line: string) => void;
}

const VOLATILE_FLAGS = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'].flatMap((flag) => ['-c', flag]);

const FLAGS = [
  'listen_addresses=127.0.0.1',
  // No socket file: its path may be too long, and everybody could reach it in a public folder.
  'unix_socket_directories=',
  'max_connections=100',
  'shared_buffers=128MB',
  'jit=off',
  // Parallel plans need /dev/shm, of which a container has 64 MB.
  'max_parallel_workers_per_gather=0',
  'timezone=UTC',
  'log_timezone=UTC',
  'logging_collector=off',
  'log_destination=stderr',
  'log_line_prefix=',
  'log_checkpoints=off',
  // Errors of statements are for those who sent them; the server's own troubles are LOG, FATAL and PANIC.
  'log_min_messages=log',
  'log_min_error_statement=panic',
].flatMap((flag) => ['-c', flag]);

type Launch =
  | { readonly result: 'ready'; readonly server: GuardedProcess }
  | { readonly result: 'cluster held' | 'port taken' | 'failed'; readonly lines: readonly string[] };

/** One attempt to start the server; an aborted one ends as `failed`. */
async function launch(launcher: Launcher, port: number, staleLock?: string, signal?: AbortSignal): Promise<Launch> {
  const { dir, runAs, binaries, log } = launcher;
  const server = startGuarded({
    program: binaries.postgres,
    args: ['-D', dir.clusterPath, '-p', String(port), ...FLAGS, ...launcher.flags],
    ...{ runAs, binaries, lock: dir.clusterPath, staleLock },
  });
  const abort = () => server.end();
  signal?.addEventListener('abort', abort, { once: true });
  const ready = new Promise<'ready'>((done) => {
    server.onLine((line) => {
      if (line.includes('database system is ready to accept connections')) done('ready');
      if (/PANIC:|was terminated by signal|in progress, elapsed time/.test(line)) log(`PostgreSQL says: ${line}`);
    });
  });
  const first = await Promise.race([ready, server.exited]);
  signal?.removeEventListener('abort', abort);
  if (first === 'ready') return { result: 'ready', server };
  const lines = server.lastLines;
  const says = (text: string) => lines.some((line) => line.includes(text));
  const isHeld =
    first.code === CLUSTER_HELD || says('lock file "postmaster.pid"') || says('pre-existing shared memory');
  if (isHeld) return { result: 'cluster held', lines };
  return { result: says('Address already in use') ? 'port taken' : 'failed', lines };
}

/** Starts the server as soon as no other has the cluster. */
async function takeOver(launcher: Launcher, password: string): Promise<{ server: GuardedProcess; port: number }> {
  const { dir, log } = launcher;
  const deadlineAt = performance.now() + WAIT_FOR_PREDECESSOR_MS;
  let portsLeft = PORT_ATTEMPTS;
  for (;;) {
    await clearTheWay(dir, password, deadlineAt, log);
    const found = occupancy(dir.clusterPath);
    if (found.state === 'running') continue;
    const port = await freePort();
    const attempt = await launch(launcher, port, found.state === 'stale' ? found.staleLock : undefined);
    if (attempt.result === 'ready') return { server: attempt.server, port };
    if (attempt.result === 'failed') throw startFailure(dir, attempt.lines);
    if (attempt.result === 'port taken' && --portsLeft === 0) throw startFailure(dir, attempt.lines);
    if (performance.now() > deadlineAt) throw stillThere(dir);
    await pause(50);
  }
}

/** Watches over a started server until `stop()`: the one place that starts it again and that ends it. */
function keepRunning(
  launcher: Launcher,
  first: GuardedProcess,
  address: ServerAddress,
  session: OwnerSession,
  databaseName: string,
): EmbeddedPostgres {
  const stopping = new AbortController();
  const stopAsked = new Promise<'stop'>((done) => {
    stopping.signal.addEventListener('abort', () => done('stop'), { once: true });
  });
  let restarts = 0;
  let stopMs = STOP_MS;
  const watch = async (): Promise<void> => {
    let server: GuardedProcess | undefined = first;
    while (server) {
      const event = await Promise.race([stopAsked, server.exited]);
      if (event === 'stop') {
        session.close();
        return shutDown(server, stopMs);
      }
      launcher.log(
        `the embedded PostgreSQL ended by itself (${event.how}), its last line: ${reasonIn(server.lastLines)}`,
      );
      server = await restart(launcher, address.port, stopping.signal);
      if (server) restarts += 1;
    }
    session.close();
  };
  const watching = watch();
  return {
    url: ownerUrl(address, databaseName),
    adminUrl: adminUrl(address),
    get restarts() {
      return restarts;
    },
    stop: (timeoutMs = STOP_MS) => {
      stopMs = timeoutMs;
      stopping.abort();
      return watching;
    },
  };
}

/** Tries until the server runs on its old port, or `undefined` once the signal is given. */
async function restart(launcher: Launcher, port: number, signal: AbortSignal): Promise<GuardedProcess | undefined> {
  const { dir, log } = launcher;
  for (let waitMs = FIRST_RESTART_AFTER_MS; ; waitMs = Math.min(2 * waitMs, LONGEST_RESTART_PAUSE_MS)) {
    await pause(waitMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return undefined;
    const found = occupancy(dir.clusterPath);
    try {
      // Its guard was killed and it lives on: on our port it is ours, and nobody would end it with us any more.
      if (found.state === 'running' && found.port === port) await endServer(dir, found.pid);
    } catch (error) {
      if (!(error instanceof DataDirError)) throw error;
    }
    const staleLock = found.state === 'stale' ? found.staleLock : undefined;
    const attempt = await launch(launcher, port, staleLock, signal);
    if (attempt.result === 'ready') {
      log('the embedded PostgreSQL runs again');
      return attempt.server;
    }
    if (!signal.aborted) log(`the embedded PostgreSQL does not start (${reasonIn(attempt.lines)}); trying again`);
  }
}

async function shutDown(server: GuardedProcess, timeoutMs: number): Promise<void> {
  const ended = server.exited.then(() => true);
  const within = (ms: number) => {
    const timer = new AbortController();
    const late = pause(ms, false, { signal: timer.signal }).catch(() => false);
    return Promise.race([ended, late]).finally(() => timer.abort());
  };
  server.end();
  if (await within(timeoutMs)) return;
  server.quit();
  if (await within(2_000)) return;
  server.kill();
  await within(2_000);
}

/** A port that was free a moment ago; whoever uses it has to be ready to ask again. */
function freePort(): Promise<number> {
  return new Promise((done, fail) => {
    const probe = createServer();
    probe.once('error', fail);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => done(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
