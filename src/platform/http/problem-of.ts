/** What any error means to a caller: the one place where errors meet HTTP statuses. Pure. */
import { HttpException } from '@nestjs/common';
import { Problem } from '../../kernel/problems.js';
import { errorCode, isTransient } from '../db/db.js';

const RETRY_AFTER_SECONDS = 1;

/** Fastify's own refusals, by their codes; what it refuses otherwise with a status below 500 is malformed. */
function frameworkProblem(error: object): Problem | undefined {
  const code = errorCode(error) ?? '';
  if (!code.startsWith('FST_ERR_')) return undefined;
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new Problem('body_too_large', 'the body is larger than 1 MiB');
  }
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    return new Problem('unsupported_media_type', 'send the body as `Content-Type: application/json`, in UTF-8');
  }
  if (code === 'FST_ERR_CTP_INVALID_CONTENT_LENGTH') {
    return new Problem('malformed_request', 'the length of the body is not the announced one');
  }
  if (code === 'FST_ERR_BAD_URL') return new Problem('malformed_request', 'the path has a bad percent encoding');
  if (code === 'FST_ERR_MAX_PARAM_LENGTH') return new Problem('not_found', 'there is no such resource');
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
  if (error instanceof HttpException && error.getStatus() === 404) {
    return { problem: new Problem('not_found', 'there is no such route'), isExpected: true };
  }
  if (isTransient(error)) {
    const detail = 'the database is not available right now; nothing is known to have changed: send the request again';
    return {
      problem: new Problem('unavailable', detail, { retryAfterSeconds: RETRY_AFTER_SECONDS, cause: error }),
      isExpected: true,
    };
  }
  return {
    problem: new Problem('internal', 'something went wrong here; the server’s log has it under the request id'),
    isExpected: false,
  };
}
