/** What the program's exit code says. Part of its interface: scripts rely on it, `capstan --help` prints it. */

interface ExitCode {
  readonly code: number;
  readonly means: string;
}

export const EXIT_CODES = Object.freeze({
  done: { code: 0, means: 'done' },
  runFailed: { code: 1, means: "run failed or stopped (or its tool's code); a fault found" },
  usage: { code: 2, means: 'wrong usage or settings' },
  unable: { code: 3, means: 'API, network or credentials' },
  waitOver: { code: 124, means: 'wait time over' },
  interrupted: { code: 130, means: 'Ctrl-C' },
  readerGone: { code: 141, means: 'output pipe closed' },
} satisfies Record<string, ExitCode>);

export type ExitName = keyof typeof EXIT_CODES;

/** The part of a run that its exit code is made of. */
interface EndedRun {
  readonly state: string;
  readonly end: { readonly exitCode: number | null } | null;
}

/**
 * The exit code of `--wait`. A run that was stopped may carry an exit code of its tool; that one says nothing about
 * success, so only `failed` hands it on, and never as 0.
 */
export function exitCodeOf(run: EndedRun): number {
  if (run.state === 'succeeded') return EXIT_CODES.done.code;
  const own = run.state === 'failed' ? (run.end?.exitCode ?? 0) : 0;
  return own >= 1 && own <= 255 ? own : EXIT_CODES.runFailed.code;
}
