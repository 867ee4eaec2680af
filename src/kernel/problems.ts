/**
 * The closed list of what can go wrong for a caller. A `Problem` is an answer (RFC 9457), a `Bug` wakes someone;
 * losing a race is neither: it is a returned value.
 */

export const PROBLEMS = Object.freeze({
  malformed_request: { status: 400, title: 'The request is malformed' },
  idempotency_key_invalid: { status: 400, title: 'The Idempotency-Key is invalid' },
  unauthorized: { status: 401, title: 'Credentials are missing or unknown' },
  forbidden: { status: 403, title: 'Not allowed' },
  not_found: { status: 404, title: 'Not found' },
  method_not_allowed: { status: 405, title: 'The method is not allowed here' },
  chain_broken: { status: 409, title: 'The audit chain is broken' },
  id_conflict: { status: 409, title: 'The id is taken' },
  run_ended: { status: 409, title: 'The run has ended' },
  run_not_ended: { status: 409, title: 'The run has not ended' },
  worker_ended: { status: 409, title: 'The worker has ended' },
  worker_stopping: { status: 409, title: 'The worker is stopping' },
  run_removed: { status: 410, title: 'The run was removed' },
  precondition_failed: { status: 412, title: 'It is not as If-Match says' },
  body_too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The media type is not supported' },
  range_not_satisfiable: { status: 416, title: 'The range is outside the output' },
  invalid_input: { status: 422, title: 'The input is invalid' },
  idempotency_key_reused: { status: 422, title: 'The Idempotency-Key was used with another request' },
  too_many_streams: { status: 429, title: 'Too many open streams' },
  signing_key_missing: { status: 503, title: 'There is no signing key' },
  signing_key_superseded: { status: 503, title: 'The signing key was replaced' },
  internal: { status: 500, title: 'Internal error' },
  unavailable: { status: 503, title: 'Temporarily unavailable' },
} as const);

export type ProblemCode = keyof typeof PROBLEMS;

/** A fault in a request's input; `pointer` is a JSON pointer into the body, or `?name` for a query parameter. */
export interface InputFault {
  readonly pointer: string;
  readonly message: string;
}

export interface ProblemOptions {
  readonly errors?: readonly InputFault[];
  /** Further members of the problem document, for instance the end of a run. */
  readonly members?: Readonly<Record<string, unknown>>;
  readonly retryAfterSeconds?: number;
  /** The receipt of what the request changed all the same. */
  readonly receipt?: string;
  readonly cause?: unknown;
}

/** An answer to the caller that isn't the one asked for. `detail` must hold no secret, no SQL and no stack. */
export class Problem extends Error {
  readonly errors: readonly InputFault[];
  readonly members: Readonly<Record<string, unknown>>;
  readonly retryAfterSeconds: number | undefined;
  readonly receipt: string | undefined;

  constructor(
    readonly code: ProblemCode,
    readonly detail: string,
    options: ProblemOptions = {},
  ) {
    super(`${code}: ${detail}`, { cause: options.cause });
    this.name = 'Problem';
    this.errors = options.errors ?? [];
    this.members = options.members ?? {};
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.receipt = options.receipt;
  }

  get status(): number {
    return PROBLEMS[this.code].status;
  }
}

/** 422 with its faults; the detail is made of them when none is given. */
export function invalidInput(errors: readonly InputFault[]): Problem {
  const first = errors[0];
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  return new Problem('invalid_input', first ? `${first.pointer || 'body'}: ${first.message}${more}` : 'invalid', {
    errors,
  });
}

/** Something that must not happen; it is logged as an error and answered 500. */
export class Bug extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'Bug';
  }
}
