/** PgBouncer as operators put it in front of PostgreSQL: transaction mode, its own few connections for many clients. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { until } from '../server.js';
import { freePort } from './port.js';

export interface PgBouncer {
  /** For clients, through the pooler. */
  readonly url: string;
  /** What it wrote to its log so far. */
  log(): string;
  close(): Promise<void>;
}

/** In front of the database of `databaseUrl`; `poolSize` connections serve everybody. */
export async function startPgBouncer(databaseUrl: string, poolSize: number): Promise<PgBouncer> {
  const target = new URL(databaseUrl);
  const folder = await mkdtemp(join(tmpdir(), 'capstan-pgbouncer-'));
  // It refuses to run as root, and then has to read these as somebody else.
  await chmod(folder, 0o755);
  const port = await freePort();
  const [ini, users] = [join(folder, 'pgbouncer.ini'), join(folder, 'users.txt')];
  await writeFile(users, `"${decodeURIComponent(target.username)}" "${decodeURIComponent(target.password)}"\n`);
  await writeFile(ini, config(target, port, users, poolSize));
  const asNobody = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const child = spawn('/usr/sbin/pgbouncer', [...asNobody, ini], { stdio: ['ignore', 'ignore', 'pipe'] });
  let errors = '';
  child.stderr?.on('data', (data) => {
    errors += data;
  });
  const url = new URL(databaseUrl);
  url.port = String(port);
  url.hostname = '127.0.0.1';
  await until('PgBouncer answers', async () => {
    if (child.exitCode !== null) throw new Error(`PgBouncer ended: ${errors}`);
    return answers(url.href);
  });
  return {
    url: url.href,
    log: () => errors,
    close: async () => {
      const ended = child.exitCode === null ? once(child, 'exit') : undefined;
      child.kill('SIGTERM');
      child.kill('SIGKILL');
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('select 1');
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}

function config(target: URL, port: number, users: string, poolSize: number): string {
  return `
[databases]
* = host=127.0.0.1 port=${target.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = plain
auth_file = ${users}
pool_mode = transaction
default_pool_size = ${poolSize}
max_client_conn = 500
server_login_retry = 1
log_connections = 0
log_disconnections = 0
`;
}
