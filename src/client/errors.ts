/**
 * What the client throws, besides the reason of an aborted signal. Invariant: no message, member or cause holds the
 * token.
 */
import type { components } from './schema.js';

/** RFC 9457, with whatever further members a server sent. */
export interface ProblemDocument {
  readonly title: string;
  readonly detail?: string;
  readonly code?: string;
  readonly status?: number;
  readonly errors?: readonly InputFault[];
  readonly [member: string]: unknown;
}

export interface InputFault {
  /** JSON pointer into the body, or `?name` for a parameter. */
  readonly pointer: string;
  readonly message: string;
}

/** The closed list of a server of this version; a later one may say others. */
export type ProblemCode = components['schemas']['Problem']['code'];

/** All that the client throws is one of these, or the reason of your signal. */
export class CapstanError extends Error {
  override readonly name: string = 'CapstanError';
}

/** The server, or a balancer in front of it, answered that it won't. */
export class CapstanProblem extends CapstanError {
  override readonly name = 'CapstanProblem';
  readonly title: string;
  readonly detail: string | undefined;
  /** `undefined` when something else than Capstan answered. */
  readonly code: ProblemCode | undefined;
  readonly errors: readonly InputFault[];
  /** Look for it in the server's log. */
  readonly requestId: string | undefined;

  constructor(
    readonly status: number,
    /** All of it, such as the `end` of a run that can't be canceled any more. */
    readonly document: ProblemDocument,
  ) {
    super(document.detail ?? document.title);
    const { title, detail, code, errors, requestId } = document;
    this.title = title;
    this.detail = detail;
    this.code = code as ProblemCode | undefined;
    this.errors = errors ?? [];
    this.requestId = typeof requestId === 'string' ? requestId : undefined;
  }
}

/** The server can't be reached or heard out. */
export class NoConnection extends CapstanError {
  override readonly name = 'NoConnection';

  constructor(
    message: string,
    /** The system's word for it, such as `ECONNREFUSED`; `TIMEOUT` when no answer came in time. */
    readonly code: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Something answered that is no Capstan server, or one of another version. */
export class UnexpectedAnswer extends CapstanError {
  override readonly name = 'UnexpectedAnswer';

  constructor(readonly what: string) {
    super(`this is not the answer of a Capstan server: ${what}`);
  }
}

/** The problem in an answer that isn't a wanted one; reads its body. */
export async function problemOf(response: Response, origin: string): Promise<CapstanProblem> {
  const { status } = response;
  const document = parsed(await response.text());
  if (document !== undefined) return new CapstanProblem(status, { ...document, ...problemMembers(document, status) });
  if (status >= 300 && status < 400) {
    // Followed, it could carry the token to another host.
    const where = response.headers.get('location') ?? 'elsewhere';
    const detail = `${origin} points to ${where}: name that server instead`;
    return new CapstanProblem(status, { title: 'redirected', status, detail });
  }
  const detail = `${origin} did not answer as a Capstan server does`;
  return new CapstanProblem(status, { title: `HTTP ${status}`, status, detail });
}

type Fields = Readonly<Record<string, unknown>>;

function parsed(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isFields(value) && typeof value.title === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The members that have a meaning, each of its type or absent. */
function problemMembers({ title, detail, code, errors }: Fields, status: number): ProblemDocument {
  return {
    title: String(title),
    status,
    ...(detail === undefined ? {} : { detail: String(detail) }),
    ...(code === undefined ? {} : { code: String(code) }),
    ...(Array.isArray(errors) ? { errors: errors.filter(isFields).map(inputFault) } : {}),
  };
}

function inputFault({ pointer, message }: Fields): InputFault {
  return { pointer: String(pointer ?? ''), message: String(message ?? '') };
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
