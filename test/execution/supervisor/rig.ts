/**
 * A real supervisor for one test, with the lease renewed or not as the test says, and tools as promises of their end.
 */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { onTestFinished } from 'vitest';
import { findOwnCgroup } from '../../../src/execution/supervisor/cgroup.js';
import { creditOf, type Source } from '../../../src/execution/supervisor/frames.js';
import { encodeExtension } from '../../../src/execution/supervisor/keeper-frame.js';
import { MEMORY_DIR } from '../../../src/execution/supervisor/places.js';
import type {
  HttpRequest,
  LaunchFailure,
  Plan,
  Refusal,
  ToolEnd,
  ToolPlan,
} from '../../../src/execution/supervisor/plan.js';
import type { Unread } from '../../../src/execution/supervisor/protocol.js';
import { type Supervisor, startSupervisor } from '../../../src/execution/supervisor/supervisor.client.js';
import { compiledSource } from '../../compiled.js';

export interface RigOptions {
  readonly graceMs?: number;
  readonly deadlineMs?: number;
  /** False: the test sends the extensions itself. */
  readonly isRenewed?: boolean;
  /** What `CAPSTAN_HTTP_ALLOW` would say. */
  readonly allow?: readonly string[];
  /** What `NODE_EXTRA_CA_CERTS` would say. */
  readonly caFile?: string;
  /** The cgroup below which tools get theirs; by default this process's own, null for none. */
  readonly cgroup?: string | null;
  /** False: as on a machine without a file system in memory. */
  readonly hasMemory?: boolean;
  onGroupsOnly?(tools: string, why: string): void;
}

export interface Rig {
  readonly supervisor: Supervisor;
  readonly pid: number;
  readonly incarnation: string;
  /** A folder of the test's own, removed after it. */
  readonly scratch: string;
  /** The folder the supervisor was started in. */
  readonly temp: string;
  /** The folder in memory for its pipes; the same as `temp` where there is none. */
  readonly memory: string;
  renew(extension?: { incarnation?: string; sentAtNs?: bigint }): number;
  launch(plan: Partial<ToolPlan>, options?: LaunchOptions): LaunchedTool;
  /** A run of kind `http`. */
  request(http: Partial<HttpRequest>, options?: LaunchOptions & { timeoutMs?: number }): LaunchedTool;
}

export interface LaunchOptions {
  readonly incarnation?: string;
  readonly credit?: 'granted' | 'withheld';
}

export interface LaunchedTool {
  readonly key: number;
  readonly runId: string;
  readonly pgid: Promise<number>;
  /** Ended, failed or refused. */
  readonly outcome: Promise<Outcome>;
  readonly chunks: { readonly stream: Source; readonly bytes: Buffer }[];
  /** What was told of reports that were not read, and how many chunks had come before. */
  readonly unread: (Omit<Unread, 'at'> & { readonly after: number })[];
  /** What its chunks took of its credit. */
  spentCredit(): number;
  text(stream?: Source): string;
  bytes(stream?: Source): Buffer;
}

export type Outcome = Partial<ToolEnd> & { readonly refused?: Refusal; readonly failed?: LaunchFailure };

export async function startRig(options: RigOptions = {}): Promise<Rig> {
  const { graceMs = 1_000, deadlineMs = 60_000, isRenewed = true, allow = [], caFile = null } = options;
  const { cgroup = findOwnCgroup(), onGroupsOnly = () => undefined, hasMemory = true } = options;
  const entry = pathToFileURL(join(await compiledSource(), 'execution/supervisor/supervisor.main.js'));
  const incarnation = randomUUID();
  const scratch = mkdtempSync(join(tmpdir(), 'capstan-spec-'));
  const temp = mkdtempSync(join(tmpdir(), 'capstan-spec-'));
  const memory = hasMemory && existsSync(MEMORY_DIR) ? mkdtempSync(join(MEMORY_DIR, 'capstan-spec-')) : temp;
  const http = { allow, userAgent: 'capstan/test', caFile };
  const supervisor = await startSupervisor({
    incarnation,
    graceMs,
    deadlineMs,
    http,
    entry,
    cgroup,
    onGroupsOnly,
    tempDir: temp,
    memoryDir: memory === temp ? join(temp, 'nowhere') : memory,
  });
  onTestFinished(async () => {
    await supervisor.shutdown();
    supervisor.closeKeeperFd();
    rmSync(scratch, { recursive: true });
    rmSync(temp, { recursive: true });
    rmSync(memory, { recursive: true, force: true });
  });
  let seq = 0;
  const renew: Rig['renew'] = (extension = {}) => {
    seq += 1;
    const frame = { incarnation, sentAtNs: process.hrtime.bigint(), ...extension, seq };
    writeSync(supervisor.keeperFd, encodeExtension(frame));
    return seq;
  };
  if (isRenewed) renew();
  let key = 0;
  const launchPlan = (plan: Plan, { incarnation: named = incarnation, credit = 'granted' }: LaunchOptions = {}) => {
    key += 1;
    return launchTool(supervisor, { key, incarnation: named, plan, isGranted: credit === 'granted' });
  };
  const launch: Rig['launch'] = (plan, options) => launchPlan(planOf(plan), options);
  const request: Rig['request'] = (http, { timeoutMs = 60_000, ...options } = {}) =>
    launchPlan({ http: requestOf(http), timeoutMs }, options);
  return { supervisor, pid: supervisor.pid ?? 0, incarnation, scratch, temp, memory, renew, launch, request };
}

