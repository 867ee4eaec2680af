/** What any error means to a caller: the one place where errors meet HTTP statuses. Pure. */
import { HttpException } from '@nestjs/common';
import { Problem, type ProblemCode } from '../../kernel/problems.js';
import { errorCode, isTransient, isUnrecordable } from '../db/db.js';

const RETRY_AFTER_SECONDS = 1;
/** A person has to do something before another try goes better. */
const RETRY_AFTER_REPAIR_SECONDS = 60;

/** What Fastify refuses by itself, by its codes. */
const REFUSALS: Readonly<Record<string, readonly [code: ProblemCode, detail: string]>> = {
  FST_ERR_BAD_URL: ['malformed_request', 'the path has a bad percent encoding'],
  FST_ERR_CTP_BODY_TOO_LARGE: ['body_too_large', 'the body is larger than this route takes: 1 MiB, a batch 16 MiB'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['malformed_request', 'the length of the body is not the announced one'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['unsupported_media_type', 'send the body as `Content-Type: application/json`'],
  FST_ERR_MAX_PARAM_LENGTH: ['not_found', 'there is no such resource'],
};

/** What Nest refuses by itself, by its statuses. */
const NEST_REFUSALS: Readonly<Record<number, readonly [code: ProblemCode, detail: string]>> = {
  400: ['malformed_request', 'the request is malformed'],
  403: ['forbidden', 'this is not allowed'],
  404: ['not_found', 'there is no such route'],
};

/** The problem behind an error of the framework; what it refuses with a status below 500 is the caller's fault. */
function frameworkProblem(error: object): Problem | undefined {
  const refusal = REFUSALS[errorCode(error) ?? ''];
  if (refusal) return new Problem(...refusal);
  const status = 'statusCode' in error && typeof error.statusCode === 'number' ? error.statusCode : 500;
  return status >= 400 && status < 500 ? new Problem('malformed_request', 'the request is malformed') : undefined;
}

/**
 * The problem that an error is answered with. `isExpected` is false for what nobody foresaw: that is a 500, to be
 * logged as an error. Nothing of the error's own text gets out unless it is a `Problem`.
 */
export function problemOf(error: unknown): { readonly problem: Problem; readonly isExpected: boolean } {
  if (error instanceof Problem) return { problem: error, isExpected: error.code !== 'internal' };
  // Nest wraps what Fastify threw.
  const origin: unknown = error instanceof HttpException ? (error.cause ?? error) : error;
  const framework = typeof origin === 'object' && origin !== null ? frameworkProblem(origin) : undefined;
  if (framework) return { problem: framework, isExpected: true };
  if (error instanceof HttpException) {
    const refusal = NEST_REFUSALS[error.getStatus()];
    if (refusal) return { problem: new Problem(...refusal), isExpected: true };
  }
  if (isTransient(error)) {
    const detail = 'the database is not available right now; nothing is known to have changed: send the request again';
    return {
      problem: new Problem('unavailable', detail, { retryAfterSeconds: RETRY_AFTER_SECONDS, cause: error }),
      isExpected: true,
    };
  }
  if (isUnrecordable(error)) {
    const detail = "nothing was changed: what changes is recorded, and this audit chain can't be appended to any more";
    return {
      problem: new Problem('unavailable', detail, { retryAfterSeconds: RETRY_AFTER_REPAIR_SECONDS, cause: error }),
      isExpected: true,
    };
  }
  return {
    problem: new Problem('internal', 'something went wrong here; the server’s log has it under the request id'),
    isExpected: false,
  };
}
