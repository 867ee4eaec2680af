/**
 * How a command says that it could not do what was asked: a problem document, the exit code, and what to do next.
 * Invariant: no secret is in any of them.
 */
import { EXIT_CODES, type ExitName } from './exit-codes.js';
import { printable, printableJson, startedAs } from './text.js';

/** RFC 9457, as a server sent it or as the client made it (then without `status`). */
export interface ProblemDocument {
  readonly title: string;
  readonly detail?: string;
  readonly code?: string;
  readonly status?: number;
  readonly errors?: readonly { readonly pointer: string; readonly message: string }[];
  readonly [member: string]: unknown;
}

export class Failure extends Error {
  constructor(
    readonly exit: ExitName,
    readonly problem: ProblemDocument,
    /** Lines that say what to do next. */
    readonly hints: readonly string[] = [],
    options?: ErrorOptions,
  ) {
    super(problem.detail ?? problem.title, options);
    this.name = 'Failure';
  }

  get exitCode(): number {
    return EXIT_CODES[this.exit].code;
  }

  /** The same failure, with more that can be done about it. */
  with(hints: readonly string[]): Failure {
    return new Failure(this.exit, this.problem, [...this.hints, ...hints], { cause: this });
  }

  /** The same failure of something that has begun: its run is named, and what can still be done about it comes first. */
  of(run: string, hints: readonly string[]): Failure {
    return new Failure(this.exit, { ...this.problem, run }, [...hints, ...this.hints], { cause: this });
  }
}

/** What a server said in a problem document. */
export function problemFailure(document: Readonly<Record<string, unknown>>): Failure {
  const { title, detail, code, errors } = document;
  const faults: readonly Readonly<Record<string, unknown>>[] = Array.isArray(errors) ? errors : [];
  return new Failure('unable', {
    ...document,
    title: String(title),
    detail: String(detail ?? ''),
    code: String(code ?? ''),
    status: Number(document.status),
    errors: faults.map(({ pointer, message }) => ({ pointer: String(pointer ?? ''), message: String(message ?? '') })),
  });
}

/** The command line can't be understood. */
export function wrongUsage(detail: string, ...hints: readonly string[]): Failure {
  return new Failure('usage', { title: 'usage', detail, code: 'usage' }, hints);
}

/** Ctrl-C; `detail` says what is left behind. */
export function interrupted(detail?: string, ...hints: readonly string[]): Failure {
  const problem = { title: 'interrupted', ...(detail === undefined ? {} : { detail }), code: 'interrupted' };
  return new Failure('interrupted', problem, hints);
}

/** What a person reads, ending in a newline; whatever the server sent can't steer the terminal. */
export function failureText({ exit, problem, hints }: Failure, program: string): string {
  const { title, detail } = problem;
  // A run can be interrupted too: where there is more to say about ours, that word would be taken for the run's state.
  const first = detail && exit === 'interrupted' ? detail : detail ? `${title}: ${detail}` : title;
  const pointers = (problem.errors ?? [])
    .map(({ pointer, message }) => `${pointer || 'body'}: ${message}`)
    // The detail of a single fault is made of that fault.
    .filter((line) => !first.includes(line));
  const behind = [...pointers, ...hints.map((hint) => startedAs(program, hint))];
  const lines = [`capstan: ${first}`, ...behind.map((line) => `  ${line}`)];
  return `${lines.map(printable).join('\n')}\n`;
}

/** What a program reads: one line of JSON. */
export function failureDocument({ problem, hints }: Failure, program: string): string {
  const hint = hints.map((each) => startedAs(program, each)).join('\n');
  return `${printableJson(hint === '' ? problem : { ...problem, hint })}\n`;
}