export function planOf(plan: Partial<ToolPlan>): ToolPlan {
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin' };
  return { argv: ['true'], env, cwd: null, stdin: null, files: [], timeoutMs: null, ...plan };
}

export function requestOf(http: Partial<HttpRequest>): HttpRequest {
  const url = 'http://127.0.0.1/';
  return { method: 'GET', url, headers: {}, body: null, expectedStatus: null, followRedirects: 0, ...http };
}

/** `sh -c script` */
export function shell(script: string): Pick<ToolPlan, 'argv'> {
  return { argv: ['sh', '-c', script] };
}

function launchTool(
  supervisor: Supervisor,
  { key, incarnation, plan, isGranted }: { key: number; incarnation: string; plan: Plan; isGranted: boolean },
): LaunchedTool {
  const chunks: LaunchedTool['chunks'] = [];
  const unread: LaunchedTool['unread'] = [];
  const runId = randomUUID();
  let onStarted: (pgid: number) => void;
  let onOutcome: (outcome: Outcome) => void;
  const pgid = new Promise<number>((resolve) => {
    onStarted = resolve;
  });
  const outcome = new Promise<Outcome>((resolve) => {
    onOutcome = resolve;
  });
  supervisor.launch(
    { key, incarnation, runId, fence: 1, plan },
    {
      onStarted: (started) => onStarted(started.pgid),
      onOutput: (chunk) => {
        chunks.push({ stream: chunk.source, bytes: Buffer.from(chunk.bytes) });
        if (isGranted) supervisor.grantCredit(key, creditOf(chunk.bytes.length));
      },
      onUnread: ({ source, reason }) => unread.push({ source, reason, after: chunks.length }),
      onEnded: ({ exitCode, signal, cause, leftovers, killedAfterMs, verdict }) =>
        onOutcome({
          exitCode,
          signal,
          cause,
          leftovers,
          ...(killedAfterMs !== null && { killedAfterMs }),
          ...(verdict && { verdict }),
        }),
      onFailed: (failed) => onOutcome({ failed }),
      onRefused: (refused) => onOutcome({ refused }),
    },
  );
  const bytes = (stream?: Source) =>
    Buffer.concat(chunks.filter((chunk) => (stream ?? chunk.stream) === chunk.stream).map((chunk) => chunk.bytes));
  const spentCredit = () => chunks.reduce((sum, chunk) => sum + creditOf(chunk.bytes.length), 0);
  return { key, runId, pgid, outcome, chunks, unread, spentCredit, bytes, text: (stream) => bytes(stream).toString() };
}

/** Looks every 10 ms until `isSo`; fails naming `what` after `limitMs`. */
export async function until(what: string, isSo: () => boolean, limitMs = 10_000): Promise<void> {
  const endAt = performance.now() + limitMs;
  while (!isSo()) {
    if (performance.now() > endAt) throw new Error(`still waiting after ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** What `promise` resolves with, in time. */
export async function within<T>(limitMs: number, what: string, promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const note = () => {
    isSettled = true;
  };
  promise.then(note, note);
  await until(what, () => isSettled, limitMs);
  return promise;
}

/** Fields of /proc/<pid>/stat from the state on: state, parent, group, session … */
function statOf(pid: number): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
}

/** State letter of a process (`S`, `T`, `Z` …), undefined when there is none. */
export function stateOf(pid: number): string | undefined {
  return statOf(pid)[0];
}

export function parentOf(pid: number): number {
  return Number(statOf(pid)[1]);
}

export function isRunning(pid: number): boolean {
  return !['Z', 'X', undefined].includes(stateOf(pid));
}

/** Processes of the group that are not zombies. */
export function livingMembers(pgid: number): number[] {
  return processes().filter((pid) => statOf(pid)[2] === String(pgid) && isRunning(pid));
}

/** Processes that this one started and that have not ended, or whose end it has not taken note of. */
export function childrenOf(parent: number, which: 'alive' | 'dead or alive' = 'alive'): number[] {
  return processes().filter((pid) => parentOf(pid) === parent && (which === 'dead or alive' || isRunning(pid)));
}

function processes(): number[] {
  return readdirSync('/proc').map(Number).filter(Number.isInteger);
}

export function linesOf(path: string): string[] {
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : [];
}
