/**
 * A PostgreSQL and three replicas of the build, in a temporary folder. However the demo ends, `close` leaves neither a
 * process nor a file; where the demo itself is killed, its guard does.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { until } from './until.mjs';

const STOPS_WITHIN_MS = 2_000;
/** The shortest lease there is; the tools' deadline comes a second of grace and two of room before its end. */
export const LEASE_S = 15;
export const DEADLINE_S = LEASE_S - 1 - 2;
export const SLOTS = 2;
const SETTINGS = Object.freeze({
  CAPSTAN_PORT: '0',
  CAPSTAN_SLOTS: String(SLOTS),
  CAPSTAN_LEASE_TTL: `${LEASE_S}s`,
  CAPSTAN_LEASE_RENEW: '1s',
  CAPSTAN_JANITOR_INTERVAL: '1s',
  CAPSTAN_KILL_GRACE: '1s',
  CAPSTAN_DRAIN_TIMEOUT: '0s',
});

/** Hears the pid of each replica. When the demo is gone, and its end of the pipe with it, it ends them and removes all. */
const GUARD = `
trap '' INT TERM HUP
pids=
while read -r pid; do pids="$pids $pid"; done
for pid in $pids; do [ "$(readlink "/proc/$pid/cwd")" = "$0" ] && kill -KILL "$pid"; done
sleep 3
rm -rf "$0"`;

/**
 * @typedef {object} Replica
 * @property {string} name
 * @property {number} pid
 * @property {string} url
 * @property {() => Record<string, unknown>[]} log What it has logged so far.
 */

export class Fleet {
  folder = '';
  token = `cap_${randomBytes(24).toString('hex')}`;
  /** By name. @type {Map<string, Replica>} */
  replicas = new Map();
  /** Of the key that signs evidence. */
  fingerprint = '';
  #env = {};
  #ends = [];
  #undo = [];
  #guard;
  #dist;
  #signal;

  /** `dist` is the folder of the build; nothing more is started once `signal` aborts. */
  constructor(dist, signal) {
    this.#dist = dist;
    this.#signal = signal;
  }

