/**
 * Who has the cluster, told from PostgreSQL's own lock file and its sessions. A running Capstan always keeps a session
 * there, so a server without any is an orphan of a killed one and may be ended; anything else is never touched.
 */
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { DataDirError, type DataDirectory } from './data-directory.js';

const CHECK_NAME = 'capstan folder check';
const POLL_MS = 100;
/** Sessions of a killed process are gone in milliseconds; those that stay this long have a living owner. */
const IN_USE_AFTER_MS = 500;
/** A Capstan opens its session within milliseconds of its server's start; this long without any means that nobody will. */
const ORPHAN_AFTER_MS = 1_500;
const QUIT_AFTER_MS = 10_000;

/** `stale` carries the first line of a lock file whose process is gone, or some other program by now. */
export type Occupancy =
  | { readonly state: 'free' }
  | { readonly state: 'stale'; readonly staleLock: string }
  | { readonly state: 'running'; readonly pid: number; readonly port: number };

/** Reads the lock file and checks that its process really is a PostgreSQL on this cluster. */
export function occupancy(clusterPath: string): Occupancy {
  let lines: readonly string[];
  try {
    lines = fs.readFileSync(join(clusterPath, 'postmaster.pid'), 'utf8').split('\n');
  } catch {
    return { state: 'free' };
  }
  const pid = Number(lines[0]);
  if (isServerOf(clusterPath, pid)) return { state: 'running', pid, port: Number(lines[3]) };
  return { state: 'stale', staleLock: `pid:${lines[0] ?? ''}` };
}

/**
 * Waits until the server that has the cluster is gone, ending it when it is an orphan.
 * @throws DataDirError as soon as it is known to be in use, or at the deadline (`performance.now()`, ms).
 */
export async function clearTheWay(
  dir: DataDirectory,
  password: string,
  deadlineAt: number,
  log: (line: string) => void,
): Promise<void> {
  let state: 'unknown' | 'in use' | 'quiet' = 'unknown';
  let since = 0;
  for (;;) {
    const found = occupancy(dir.clusterPath);
    if (found.state !== 'running') return;
    const sessions = await sessionsOf(found.port, password);
    const seen = sessions === undefined ? 'unknown' : sessions.length > 0 ? 'in use' : 'quiet';
    if (seen !== state) {
      state = seen;
      since = performance.now();
    }
    const lastedMs = performance.now() - since;
    if (state === 'in use' && lastedMs >= IN_USE_AFTER_MS) throw inUse(dir, found.pid, sessions ?? []);
    if (state === 'quiet' && lastedMs >= ORPHAN_AFTER_MS) {
      log(`ending the PostgreSQL that a killed Capstan left behind in ${dir.clusterPath} (process ${found.pid})`);
      return endServer(dir, found.pid);
    }
    if (performance.now() > deadlineAt) throw stillThere(dir);
    await pause(POLL_MS);
  }
}

/** Ends a server that nobody guards: cleanly, and after a while by SIGQUIT. @throws DataDirError when it stays. */
export async function endServer(dir: DataDirectory, pid: number): Promise<void> {
  const startedAt = performance.now();
  for (;;) {
    // Looked at each time: the process id may pass to some other program while we wait.
    const found = occupancy(dir.clusterPath);
    if (found.state !== 'running' || found.pid !== pid) return;
    const waitedMs = performance.now() - startedAt;
    if (waitedMs > 2 * QUIT_AFTER_MS) throw stillThere(dir);
    signal(pid, waitedMs > QUIT_AFTER_MS ? 'SIGQUIT' : 'SIGINT');
    await pause(POLL_MS);
  }
}

export function stillThere(dir: DataDirectory): DataDirError {
  return new DataDirError(
    `The data folder ${dir.path} is still held by another PostgreSQL that is starting, stopping or in another container: ` +
      'try again when it has ended, or set CAPSTAN_DATA_DIR to another folder',
  );
}

function inUse(dir: DataDirectory, pid: number, sessions: readonly string[]): DataDirError {
  const isCapstan = sessions.some((name) => name.startsWith('capstan'));
  const who = isCapstan ? 'a running Capstan' : `sessions of ${[...new Set(sessions)].join(', ') || 'another program'}`;
  return new DataDirError(
    `The data folder ${dir.path} is in use by ${who} (PostgreSQL process ${pid}): ` +
      'stop that first, or set CAPSTAN_DATA_DIR to another folder',
  );
}

/** Names of the client sessions other than checks like this one, or `undefined` when the server lets nobody in. */
async function sessionsOf(port: number, password: string): Promise<readonly string[] | undefined> {
  const client = new pg.Client({
    host: '127.0.0.1',
    port,
    user: 'postgres',
    password,
    database: 'postgres',
    application_name: CHECK_NAME,
    connectionTimeoutMillis: 2_000,
    query_timeout: 2_000,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ name: string }>(
      `select application_name as name
         from pg_stat_activity
        where backend_type = 'client backend'
          and application_name <> $1`,
      [CHECK_NAME],
    );
    return rows.map(({ name }) => name);
  } catch {
    return undefined;
  } finally {
    await client.end().catch(() => undefined);
  }
}

function isServerOf(clusterPath: string, pid: number): boolean {
  if (!Number.isInteger(pid) || pid < 2) return false;
  try {
    if (process.platform !== 'linux') {
      const command = execFileSync('/bin/ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
      return command.includes('postgres') && command.includes(clusterPath);
    }
    const cluster = fs.statSync(clusterPath);
    const cwd = fs.statSync(`/proc/${pid}/cwd`);
    const name = fs.readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
    return name === 'postgres' && cwd.dev === cluster.dev && cwd.ino === cluster.ino;
  } catch {
    return false;
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It ended between the look and the signal.
  }
}
