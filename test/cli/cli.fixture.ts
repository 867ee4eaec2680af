/** The real program as a process, in an empty folder and an environment of its own. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compiledSource } from '../compiled.js';

export interface Call {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdin?: string | Buffer;
  /** Leaves standard input open, for somebody who types. */
  readonly isTyping?: boolean;
}

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Standard output as it came. */
  readonly bytes: Buffer;
}

export interface Running {
  readonly child: ChildProcessWithoutNullStreams;
  /** What came on a stream by now. */
  stdout(): string;
  stderr(): string;
  finished(): Promise<Finished>;
}

export async function mainFile(): Promise<string> {
  return join(await compiledSource(), 'main.js');
}

/** Nothing of the environment of the tests reaches the program. */
export function cleanEnv(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return { PATH: process.env.PATH ?? '', TZ: 'UTC', ...more };
}

export async function start(args: readonly string[], call: Call = {}): Promise<Running> {
  return startProcess(process.execPath, [await mainFile(), ...args], call);
}

export function startProcess(program: string, args: readonly string[], { env, cwd, stdin, isTyping }: Call): Running {
  const child = spawn(program, args, { env: cleanEnv(env), cwd: cwd ?? tmpdir() });
  const [out, err]: [Buffer[], Buffer[]] = [[], []];
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => err.push(chunk));
  child.stdin.on('error', () => undefined);
  if (!isTyping) child.stdin.end(stdin);
  const closed = once(child, 'close');
  return {
    child,
    stdout: () => Buffer.concat(out).toString(),
    stderr: () => Buffer.concat(err).toString(),
    finished: async () => {
      const [code, signal] = (await closed) as [number | null, NodeJS.Signals | null];
      const bytes = Buffer.concat(out);
      return { code, signal, stdout: bytes.toString(), stderr: Buffer.concat(err).toString(), bytes };
    },
  };
}

export async function capstan(args: readonly string[], call: Call = {}): Promise<Finished> {
  return (await start(args, call)).finished();
}

/** The program on a terminal of 200 columns, made by `script` of util-linux: what is written to its `stdin` is typed. */
export async function startOnTerminal(args: string, call: Call = {}): Promise<Running> {
  const command = `stty cols 200; exec "${process.execPath}" "${await mainFile()}" ${args}`;
  const env = { SHELL: '/bin/sh', TERM: 'xterm', ...call.env };
  return startProcess('script', ['-qec', command, '/dev/null'], { ...call, env });
}

/** For a server: its address, and a token that nobody asks for. */
export function at(url: string, more: Readonly<Record<string, string>> = {}): Call {
  return { env: { CAPSTAN_URL: url, CAPSTAN_TOKEN: 'cap_token-of-the-test', ...more } };
}

export async function inFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'capstan-cli-'));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Resolves when `look` is true; the error says what was waited for. */
export async function until(what: string, look: () => boolean, limitMs = 15_000): Promise<void> {
  const giveUpAt = performance.now() + limitMs;
  while (!look()) {
    if (performance.now() > giveUpAt) throw new Error(`waited ${limitMs} ms in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
