/**
 * The messages between replica and supervisor, decoded once at either end. Anything that is not exactly a
 * known message is a FrameError: the supervisor answers it by stopping everything, the replica by killing the supervisor.
 */
import { FrameError } from './frames.js';
import {
  END_CAUSES,
  type EndCause,
  FAILURE_CODES,
  type FileRef,
  type LaunchFailure,
  type PlanFile,
  REFUSALS,
  type Refusal,
  STOP_CAUSES,
  type StopCause,
  type ToolEnd,
  type ToolPlan,
} from './plan.js';

/** Output a tool may have under way before the replica grants more. */
export const INITIAL_CREDIT_BYTES = 256 * 1024;

/** First message, once: whose tools these are, and the folder (0700) this supervisor owns. */
export interface Hello {
  readonly type: 'hello';
  readonly incarnation: string;
  readonly graceMs: number;
  readonly deadlineMs: number;
  readonly root: string;
}

export interface Start {
  readonly type: 'start';
  readonly key: number;
  readonly incarnation: string;
  readonly runId: string;
  readonly fence: number;
  readonly plan: ToolPlan;
}

export type Command =
  | Hello
  | Start
  | { readonly type: 'stop'; readonly key: number; readonly cause: StopCause }
  | { readonly type: 'kill'; readonly key: number }
  | { readonly type: 'credit'; readonly key: number; readonly bytes: number }
  | { readonly type: 'shutdown' };

/** `at` is in milliseconds of the epoch. */
export type SupervisorEvent =
  | { readonly type: 'ready'; readonly pid: number }
  | { readonly type: 'started'; readonly key: number; readonly pgid: number; readonly at: number }
  | { readonly type: 'refused'; readonly key: number; readonly reason: Refusal }
  | ({ readonly type: 'failed'; readonly key: number } & LaunchFailure)
  | ({ readonly type: 'ended'; readonly key: number; readonly at: number } & ToolEnd)
  | { readonly type: 'ack'; readonly seq: number };

type Fields = Record<string, unknown>;

/** Throws FrameError. */
export function decodeCommand(payload: Buffer): Command {
  const m = fields(parse(payload));
  switch (m.type) {
    case 'hello':
      return {
        type: 'hello',
        incarnation: text(m.incarnation),
        graceMs: count(m.graceMs),
        deadlineMs: count(m.deadlineMs),
        root: text(m.root),
      };
    case 'start':
      return {
        type: 'start',
        key: count(m.key),
        incarnation: text(m.incarnation),
        runId: text(m.runId),
        fence: count(m.fence),
        plan: plan(m.plan),
      };
    case 'stop':
      return { type: 'stop', key: count(m.key), cause: oneOf(m.cause, STOP_CAUSES) };
    case 'kill':
      return { type: 'kill', key: count(m.key) };
    case 'credit':
      return { type: 'credit', key: count(m.key), bytes: count(m.bytes) };
    case 'shutdown':
      return { type: 'shutdown' };
    default:
      throw new FrameError('unknown command');
  }
}

/** Throws FrameError. */
export function decodeEvent(payload: Buffer): SupervisorEvent {
  const m = fields(parse(payload));
  switch (m.type) {
    case 'ready':
      return { type: 'ready', pid: count(m.pid) };
    case 'started':
      return { type: 'started', key: count(m.key), pgid: groupId(m.pgid), at: count(m.at) };
    case 'refused':
      return { type: 'refused', key: count(m.key), reason: oneOf(m.reason, REFUSALS) };
    case 'failed':
      return { type: 'failed', key: count(m.key), code: oneOf(m.code, FAILURE_CODES), detail: text(m.detail) };
    case 'ended':
      return {
        type: 'ended',
        key: count(m.key),
        exitCode: m.exitCode === null ? null : count(m.exitCode),
        signal: m.signal === null ? null : text(m.signal),
        cause: oneOf<EndCause>(m.cause, END_CAUSES),
        leftovers: flag(m.leftovers),
        at: count(m.at),
      };
    case 'ack':
      return { type: 'ack', seq: count(m.seq) };
    default:
      throw new FrameError('unknown event');
  }
}

function plan(value: unknown): ToolPlan {
  const m = fields(value);
  return {
    argv: list(m.argv).map(textOrRef),
    // fromEntries defines each name as it is, `__proto__` included.
    env: Object.fromEntries(Object.entries(fields(m.env)).map(([name, item]) => [name, textOrRef(item)])),
    cwd: m.cwd === null ? null : text(m.cwd),
    stdin: m.stdin === null ? null : text(m.stdin),
    files: list(m.files).map(planFile),
    timeoutMs: m.timeoutMs === null ? null : count(m.timeoutMs),
  };
}

function planFile(value: unknown): PlanFile {
  const m = fields(value);
  return { name: text(m.name), content: text(m.content), executable: m.executable !== undefined && flag(m.executable) };
}

function textOrRef(value: unknown): string | FileRef {
  if (typeof value === 'string') return value;
  const m = fields(value);
  return { file: text(m.file), prefix: m.prefix === undefined ? '' : text(m.prefix) };
}

function parse(payload: Buffer): unknown {
  try {
    return JSON.parse(payload.toString());
  } catch {
    throw new FrameError('not JSON');
  }
}

function fields(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new FrameError('not an object');
  return value as Fields;
}

function list(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new FrameError('not a list');
  return value;
}

function text(value: unknown): string {
  if (typeof value !== 'string') throw new FrameError('not a text');
  return value;
}

function flag(value: unknown): boolean {
  if (typeof value !== 'boolean') throw new FrameError('not a flag');
  return value;
}

function count(value: unknown): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw new FrameError('not a count');
  return value;
}

// kill(-1) is every process of the user, kill(0) the caller's own group.
function groupId(value: unknown): number {
  const pgid = count(value);
  if (pgid < 2) throw new FrameError('not a process group');
  return pgid;
}

function oneOf<T extends string>(value: unknown, known: readonly T[]): T {
  const found = known.find((item) => item === value);
  if (found === undefined) throw new FrameError('not a known word');
  return found;
}
