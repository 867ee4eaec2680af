/**
 * A PostgreSQL as a fleet has it, durable, and everything that can happen to it: restarts of each kind, an outage, lost
 * sessions, a switch to a read-only standby. Clients reach it through `TcpProxy`s that follow it wherever it goes.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { findBinaries } from '../../src/platform/postgres/binaries.js';
import { openDataDirectory } from '../../src/platform/postgres/data-directory.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/platform/postgres/embedded.js';
import { startGuarded } from '../../src/platform/postgres/guarded-process.js';
import { chooseRunAs } from '../../src/platform/postgres/run-as.js';
import { until } from '../server.js';
import { TcpProxy } from '../tcp-proxy.js';
import { freePort } from './port.js';

const SHUT_DOWN_SIGNAL = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const;

export class ChaosDatabase {
  private readonly proxies = new Set<TcpProxy>();

  private constructor(
    private readonly folder: string,
    private readonly flags: readonly string[],
    private server: EmbeddedPostgres,
    private dataDir: string,
    /** The way for whoever has no proxy of its own. */
    private readonly front: TcpProxy,
  ) {
    this.proxies.add(front);
  }

  /** `flags` as for `postgres` itself, e.g. `max_connections=30`. */
  static async start(flags: readonly string[] = []): Promise<ChaosDatabase> {
    const folder = await mkdtemp(join(tmpdir(), 'capstan-chaos-'));
    await chmod(folder, 0o777);
    const dataDir = join(folder, 'data');
    const arguments_ = ['max_connections=300', ...flags].flatMap((flag) => ['-c', flag]);
    const server = await startServerOn(dataDir, arguments_);
    return new ChaosDatabase(folder, arguments_, server, dataDir, await TcpProxy.start(server.url));
  }

  /** For clients, by way of the front proxy. */
  get url(): string {
    return this.front.through;
  }

  /** Past every proxy. */
  get directUrl(): string {
    return this.server.url;
  }

  get frontProxy(): TcpProxy {
    return this.front;
  }

  /** A folder that everybody may write to, for effects; removed in the end. */
  get scratch(): string {
    return this.folder;
  }

  /** A way of its own for one client. */
  async proxy(): Promise<TcpProxy> {
    const proxy = await TcpProxy.start(this.server.url);
    this.proxies.add(proxy);
    return proxy;
  }

  /** One statement as the superuser, past every proxy, in a session of its own. */
  async query<Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    const url = new URL(this.server.adminUrl);
    url.pathname = new URL(this.server.url).pathname;
    const client = await connected(url.href);
    try {
      return (await client.query<Row>(text, [...values])).rows;
    } finally {
      await client.end();
    }
  }

  /** Ends the server as `pg_ctl stop -m MODE` does; it is started again at once. Resolves when it answers. */
  async restart(mode: 'fast' | 'immediate'): Promise<void> {
    const { restarts } = this.server;
    process.kill(await this.postmaster(), SHUT_DOWN_SIGNAL[mode]);
    await until('the database runs again', () => this.server.restarts > restarts, 30_000);
  }

  /** Kills one back end of a client, after which PostgreSQL ends all others and recovers. */
  async crash(): Promise<void> {
    const [row] = await this.query<{ pid: number }>(
      `select pid from pg_stat_activity where application_name like 'capstan%' limit 1`,
    );
    if (!row) throw new Error('no client is connected');
    process.kill(row.pid, 'SIGKILL');
    await until('the database answers again', () => this.query('select 1').catch(() => undefined), 30_000);
  }

  /** Ends sessions whose `application_name` is like `name`. Returns how many. */
  async terminate(name = 'capstan%'): Promise<number> {
    const rows = await this.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where application_name like $1',
      [name],
    );
    return rows.length;
  }

  /** The server is gone until `start`. */
  async stop(): Promise<void> {
    await this.server.stop();
  }

  async start(): Promise<void> {
    this.server = await startServerOn(this.dataDir, this.flags);
    this.lead(portOf(this.server.url));
  }

  /**
   * Leads everybody to a hot standby that has all that was committed: it answers reads and refuses writes. `back` leads
   * them to the primary again. Connections to the server that was left are reset each time.
   */
  async switchToStandby(): Promise<{ back(): Promise<void> }> {
    const copy = join(this.folder, 'standby');
    await this.server.stop();
    // Not by Node: a thousand files take a busy event loop a minute.
    await promisify(execFile)('cp', ['-a', this.dataDir, copy]);
    const standby = await startStandby(copy, this.flags);
    this.lead(standby.port);
    return {
      back: async () => {
        await this.start();
        await standby.stop();
        await rm(copy, { recursive: true, force: true });
      },
    };
  }

  async close(): Promise<void> {
    await Promise.all([...this.proxies].map((proxy) => proxy.close()));
    await this.server.stop();
    await rm(this.folder, { recursive: true, force: true });
  }

  private lead(port: number): void {
    for (const proxy of this.proxies) {
      proxy.retarget(port);
      proxy.reset();
    }
  }

  private async postmaster(): Promise<number> {
    const [row] = await this.query<{ pid: number }>(
      `select pid from pg_stat_activity where backend_type = 'checkpointer'`,
    );
    const stat = readFileSync(`/proc/${row?.pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  }
}

/** Also where clients take the last connection all the time: those that wait for their refusal count too. */
async function connected(url: string): Promise<pg.Client> {
  for (let attempt = 0; ; attempt += 1) {
    const client = new pg.Client(url);
    client.on('error', () => undefined);
    try {
      await client.connect();
      return client;
    } catch (error) {
      const isFull = error instanceof pg.DatabaseError && error.code === '53300';
      if (!isFull || attempt === 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

function startServerOn(dataDir: string, flags: readonly string[]): Promise<EmbeddedPostgres> {
  return startEmbeddedPostgres({ dataDir, databaseName: 'capstan', log: () => undefined, flags });
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}

/** A server that only reads, on a copy of a primary's data folder. */
async function startStandby(
  dataDir: string,
  flags: readonly string[],
): Promise<{ readonly port: number; stop(): Promise<void> }> {
  const dir = openDataDirectory(dataDir);
  const runAs = await chooseRunAs(dir);
  const binaries = findBinaries(dir.libraryLinksPath);
  await writeFile(join(dir.clusterPath, 'standby.signal'), '');
  const port = await freePort();
  const args = ['-D', dir.clusterPath, '-p', String(port), '-c', 'listen_addresses=127.0.0.1'];
  const server = startGuarded({
    program: binaries.postgres,
    args: [...args, '-c', 'unix_socket_directories=', ...flags],
    ...{ runAs, binaries },
  });
  const ready = new Promise<'ready'>((done) => {
    server.onLine((line) => line.includes('ready to accept read-only connections') && done('ready'));
  });
  if ((await Promise.race([ready, server.exited])) !== 'ready') throw new Error(server.lastLines.join('\n'));
  return {
    port,
    stop: async () => {
      server.end();
      await server.exited;
    },
  };
}
