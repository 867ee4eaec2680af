/** What a claimed run's spec means as a process: the plan its supervisor carries out. Pure; decodes the stored spec. */
import { encodeId } from '../kernel/ids.js';
import { traceparentOf } from '../platform/http/request-id.js';
import type { ClaimedRun } from '../runs/run.js';
import type { FileRef, HttpRequest, Plan } from './supervisor/plan.js';

const SCRIPT_FILE = 'script';
/** Of a request whose run and worker name none: a server that never answers must not hold a slot for ever. */
const HTTP_TIMEOUT_MS = 60_000;

/** What every tool gets besides its run's own `env`. */
export interface ToolSurroundings {
  /** Where programs are looked up. */
  readonly path: string;
  /** Applies to runs that have no timeout of their own. */
  readonly defaultTimeoutMs: number | undefined;
}

export type Work =
  | { readonly type: 'nothing' }
  | { readonly type: 'tool'; readonly plan: Plan; readonly successCodes: readonly number[] }
  | { readonly type: 'unfit'; readonly detail: string };

/** Reads what is to be done. `unfit` when the spec isn't one this program can run (made by another version). */
export function workOf(run: ClaimedRun, surroundings: ToolSurroundings): Work {
  if (run.kind === 'noop') return { type: 'nothing' };
  if (run.kind === 'http') return httpWork(run, surroundings);
  const { spec } = run;
  const argv = run.kind === 'command' ? texts(spec.argv) : scriptArgv(spec);
  if (!argv || argv.length === 0) return { type: 'unfit', detail: `this worker can't read the ${run.kind}'s spec` };
  return {
    type: 'tool',
    successCodes: Array.isArray(spec.successCodes) ? spec.successCodes.filter(Number.isInteger) : [0],
    plan: {
      argv,
      env: {
        PATH: surroundings.path,
        LANG: 'C.UTF-8',
        // Nobody is there to answer: what would be asked for is a failure at once.
        GIT_TERMINAL_PROMPT: '0',
        TF_INPUT: '0',
        ...traceOf(run, 'TRACEPARENT'),
        ...textMap(spec.env),
        CAPSTAN_RUN_ID: encodeId('run', run.runId),
        CAPSTAN_FENCE: String(run.fence),
        CAPSTAN_ATTEMPT: '1',
      },
      cwd: text(spec.cwd),
      stdin: text(spec.stdin),
      files: run.kind === 'script' ? [{ name: SCRIPT_FILE, content: text(spec.content) ?? '' }] : [],
      timeoutMs: run.timeoutMs ?? surroundings.defaultTimeoutMs ?? null,
    },
  };
}

function httpWork(run: ClaimedRun, surroundings: ToolSurroundings): Work {
  const http = httpRequest(run);
  if (!http) return { type: 'unfit', detail: "this worker can't read the http's spec" };
  const timeoutMs = run.timeoutMs ?? surroundings.defaultTimeoutMs ?? HTTP_TIMEOUT_MS;
  return { type: 'tool', successCodes: [], plan: { http, timeoutMs } };
}

function httpRequest(run: ClaimedRun): HttpRequest | undefined {
  const { spec } = run;
  const { method, url, expectedStatus, followRedirects } = spec;
  const isStatuses =
    expectedStatus === null || (Array.isArray(expectedStatus) && expectedStatus.every(Number.isInteger));
  if (typeof method !== 'string' || typeof url !== 'string' || !isStatuses) return undefined;
  return {
    method,
    url,
    headers: headersOf(run),
    body: text(spec.body),
    expectedStatus: expectedStatus,
    followRedirects: Number.isInteger(followRedirects) ? Number(followRedirects) : 0,
  };
}

/** The request's own headers, and the trace it belongs to unless they name one. */
function headersOf(run: ClaimedRun): Record<string, string> {
  const own = textMap(run.spec.headers);
  const hasTrace = Object.keys(own).some((name) => name.toLowerCase() === 'traceparent');
  return { ...(hasTrace ? {} : traceOf(run, 'traceparent')), ...own };
}

/** The trace that whoever submitted the run is in, under this name. */
function traceOf({ traceparent }: ClaimedRun, name: string): Record<string, string> {
  const trace = traceparentOf(traceparent ?? undefined);
  return trace === null ? {} : { [name]: trace };
}

function scriptArgv(spec: ClaimedRun['spec']): (string | FileRef)[] | undefined {
  const interpreter = typeof spec.interpreter === 'string' ? [spec.interpreter] : texts(spec.interpreter);
  if (!interpreter || interpreter.length === 0 || typeof spec.content !== 'string') return undefined;
  return [...interpreter, { file: SCRIPT_FILE }, ...(texts(spec.args) ?? [])];
}

function textMap(value: unknown): Record<string, string> {
  if (typeof value !== 'object' || value === null) return {};
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

function texts(value: unknown): string[] | undefined {
  return Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : undefined;
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