  /** A folder, the database in it, and a key to sign with. */
  async open() {
    this.folder = await mkdtemp(join(tmpdir(), 'capstan-demo-'));
    this.#undo.push(() => rm(this.folder, { recursive: true, force: true }));
    // PostgreSQL runs as another user when this is root.
    await chmod(this.folder, 0o755);
    this.#setGuard();
    const embedded = pathToFileURL(join(this.#dist, 'platform/postgres/embedded.js'));
    const { startEmbeddedPostgres } = await import(embedded.href);
    const postgres = await startEmbeddedPostgres({
      dataDir: join(this.folder, 'database'),
      databaseName: 'capstan',
      log: (line) => process.stderr.write(`${line}\n`),
    });
    this.#undo.push(() => postgres.stop());
    const { PATH = '', LANG = 'C.UTF-8' } = process.env;
    this.#env = { PATH, LANG, DATABASE_URL: postgres.url, CAPSTAN_BOOTSTRAP_TOKEN: this.token };
    const { stdout, stderr } = await this.run('main.js', ['audit', 'keygen']);
    this.#env.CAPSTAN_AUDIT_KEY = stdout.trim();
    this.fingerprint = /sha256:[0-9a-f]{64}/.exec(stderr)?.[0] ?? '';
  }

  /** Starts a replica; resolves when it is ready. */
  async start(name, settings = {}) {
    this.#signal.throwIfAborted();
    const dataDir = join(this.folder, name);
    await mkdir(dataDir);
    const logFile = join(dataDir, 'log');
    const fd = openSync(logFile, 'a');
    const child = spawn(process.execPath, [join(this.#dist, 'main.js'), 'serve'], {
      cwd: this.folder,
      env: { ...this.#env, ...SETTINGS, CAPSTAN_NAME: name, CAPSTAN_DATA_DIR: dataDir, ...settings },
      stdio: ['ignore', 'pipe', fd],
      // A Ctrl-C at the terminal is the demo's alone: a replica is told by the demo, and stops in order.
      detached: true,
    });
    closeSync(fd);
    child.on('error', () => undefined);
    const log = () => jsonLines(read(logFile));
    const replica = { name, child, pid: child.pid ?? 0, url: '', supervisors: new Set(), log };
    this.replicas.set(name, replica);
    this.#ends.push(() => endReplica(replica));
    this.#guard.stdin.write(`${replica.pid}\n`);
    let said = '';
    child.stdout.on('data', (data) => {
      said += data;
    });
    const isReady = () => {
      if (hasEnded(child)) throw new Error(`replica ${name} did not start: ${read(logFile).slice(-2_000)}`);
      return /ready at (http:\S+)/.exec(said)?.[1];
    };
    replica.url = await until(`replica ${name} is ready`, isReady, { signal: this.#signal });
  }

  /** As `kill` does. */
  signal(name, signal) {
    const replica = this.replicas.get(name);
    noteSupervisor(replica);
    replica.child.kill(signal);
  }

  /** Runs a program of the build as a person would at a shell, beside the first replica; what it says, and its exit code. */
  async run(program, args) {
    this.#signal.throwIfAborted();
    const first = this.replicas.get('r1');
    const child = spawn(process.execPath, [join(this.#dist, program), ...args], {
      cwd: this.folder,
      env: { ...this.#env, ...(first && { CAPSTAN_URL: first.url, CAPSTAN_TOKEN: this.token }) },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const stop = () => child.kill();
    this.#signal.addEventListener('abort', stop);
    const [stdout, stderr] = [child.stdout, child.stderr].map((stream) => text(stream));
    const [code] = await once(child, 'close');
    this.#signal.removeEventListener('abort', stop);
    return { code, stdout: await stdout, stderr: await stderr };
  }

  /** What replicas have complained of lately. */
  complaints() {
    return [...this.replicas.values()].flatMap(({ name, log }) =>
      log()
        .filter(({ level }) => level !== 'info')
        .slice(-3)
        .map(({ code, msg }) => `${name}: ${code}: ${msg}`),
    );
  }

  /** Ends everything, replicas first. */
  async close() {
    await Promise.all(this.#ends.splice(0).map((end) => end()));
    for (let undo = this.#undo.pop(); undo; undo = this.#undo.pop()) await undo().catch(() => undefined);
  }

  #setGuard() {
    this.#guard = spawn('sh', ['-c', GUARD, this.folder], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    this.#guard.on('error', () => undefined);
    this.#guard.stdin.on('error', () => undefined);
    this.#undo.push(async () => this.#guard.kill('SIGKILL'));
  }
}

/** Wakes it, asks, asks again (which stops at once), and kills; then waits for its supervisor, which ends the tools. */
async function endReplica(replica) {
  const { child } = replica;
  for (const signal of ['SIGTERM', 'SIGTERM', 'SIGKILL']) {
    if (hasEnded(child)) break;
    noteSupervisor(replica);
    child.kill(signal);
    child.kill('SIGCONT');
    await within(STOPS_WITHIN_MS, () => hasEnded(child));
  }
  for (const pid of replica.supervisors) {
    if (await within(STOPS_WITHIN_MS, () => !isSupervisor(pid))) continue;
    process.kill(pid, 'SIGKILL');
  }
}

function hasEnded({ exitCode, signalCode, pid }) {
  return exitCode !== null || signalCode !== null || pid === undefined;
}

/** A supervisor outlives its replica by as long as it takes to stop the tools. */
function noteSupervisor({ pid, supervisors }) {
  const children = read(`/proc/${pid}/task/${pid}/children`).trim().split(' ').filter(Boolean).map(Number);
  for (const child of children.filter(isSupervisor)) supervisors.add(child);
}

function isSupervisor(pid) {
  return read(`/proc/${pid}/cmdline`).includes('supervisor.main');
}

/** Whether it became so in time. */
function within(withinMs, isSo) {
  return until('', isSo, { withinMs }).catch(() => false);
}

/** What can't be read (any more) is empty. */
function read(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** Logs are JSON, one document a line; the last may be in the middle of being written. */
function jsonLines(logged) {
  return logged
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}
