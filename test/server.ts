/** A real server process on an embedded database of its own, and the real command line against it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compiledSource } from './compiled.js';

/** Shorter than the defaults, so that tests see a lease end; within the declared ranges. */
export const QUICK = Object.freeze({
  CAPSTAN_PORT: '0',
  CAPSTAN_KILL_GRACE: '1s',
  CAPSTAN_LEASE_TTL: '15s',
  CAPSTAN_LEASE_RENEW: '2s',
  CAPSTAN_JANITOR_INTERVAL: '1s',
  CAPSTAN_DRAIN_TIMEOUT: '10s',
  CAPSTAN_NAME: 'r1',
});

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ServerProcess {
  readonly child: ChildProcess;
  readonly url: string;
  readonly banner: string;
  /** Everything on standard error so far: JSON lines. */
  log(): string;
  readonly finished: Promise<Finished>;
}

/** A folder for a server's data, in one that is removed afterwards. */
export async function dataFolder(): Promise<{ path: string; remove: () => Promise<void> }> {
  const base = await mkdtemp(join(tmpdir(), 'capstan-job-'));
  await chmod(base, 0o777);
  return { path: join(base, 'data'), remove: () => rm(base, { recursive: true, force: true }) };
}

/** `capstan ARGS…` as a process; `prefix` runs it through another program. */
export async function spawnCapstan(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  prefix: readonly string[] = [],
): Promise<ChildProcess> {
  const main = join(await compiledSource(), 'main.js');
  const [program = process.execPath, ...rest] = [...prefix, process.execPath, main, ...args];
  const { PATH = '' } = process.env;
  return spawn(program, rest, { cwd: tmpdir(), env: { PATH, ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
}

export function finishOf(child: ChildProcess): Promise<Finished> {
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (data) => {
    stdout += data;
  });
  child.stderr?.on('data', (data) => {
    stderr += data;
  });
  return new Promise((resolve) => {
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}

/** Starts a server and resolves once it has said that it is ready. Rejects with its errors when it ends instead. */
export async function startServer(
  env: Readonly<Record<string, string>>,
  prefix: readonly string[] = [],
): Promise<ServerProcess> {
  const child = await spawnCapstan(['serve'], { ...QUICK, ...env }, prefix);
  child.stdin?.end();
  const finished = finishOf(child);
  let stdout = '';
  let stderr = '';
  child.stderr?.on('data', (data) => {
    stderr += data;
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout?.on('data', (data) => {
      stdout += data;
      const ready = /ready at (http:\S+)[\s\S]*\n\n/.exec(stdout);
      if (ready?.[1]) resolve(ready[1]);
    });
    void finished.then(({ code, signal }) => reject(new Error(`the server ended (${code ?? signal}): ${stderr}`)));
  });
  return { child, url, banner: stdout, log: () => stderr, finished };
}

/** Starts a process that executes only, and resolves once it says at its port that it is ready. */
export async function startWorker(
  env: Readonly<Record<string, string>> & { readonly CAPSTAN_PORT: string },
  prefix: readonly string[] = [],
): Promise<ServerProcess> {
  const child = await spawnCapstan(['worker'], { ...QUICK, ...env }, prefix);
  child.stdin?.end();
  const finished = finishOf(child);
  let stderr = '';
  child.stderr?.on('data', (data) => {
    stderr += data;
  });
  const url = `http://127.0.0.1:${env.CAPSTAN_PORT}`;
  await until(
    `the worker is ready: ${stderr}`,
    () =>
      fetch(`${url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      ),
    60_000,
  ).catch((error: unknown) => {
    child.kill('SIGKILL');
    throw error;
  });
  return { child, url, banner: '', log: () => stderr, finished };
}

/** Runs the command line to its end, with `input` on its standard input. */
export async function capstan(
  server: { readonly url: string },
  dataDir: string,
  args: readonly string[],
  input = '',
): Promise<Finished> {
  const child = await spawnCapstan(args, { CAPSTAN_URL: server.url, CAPSTAN_TOKEN_FILE: join(dataDir, 'admin-token') });
  const finished = finishOf(child);
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(input);
  return finished;
}

/** Resolves with the first truthy answer of `ask`; rejects with what was waited for when it takes too long. */
export async function until<T>(what: string, ask: () => T | Promise<T>, withinMs = 20_000): Promise<NonNullable<T>> {
  const end = Date.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > end) throw new Error(`waited ${withinMs} ms in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Whether a process of this id exists and is no zombie (in a container nobody may reap what lost its parent). */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !existsSync('/proc/self/stat') || !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** The supervisor of a server: its child that runs the supervisor's entry. */
export async function supervisorOf(pid: number): Promise<number> {
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ').map(Number);
  for (const child of children) {
    if ((await readFile(`/proc/${child}/cmdline`, 'utf8')).includes('supervisor.main')) return child;
  }
  throw new Error(`no supervisor among ${children}`);
}
