/**
 * From a plan to a process: checks everything that can be checked, writes the files, spawns.
 * Invariant: the tool gets exactly the plan's environment, the places of its reports and three descriptors, leads a session and group of its own,
 * is in a cgroup of its own where that can be had, and where util-linux is there the kernel kills it when the supervisor dies.
 */
import { type ChildProcess, type StdioOptions, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, unlink } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cgroup } from './cgroup.js';
import { openForOutput, type PipeEnds, type ToolPipes } from './fifo.js';
import type { FileRef, LaunchFailure, ToolPlan } from './plan.js';
import { Processes } from './processes.js';
import { checkFolder, findProgram, findSystemProgram } from './program.js';
import type { ReportPaths } from './reports.js';
import type { ToolCgroups } from './tool-cgroups.js';

/** A plan that can be spawned: names resolved, files written. */
export interface PreparedTool {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Record<string, string>;
  readonly cwd: string;
  /** File that holds the standard input; its name is gone once the tool is spawned, or `dropTool` was called. */
  readonly stdinPath: string | null;
  readonly reports: ReportPaths;
}

export interface SpawnedTool {
  readonly child: ChildProcess;
  readonly processes: Processes;
  readonly cgroup: Cgroup | null;
  /** Reading ends of stdout and stderr, the caller's to close. */
  readonly outputFds: readonly [number, number];
  readonly reports: ReportPaths;
}

/** Where a tool reports, in its private folder; not there before it writes, so that one that is silent costs nothing. */
const EVENTS_FILE = '.capstan-events.jsonl';
const OUTPUT_FILE = '.capstan-output.json';

/** The command in front of every tool: `setpriv --pdeathsig KILL --`, or nothing where it does not work. */
export function detectWrapper(): readonly string[] {
  const setpriv = process.platform === 'linux' ? findSystemProgram('setpriv') : null;
  if (setpriv === null) return [];
  const wrapper = [setpriv, '--pdeathsig', 'KILL', '--'];
  // busybox has a setpriv that does not know the option.
  const tried = spawnSync(setpriv, [...wrapper.slice(1), setpriv, '--version'], { env: {}, stdio: 'ignore' });
  return tried.status === 0 ? wrapper : [];
}

