/**
 * The messages between replica and supervisor, decoded once at either end. Anything that is not exactly a
 * known message is a FrameError: the supervisor answers it by stopping everything, the replica by killing the supervisor.
 */
import { FrameError, type Source } from './frames.js';
import {
  END_CAUSES,
  type EndCause,
  FAILURE_CODES,
  type FileRef,
  type HttpRequest,
  type LaunchFailure,
  type Plan,
  type PlanFile,
  REFUSALS,
  type Refusal,
  STOP_CAUSES,
  type StopCause,
  type ToolEnd,
  type ToolPlan,
  VERDICT_CODES,
  type Verdict,
} from './plan.js';
import { count, type Fields, fields, flag, groupId, list, mapOf, oneOf, orNull, parseFields, text } from './wire.js';

/** Output a tool may have under way before the replica grants more. */
export const INITIAL_CREDIT_BYTES = 256 * 1024;

/** So much is read of an events file, and one byte more, by which the reader knows that there was more. */
export const MAX_EVENTS_FILE_BYTES = 16 * 1024 * 1024;
/** And of an output file. */
export const MAX_OUTPUT_FILE_BYTES = 256 * 1024;

/** Of the sources of output those that are files: 3 the events, 4 the output. */
export type ReportSource = Extract<Source, 3 | 4>;

/** `cut`: not all was read, for the tool was told to stop or its files did not answer. */
export const UNREAD_REASONS = ['not_a_file', 'unreadable', 'cut'] as const;

export type UnreadReason = (typeof UNREAD_REASONS)[number];

/** What could not be read of a tool's reports; told at most once for each file. */
export interface Unread {
  readonly source: ReportSource;
  readonly reason: UnreadReason;
  /** Milliseconds of the epoch when it was found out. */
  readonly at: number;
}

/** First message, once: whose tools these are, and the folders (0700) this supervisor owns. */
export interface Hello {
  readonly type: 'hello';
  readonly incarnation: string;
  readonly graceMs: number;
  readonly deadlineMs: number;
  readonly root: string;
  /** Where pipes are made; another than `root` is in memory. */
  readonly pipes: string;
  readonly http: HttpSettings;
  /** Path of the cgroup below which it makes those of its tools; null: they have none. */
  readonly cgroup: string | null;
}

/** How requests of runs are made. */
export interface HttpSettings {
  /** IP addresses and CIDR ranges that may be connected to besides public ones; `*` alone is all. */
  readonly allow: readonly string[];
  /** Sent by requests that name none. */
  readonly userAgent: string;
  /** Path of certificates (PEM) whose signatures count besides those of the authorities that Node brings along. */
  readonly caFile: string | null;
}

export interface Start {
  readonly type: 'start';
  readonly key: number;
  readonly incarnation: string;
  readonly runId: string;
  readonly fence: number;
  readonly plan: Plan;
}

export type Command =
  | Hello
  | Start
  | { readonly type: 'stop'; readonly key: number; readonly cause: StopCause }
  | { readonly type: 'kill'; readonly key: number }
  | { readonly type: 'credit'; readonly key: number; readonly bytes: number }
  | { readonly type: 'shutdown' };

/** Which tools have no cgroup: all of this supervisor, one (and perhaps others right after it), or all later ones. */
const GROUPS_ONLY = ['all', 'one', 'later'] as const;
export type GroupsOnly = (typeof GROUPS_ONLY)[number];

/** `at` is in milliseconds of the epoch. */
export type SupervisorEvent =
  /** `cgroup` is the folder of its tools' cgroups, null when they have none. */
  | { readonly type: 'ready'; readonly pid: number; readonly cgroup: string | null }
  | { readonly type: 'groups_only'; readonly tools: GroupsOnly; readonly why: string }
  | { readonly type: 'started'; readonly key: number; readonly pgid: number; readonly at: number }
  | { readonly type: 'refused'; readonly key: number; readonly reason: Refusal }
  | ({ readonly type: 'failed'; readonly key: number } & LaunchFailure)
  | ({ readonly type: 'unread'; readonly key: number } & Unread)
  | ({ readonly type: 'ended'; readonly key: number; readonly at: number } & ToolEnd)
  | { readonly type: 'ack'; readonly seq: number };

