/** What the commands that make a run have in common on the command line, and the body of the submit that it makes. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '../kernel/duration.js';
import { wrongUsage } from './failure.js';
import { queueIn } from './ids.js';
import type { Shell } from './shell.js';
import { textIn } from './text-file.js';
import type { WaitOptions } from './wait.js';

export interface ReplayOptions {
  readonly idempotencyKey?: string;
}

/** What every kind of run takes. */
export interface LaunchOptions extends ReplayOptions, WaitOptions {
  readonly name?: string;
  readonly queue?: string;
  readonly priority?: number;
  readonly timeout?: string;
  readonly label?: ReadonlyMap<string, string>;
}

/** What a process is given. */
export interface ToolOptions {
  readonly env?: ReadonlyMap<string, string>;
  readonly cwd?: string;
  readonly successCode?: readonly number[];
  readonly stdin?: string;
}

/** `timeoutDefault`: what a worker takes that has none of its own, either. */
export function addLaunchOptions(command: Command, timeoutDefault = 'none'): Command {
  const timeoutHelp = `at most, such as 15m (default: the worker's, else ${timeoutDefault})`;
  return command
    .option('--name <name>', 'what the run is called')
    .option('--queue <queue>', 'queue it waits in (default: default)', (text) => queueIn(text, '--queue'))
    .option('--label <key=value>', 'label (repeatable)', pairs('--label'))
    .option('--timeout <duration>', timeoutHelp, duration)
    .option('--priority <n>', 'from -100 to 100, higher first (default: 0)', integer(-100, 100));
}

export function addToolOptions(command: Command): Command {
  return command
    .option('--env <key=value>', "variable of the tool's environment (repeatable)", pairs('--env'))
    .option('--stdin <file>', 'what the tool reads; - for our own (default: nothing)')
    .option('--cwd <dir>', "absolute path there (default: the run's own folder)", absolute)
    .option('--success-code <n>', 'exit code that is a success (default: 0; repeatable)', codes);
}

export function addWaitOptions(command: Command): Command {
  return command
    .option('--idempotency-key <key>', 'one run for this key, however often it is sent', idempotencyKey(255))
    .option('--wait', 'copy the output to its end; exit with its code')
    .addOption(
      new Option('--wait-limit <duration>', '--wait, but at most so long, such as 90s').argParser(milliseconds),
    );
}

/** The body of a submit; what was not given is left to the server. */
export function submissionOf(kind: string, spec: Readonly<Record<string, unknown>>, options: LaunchOptions): unknown {
  const { name, queue, priority, timeout, label } = options;
  return {
    kind,
    ...given({ name, queue, priority, timeout, labels: label && Object.fromEntries(label) }),
    spec,
  };
}

/** The part of a spec that processes have in common. Reads the text that the tool is to read. */
export async function toolMembers(shell: Shell, options: ToolOptions): Promise<Record<string, unknown>> {
  const { env, cwd, successCode, stdin } = options;
  const text = stdin === undefined ? undefined : await textIn(shell, stdin);
  return given({ env: env && Object.fromEntries(env), cwd, stdin: text, successCodes: successCode });
}

/** Those that have a value. */
export function given<T>(members: Readonly<Record<string, T | undefined>>): Record<string, T> {
  const entries = Object.entries(members).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  );
  return Object.fromEntries(entries);
}

/** Collects `key=value`. A refused text is never shown: it may hold a secret. */
export function pairs(flag: string) {
  return (text: string, before: ReadonlyMap<string, string> = new Map()): ReadonlyMap<string, string> => {
    const at = text.indexOf('=');
    if (at < 1) {
      const hint = flag === '--env' ? ["nothing is taken from your own environment: --env NAME='value'"] : [];
      throw wrongUsage(`${flag}: expected KEY=VALUE`, ...hint);
    }
    const key = text.slice(0, at);
    if (before.has(key)) throw wrongUsage(`${flag}: ${key} is given twice`);
    return new Map([...before, [key, text.slice(at + 1)]]);
  };
}

export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^-?\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Expected an integer from ${min} to ${max}.`);
  };
}

function absolute(text: string): string {
  if (text.startsWith('/')) return text;
  throw wrongUsage("--cwd: expected an absolute path, on the worker's machine: it begins with /");
}

function codes(text: string, before: readonly number[] = []): readonly number[] {
  return [...before, integer(0, 255)(text)];
}

function duration(text: string): string {
  milliseconds(text);
  return text;
}

function milliseconds(text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined && ms > 0) return ms;
  throw new InvalidArgumentError('Expected an integer and ms, s, m, h or d, for instance 90s.');
}

export function idempotencyKey(limitBytes: number): (text: string) => string {
  return (text) => {
    const bytes = Buffer.byteLength(text, 'utf8');
    // Blanks at the ends would be lost on the wire, and with them the difference between two keys.
    const isSendable = !/^\s|\s$|\p{Cc}/u.test(text) && text.isWellFormed();
    if (isSendable && bytes >= 1 && bytes <= limitBytes) return text;
    throw new InvalidArgumentError(
      `Expected 1 to ${limitBytes} bytes without control characters or blanks at the ends.`,
    );
  };
}
