/** Every answer that isn't the one asked for: RFC 9457 `application/problem+json`, with the request's id. */
import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { PROBLEMS, Problem } from '../../kernel/problems.js';
import type { Logger } from '../log/logger.js';
import { problemOf } from './problem-of.js';
import type { Routes } from './routes.js';

export const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';

@Catch()
export class ProblemFilter implements ExceptionFilter {
  private noteForbidden: (request: FastifyRequest) => void = () => undefined;

  constructor(
    private readonly log: Logger,
    private readonly routes: Routes,
  ) {}

  /** Tells `note` of each request that is answered that it is forbidden. */
  onForbidden(note: (request: FastifyRequest) => void): void {
    this.noteForbidden = note;
  }

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    this.answer(error, http.getRequest<FastifyRequest>(), http.getResponse<FastifyReply>());
  }

  /** Also for what fails before there is a route. */
  answer(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const { problem: found, isExpected } = problemOf(error);
    const { method, id: requestId } = request;
    const path = request.url.split('?', 1)[0] ?? '';
    if (!isExpected) {
      this.log.error({ code: 'request_failed', requestId, method, path, err: error }, 'a request failed: answered 500');
    } else if (found.code === 'unavailable') {
      const cause = found.cause ?? found;
      this.log.warn({ code: 'request_unavailable', requestId, method, path, err: cause }, 'answered 503');
    }
    if (found.code === 'forbidden') this.noteForbidden(request);
    if (reply.sent || reply.raw.headersSent) return;
    const problem = found.code === 'not_found' ? (this.wrongMethod(method, path, reply) ?? found) : found;
    if (problem.receipt !== undefined) void reply.header('audit-receipt', problem.receipt);
    if (problem.retryAfterSeconds !== undefined) void reply.header('retry-after', String(problem.retryAfterSeconds));
    void reply
      .status(problem.status)
      .header('content-type', PROBLEM_TYPE)
      .send(JSON.stringify(problemDocument(problem, requestId)));
  }

  private wrongMethod(method: string, path: string, reply: FastifyReply): Problem | undefined {
    const allowed = this.routes.methodsAt(path);
    if (allowed.length === 0 || allowed.includes(method)) return undefined;
    void reply.header('allow', allowed.join(', '));
    return new Problem('method_not_allowed', `${method} is not possible here: ${allowed.join(', ')}`);
  }
}

/** The members of a problem document. */
export function problemDocument(problem: Problem, requestId: string): Record<string, unknown> {
  const { code, detail, errors, members, status } = problem;
  return {
    type: `urn:capstan:problem:${code}`,
    title: PROBLEMS[code].title,
    status,
    detail,
    code,
    ...(errors.length > 0 ? { errors } : {}),
    ...members,
    requestId,
  };
}
