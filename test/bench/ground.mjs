/**
 * What is measured: real replicas of a build over one PostgreSQL of their own in a temporary folder. Whatever was
 * started here is on `undo`, so that an end at any moment leaves neither a process nor a file.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { Child, endProcess } from './child.mjs';
import { Client } from './client.mjs';

const READY_WITHIN_MS = 60_000;
const SETTINGS = Object.freeze({
  CAPSTAN_PORT: '0',
  CAPSTAN_LOG_LEVEL: 'warn',
  CAPSTAN_KILL_GRACE: '1s',
  CAPSTAN_DRAIN_TIMEOUT: '1s',
  CAPSTAN_HTTP_ALLOW: '127.0.0.0/8',
});

/**
 * @typedef {object} Replica
 * @property {number} pid
 * @property {string} url
 * @property {Client} client
 * @property {() => Promise<void>} end
 */

export class Ground {
  #undo = [];
  /** Ends of what runs for the part that is measured. */
  #running = new Set();
  #dist;
  #token = `cap_${randomBytes(24).toString('hex')}`;
  #steps = new Set();
  #isClosed = false;
  /** A session on the database of the replicas. @type {pg.Client} */
  sql;
  #databaseUrl = '';
  #adminUrl = '';
  #databases = 0;

  /** `dist` is the folder of the build that is measured. */
  constructor(dist) {
    this.#dist = dist;
  }