/** Of a sound plan with its private folder, in which its files are. */
export async function prepareTool(plan: ToolPlan, folder: string): Promise<PreparedTool | LaunchFailure> {
  const cwd = plan.cwd ?? folder;
  const badFolder = checkFolder(cwd);
  if (badFolder !== null) return badFolder;
  const resolved = (item: string | FileRef) => (typeof item === 'string' ? item : refPath(item, folder));
  const [name = '', ...args] = plan.argv.map(resolved);
  const given = Object.entries(plan.env).map(([key, value]) => [key, resolved(value)] as const);
  const reports = { events: join(folder, EVENTS_FILE), output: join(folder, OUTPUT_FILE) };
  // Behind the plan's own: a tool that reports to another place would not be heard.
  const told = [
    ['CAPSTAN_EVENTS_FILE', reports.events],
    ['CAPSTAN_OUTPUT_FILE', reports.output],
  ];
  const env: Record<string, string> = Object.fromEntries([['HOME', folder], ...given, ...told]);
  const program = findProgram(name, env.PATH, cwd);
  if (typeof program !== 'string') return program;
  if (plan.stdin === null) return { program, args, env, cwd, stdinPath: null, reports };
  // Beside the folder, so that the tool never sees it. Written here: between the judgement and the spawn no disk waits.
  const stdinPath = `${folder}.stdin`;
  try {
    await writeFile(stdinPath, plan.stdin, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    unlink(stdinPath, () => {});
    return failureOf(error, 'write the standard input');
  }
  return { program, args, env, cwd, stdinPath, reports };
}

/** For a tool that was prepared and is not spawned. */
export function dropTool(tool: PreparedTool): void {
  if (tool.stdinPath !== null) unlink(tool.stdinPath, () => {});
}

/** What of the supervisor a tool is born into. */
export interface Birthplace {
  readonly wrapper: readonly string[];
  readonly cgroups: ToolCgroups | null;
}

/** Spawns at once, before the first `await`. `pipes`: fresh ones for stdout and stderr. */
export async function spawnTool(
  key: number,
  tool: PreparedTool,
  { wrapper, cgroups }: Birthplace,
  pipes: ToolPipes,
): Promise<SpawnedTool | LaunchFailure> {
  const open: PipeEnds[] = [];
  const toolFds: number[] = [];
  const fail = (error: unknown): LaunchFailure => {
    for (const ends of open) closeSync(ends.readFd);
    return failureOf(error, `start ${tool.program}`);
  };
  let child: ChildProcess;
  let cgroup: Cgroup | null = null;
  try {
    const out = openForOutput(pipes[0]);
    open.push(out);
    toolFds.push(out.writeFd);
    const err = openForOutput(pipes[1]);
    open.push(err);
    toolFds.push(err.writeFd);
    // A file, not a pipe: it can be opened again by name, is never full and knows no EPIPE.
    const input = tool.stdinPath === null ? null : openSync(tool.stdinPath, 'r');
    if (input !== null) toolFds.push(input);
    const stdio: StdioOptions = [input ?? 'ignore', out.writeFd, err.writeFd];
    const [command = '', ...args] = [...wrapper, tool.program, ...tool.args];
    const start = () => spawn(command, args, { cwd: tool.cwd, env: tool.env, stdio, detached: true });
    [child, cgroup] = cgroups === null ? [start(), null] : cgroups.spawnIn(key, start);
    if (child.pid !== undefined) {
      const processes = new Processes(child.pid, cgroup);
      return { child, processes, cgroup, outputFds: [out.readFd, err.readFd], reports: tool.reports };
    }
  } catch (error) {
    return fail(error);
  } finally {
    // While we hold the tool's ends, its pipes would never report their end.
    for (const fd of toolFds) closeSync(fd);
    dropTool(tool);
  }
  const [error] = await once(child, 'error');
  await cgroup?.remove();
  return fail(error);
}

function refPath(ref: FileRef, folder: string): string {
  return `${ref.prefix ?? ''}${join(folder, ref.file)}`;
}

/** What is wrong with a plan by itself; null: nothing. */
export function planFault(plan: ToolPlan): string | null {
  const names = new Set(plan.files.map((file) => file.name));
  const refs = [...plan.argv, ...Object.values(plan.env)];
  if (plan.argv[0] === undefined || plan.argv[0] === '') return 'argv names no program';
  if (names.size < plan.files.length) return 'two files have one name';
  if ([...names].some((name) => name === '' || name === '.' || name === '..' || /[/\0]/.test(name))) {
    return 'a file name must be plain, without a folder';
  }
  if (refs.some((item) => typeof item !== 'string' && !names.has(item.file))) return 'a file is named and not given';
  if (Object.keys(plan.env).some((name) => name === '' || /[=\0]/.test(name))) return 'a variable has an invalid name';
  const texts = [plan.cwd ?? '', ...refs.map((item) => (typeof item === 'string' ? item : (item.prefix ?? '')))];
  if (texts.some((item) => item.includes('\0'))) return 'argv, env and cwd cannot hold a NUL character';
  return null;
}

const UNAVAILABLE = new Set(['EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE', 'ENOSPC', 'EDQUOT', 'EROFS', 'ENOENT', 'EACCES']);

/** Only the code of the error is told: its text may hold an argument, and an argument a secret. */
export function failureOf(error: unknown, act: string): LaunchFailure {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  if (code === 'E2BIG') {
    return { code: 'invalid_input', detail: 'argument list too long: argv and env together, or one of them' };
  }
  if (code === 'ENAMETOOLONG') return { code: 'invalid_input', detail: 'a file name is too long' };
  return { code: UNAVAILABLE.has(code) ? 'unavailable' : 'internal', detail: `cannot ${act}: ${code}` };
}
