/**
 * The words of the supervisor: what a tool is given before it starts, and how it may end.
 * Only data, so that the executor can build a plan and the wire can carry it unchanged.
 */

/** Stands for the absolute path of one of the plan's own files, behind `prefix` (`{ file: 'vars', prefix: '@' }`). */
export interface FileRef {
  readonly file: string;
  readonly prefix?: string;
}

/** A file written into the tool's private folder before the start: mode 0600, or 0700 when `executable`. */
export interface PlanFile {
  /** A plain file name, no folder in it. */
  readonly name: string;
  readonly content: string;
  readonly executable?: boolean;
}

/** Everything a tool is started with; nothing else reaches it (`HOME` is the private folder unless `env` names one). */
export interface ToolPlan {
  /** `argv[0]` is looked up on the `PATH` of `env`. */
  readonly argv: readonly (string | FileRef)[];
  readonly env: Readonly<Record<string, string | FileRef>>;
  /** Absolute, and there already; `null` is the private folder. */
  readonly cwd: string | null;
  /** UTF-8 text and then end of file; `null` is /dev/null. */
  readonly stdin: string | null;
  readonly files: readonly PlanFile[];
  /** Counted from the spawn; TERM, and KILL after the grace period. */
  readonly timeoutMs: number | null;
}

/** One request to a server, checked and complete; `Capstan-Run-Id`, `Capstan-Fence` and a `User-Agent` are added. */
export interface HttpRequest {
  readonly method: string;
  /** Absolute, http or https, without credentials and fragment. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** Null: any 2xx. */
  readonly expectedStatus: readonly number[] | null;
  /** How many redirects are followed; one more is the answer itself. */
  readonly followRedirects: number;
}

/** A run whose tool is a request. Its answer's body comes as stdout, what is to be kept of it as the output file. */
export interface HttpPlan {
  readonly http: HttpRequest;
  /** Counted from the moment it was handed to the process that makes it. */
  readonly timeoutMs: number;
}

export type Plan = ToolPlan | HttpPlan;

export const STOP_CAUSES = ['cancel', 'drain', 'lost'] as const;

/** Why the replica asks for a stop. */
export type StopCause = (typeof STOP_CAUSES)[number];

export const END_CAUSES = ['self', 'timeout', 'deadline', ...STOP_CAUSES] as const;

/** What ended a tool; of several, the first. */
export type EndCause = (typeof END_CAUSES)[number];

export const REFUSALS = ['deadline', 'incarnation', 'stopping'] as const;

/** Why no tool was started although the plan may be sound. */
export type Refusal = (typeof REFUSALS)[number];

export const FAILURE_CODES = ['unavailable', 'invalid_input', 'internal'] as const;

/** No tool was started because of the plan or of this machine. */
export interface LaunchFailure {
  readonly code: (typeof FAILURE_CODES)[number];
  readonly detail: string;
}

export const VERDICT_CODES = ['ok', 'tool_failed', 'denied', 'internal'] as const;

/** How a tool without an exit status judges its own end: `ok`, or what went wrong. */
export interface Verdict {
  readonly ok: boolean;
  readonly code: (typeof VERDICT_CODES)[number];
  readonly detail: string;
}

/** The end of a tool: exit code or signal as the kernel gave it (both null for a request, and when the supervisor was lost). */
export interface ToolEnd {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly cause: EndCause;
  /** The first process ended by itself, others of its group (or its cgroup) outlived it and had to be stopped. */
  readonly leftovers: boolean;
  /** The grace period at whose end KILL had to be sent, to the first process or to another; null when it wasn't. */
  readonly killedAfterMs: number | null;
  /** Of a request that ended by itself; null for processes, and for a request that was stopped. */
  readonly verdict: Verdict | null;
}