  open() {
    return this.#step(async () => {
      const folder = await mkdtemp(join(tmpdir(), 'capstan-bench-'));
      this.#undo.push(() => rm(folder, { recursive: true, force: true }));
      // PostgreSQL runs as another user when this is root.
      await chmod(folder, 0o755);
      const { startEmbeddedPostgres } = await import(this.#module('platform/postgres/embedded.js'));
      const postgres = await startEmbeddedPostgres({
        dataDir: join(folder, 'data'),
        databaseName: 'capstan',
        log: (line) => process.stderr.write(`${line}\n`),
        flags: ['-c', 'max_connections=200'],
      });
      this.#undo.push(() => postgres.stop());
      this.#databaseUrl = postgres.url;
      this.#adminUrl = postgres.adminUrl;
      this.sql = await this.session();
    });
  }

  /** From here on replicas get a database of their own, in which nothing is left of what was measured before. */
  async renew() {
    await this.endRunning();
    this.#databaseUrl = await this.database('capstan');
    this.sql = await this.session();
  }

  /** The address of a new, empty database. */
  database(name) {
    return this.#step(async () => {
      this.#databases += 1;
      const url = new URL(this.#databaseUrl);
      url.pathname = `/${name}_${this.#databases}`;
      await this.#asAdmin((admin) => admin.query(`create database ${name}_${this.#databases} owner "${url.username}"`));
      return url.href;
    });
  }

  /** What autovacuum would have done by and by: everybody's drain begins with clean pages and fresh statistics. */
  async tidy(url = this.#databaseUrl) {
    const { pathname } = new URL(url);
    await this.#asAdmin(async (admin) => {
      await admin.query('vacuum analyze');
      await admin.query('checkpoint');
    }, pathname);
  }

  async #asAdmin(work, pathname) {
    const url = new URL(this.#adminUrl);
    if (pathname !== undefined) url.pathname = pathname;
    const admin = new pg.Client(url.href);
    await admin.connect();
    try {
      return await work(admin);
    } finally {
      await admin.end();
    }
  }

  /** Another session on that database. */
  async session() {
    const session = new pg.Client(this.#databaseUrl);
    session.on('error', () => undefined);
    await session.connect();
    this.#undo.push(() => session.end());
    return session;
  }

  /** A function that claims up to `limit` runs, as a worker of its own that serves these queues. */
  async claims(queues, limit) {
    const [{ Pool }, { claimIfLive }] = await Promise.all([
      import(this.#module('platform/db/db.js')),
      import(this.#module('runs/claim.sql.js')),
    ]);
    const log = { warn: (about) => process.stderr.write(`${JSON.stringify(about)}\n`) };
    const options = { url: this.#databaseUrl, direct: true, name: 'bench', size: 1, statementTimeoutMs: 5_000, log };
    const pool = new Pool(options);
    this.#undo.push(() => pool.close());
    const { rows } = await this.sql.query(
      `insert into workers (id, name, kind, slots, queues, version, ttl_ms, lease_until)
       values (gen_random_uuid(), 'bench', 'worker', 1, $1, '0', 30000, now() + interval '1 day') returning id`,
      [queues],
    );
    return () => claimIfLive(pool, rows[0].id, queues, limit);
  }

  /**
   * Starts a replica; resolves when it is ready.
   * @returns {Promise<Replica>}
   */
  replica(settings = {}, connections = 8) {
    return this.#step(async () => {
      const { PATH = '', LANG = 'C.UTF-8' } = process.env;
      const own = { DATABASE_URL: this.#databaseUrl, CAPSTAN_BOOTSTRAP_TOKEN: this.#token, ...SETTINGS };
      const child = spawn(process.execPath, [join(this.#dist, 'main.js'), 'serve'], {
        cwd: tmpdir(),
        env: { PATH, LANG, ...own, ...settings },
        stdio: ['ignore', 'pipe', 'pipe'],
        // A Ctrl-C at the terminal is ours alone: the replica is told by us, and stops in order.
        detached: true,
      });
      const url = await readyUrl(child).catch(async (error) => {
        await endProcess(child);
        throw error;
      });
      const client = new Client(url, this.#token, connections);
      const end = this.#runs(async () => {
        await client.close();
        await endProcess(child);
      });
      return { pid: child.pid ?? 0, url, client, end };
    });
  }

  /** A process that puts load on a replica. */
  load(file, url) {
    return this.child(process.execPath, file, { BENCH_URL: url, BENCH_TOKEN: this.#token });
  }

  /** A process of the bench's own, run by this Node. */
  child(node, file, env) {
    return this.#step(() => Child.start(node, file, env, (child) => this.#runs(() => child.end())));
  }

  /** Runs a program to its end; what it says goes to standard error. Rejects unless it ends well. */
  async run(program, args, options) {
    const child = spawn(program, args, { ...options, stdio: ['ignore', 2, 2], detached: true });
    const forget = this.#runs(() => endProcess(child));
    const code = await new Promise((resolve, reject) => child.once('error', reject).once('exit', resolve));
    await forget();
    if (code !== 0) throw new Error(`${program} ${args[0]} ended with ${code}`);
  }

  /** Ends every replica and every child there is. */
  async endRunning() {
    await Promise.all([...this.#running].map((end) => end()));
  }

  #runs(end) {
    const once = () => {
      this.#running.delete(once);
      return end();
    };
    this.#running.add(once);
    return once;
  }

  /** Ends everything, in the reverse order; waits for a start that is in flight, to end that too. */
  async close() {
    this.#isClosed = true;
    await Promise.allSettled(this.#steps);
    await this.endRunning();
    for (let undo = this.#undo.pop(); undo; undo = this.#undo.pop()) await undo().catch(() => undefined);
  }

  /** The address of a file of the measured build. */
  #module(path) {
    return pathToFileURL(join(this.#dist, path)).href;
  }

  #step(work) {
    if (this.#isClosed) return Promise.reject(new Error('the bench was ended'));
    const step = work();
    this.#steps.add(step);
    const forget = () => this.#steps.delete(step);
    step.then(forget, forget);
    return step;
  }
}

/** The address that a replica says it is ready at; rejects with what it said when it ends or takes too long. */
function readyUrl(child) {
  let errors = '';
  child.stderr.on('data', (data) => {
    errors = (errors + data).slice(-4_000);
  });
  return new Promise((resolve, reject) => {
    const fail = (why) => reject(new Error(`a replica did not start: ${why} ${errors}`));
    const timer = setTimeout(() => fail('too slow'), READY_WITHIN_MS);
    child.once('error', (error) => fail(error.message));
    child.once('exit', (code, signal) => fail(`ended (${code ?? signal})`));
    createInterface({ input: child.stdout }).on('line', (line) => {
      const url = /ready at (http:\S+)/.exec(line)?.[1];
      if (url === undefined) return;
      clearTimeout(timer);
      resolve(url);
    });
  });
}