/** Throws FrameError. */
export function decodeCommand(payload: Buffer): Command {
  const m = parseFields(payload);
  switch (m.type) {
    case 'hello':
      return {
        type: 'hello',
        incarnation: text(m.incarnation),
        graceMs: count(m.graceMs),
        deadlineMs: count(m.deadlineMs),
        root: text(m.root),
        pipes: text(m.pipes),
        http: httpSettings(m.http),
        cgroup: orNull(m.cgroup, text),
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
  const m = parseFields(payload);
  switch (m.type) {
    case 'ready':
      return { type: 'ready', pid: count(m.pid), cgroup: orNull(m.cgroup, text) };
    case 'groups_only':
      return { type: 'groups_only', tools: oneOf(m.tools, GROUPS_ONLY), why: text(m.why) };
    case 'started':
      return { type: 'started', key: count(m.key), pgid: groupId(m.pgid), at: count(m.at) };
    case 'refused':
      return { type: 'refused', key: count(m.key), reason: oneOf(m.reason, REFUSALS) };
    case 'failed':
      return { type: 'failed', key: count(m.key), code: oneOf(m.code, FAILURE_CODES), detail: text(m.detail) };
    case 'unread':
      return {
        type: 'unread',
        key: count(m.key),
        source: reportSource(m.source),
        reason: oneOf(m.reason, UNREAD_REASONS),
        at: count(m.at),
      };
    case 'ended':
      return {
        type: 'ended',
        key: count(m.key),
        exitCode: orNull(m.exitCode, count),
        signal: orNull(m.signal, text),
        cause: oneOf<EndCause>(m.cause, END_CAUSES),
        leftovers: flag(m.leftovers),
        killedAfterMs: orNull(m.killedAfterMs, count),
        verdict: orNull(m.verdict, verdict),
        at: count(m.at),
      };
    case 'ack':
      return { type: 'ack', seq: count(m.seq) };
    default:
      throw new FrameError('unknown event');
  }
}

function reportSource(value: unknown): ReportSource {
  if (value === 3 || value === 4) return value;
  throw new FrameError('not a source of reports');
}

/** Also read by the process that makes requests, from its own messages. */
export function httpSettings(value: unknown): HttpSettings {
  const m = fields(value);
  return { allow: list(m.allow).map(text), userAgent: text(m.userAgent), caFile: orNull(m.caFile, text) };
}

/** Also read by the process that makes requests, from its own messages. */
export function verdict(value: unknown): Verdict {
  const m = fields(value);
  return { ok: flag(m.ok), code: oneOf(m.code, VERDICT_CODES), detail: text(m.detail) };
}

function plan(value: unknown): Plan {
  const m = fields(value);
  return 'http' in m ? { http: httpRequest(m.http), timeoutMs: count(m.timeoutMs) } : toolPlan(m);
}

/** Also read by the process that makes requests, from its own messages. */
export function httpRequest(value: unknown): HttpRequest {
  const m = fields(value);
  return {
    method: text(m.method),
    url: text(m.url),
    headers: mapOf(m.headers, text),
    body: orNull(m.body, text),
    expectedStatus: orNull(m.expectedStatus, (statuses) => list(statuses).map(count)),
    followRedirects: count(m.followRedirects),
  };
}

function toolPlan(m: Fields): ToolPlan {
  return {
    argv: list(m.argv).map(textOrRef),
    env: mapOf(m.env, textOrRef),
    cwd: orNull(m.cwd, text),
    stdin: orNull(m.stdin, text),
    files: list(m.files).map(planFile),
    timeoutMs: orNull(m.timeoutMs, count),
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
