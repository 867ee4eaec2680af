/** What a claimed run's spec means as a process: the plan its supervisor carries out. Pure; decodes the stored spec. */
import { encodeId } from '../kernel/ids.js';
import type { ClaimedRun } from '../runs/run.js';
import type { FileRef, ToolPlan } from './supervisor/plan.js';

const SCRIPT_FILE = 'script';

/** What every tool gets besides its run's own `env`. */
export interface ToolSurroundings {
  /** Where programs are looked up. */
  readonly path: string;
  /** Applies to runs that have no timeout of their own. */
  readonly defaultTimeoutMs: number | undefined;
}

export type Work =
  | { readonly type: 'nothing' }
  | { readonly type: 'tool'; readonly plan: ToolPlan; readonly successCodes: readonly number[] }
  | { readonly type: 'unfit'; readonly detail: string };

/** Reads what is to be done. `unfit` when the spec isn't one this program can run (made by another version). */
export function workOf(run: ClaimedRun, surroundings: ToolSurroundings): Work {
  if (run.kind === 'noop') return { type: 'nothing' };
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
        ...environment(spec.env),
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

function scriptArgv(spec: ClaimedRun['spec']): (string | FileRef)[] | undefined {
  const interpreter = typeof spec.interpreter === 'string' ? [spec.interpreter] : texts(spec.interpreter);
  if (!interpreter || interpreter.length === 0 || typeof spec.content !== 'string') return undefined;
  return [...interpreter, { file: SCRIPT_FILE }, ...(texts(spec.args) ?? [])];
}

function environment(value: unknown): Record<string, string> {
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
