import { BadRequestException, ForbiddenException, HttpException, NotFoundException } from '@nestjs/common';
import { errorCodes } from 'fastify';
import { describe, expect, it } from 'vitest';
import { Bug, Problem } from '../../../src/kernel/problems.js';
import { StatementTimeout } from '../../../src/platform/db/db.js';
import { problemOf } from '../../../src/platform/http/problem-of.js';

const coded = (code: string, rest: object = {}) => Object.assign(new Error(`secret of ${code}`), { code, ...rest });

describe('what an error means to a caller', () => {
  it.each<[string, unknown, string, boolean]>([
    ['a problem is itself', new Problem('id_conflict', 'taken'), 'id_conflict', true],
    ['a body over the limit', new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE(), 'body_too_large', true],
    ['the same, wrapped by Nest', wrapped(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE()), 'body_too_large', true],
    ['a media type', new errorCodes.FST_ERR_CTP_INVALID_MEDIA_TYPE('x'), 'unsupported_media_type', true],
    ['a bad path', new errorCodes.FST_ERR_BAD_URL('/%'), 'malformed_request', true],
    ['a parameter without end', coded('FST_ERR_MAX_PARAM_LENGTH'), 'not_found', true],
    ['a body that broke off', coded('ECONNRESET', { statusCode: 400 }), 'malformed_request', true],
    ['no route', new NotFoundException('Cannot GET /secret'), 'not_found', true],
    ['another refusal of Nest', new BadRequestException('secret'), 'malformed_request', true],
    ['a guard that said no', new ForbiddenException('secret'), 'forbidden', true],
    ['a lost connection', coded('ECONNRESET'), 'unavailable', true],
    ['a deadlock', coded('40P01'), 'unavailable', true],
    ['a statement without answer', new StatementTimeout('secret'), 'unavailable', true],
    ['a bug', new Bug('secret'), 'internal', false],
    ['any error', new Error('secret'), 'internal', false],
    ['a violated constraint', coded('23505'), 'internal', false],
    ['a fault of the framework', coded('FST_ERR_REP_INVALID_PAYLOAD_TYPE', { statusCode: 500 }), 'internal', false],
    ['what is no error', 'secret', 'internal', false],
    ['nothing', undefined, 'internal', false],
  ])('%s', (_, error, code, isExpected) => {
    const found = problemOf(error);
    expect({ code: found.problem.code, isExpected: found.isExpected }).toEqual({ code, isExpected });
    expect(found.problem.detail).not.toContain('secret');
  });

  it.each([
    ...['25006', '25P03', '40001', '40003', '40P01', '55P03', '57014', '57P01', '57P02', '57P03', '57P04', '57P05'],
    ...['08006', '08P01', '53100', '53200', '53300', '58030', 'CONNECTION_CLOSED', 'CONNECTION_ENDED'],
    ...['CONNECTION_DESTROYED', 'CONNECT_TIMEOUT', 'ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ESHUTDOWN'],
    ...['ETIMEDOUT', 'EHOSTDOWN', 'EHOSTUNREACH', 'ENETDOWN', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'],
  ])('S0-82 %s of the database is a 503 that says when to come back', (code) => {
    const { problem } = problemOf(coded(code));
    expect({ status: problem.status, after: problem.retryAfterSeconds }).toEqual({ status: 503, after: 1 });
  });

  it.each(['22001', '23503', '40002', '42P01', '42703', 'XX000'])('%s of the database is a 500', (code) => {
    expect(problemOf(coded(code)).problem.status).toBe(500);
  });

  it("a chain that can't be appended to is a 503, for as long as it takes a person", () => {
    const { problem, isExpected } = problemOf(coded('CA001'));
    expect({ status: problem.status, after: problem.retryAfterSeconds, isExpected }).toEqual({
      ...{ status: 503, after: 60, isExpected: true },
    });
  });

  it('503 says when to come back', () => {
    expect(problemOf(coded('57P01')).problem.retryAfterSeconds).toBe(1);
  });
});

function wrapped(cause: Error & { statusCode?: number }): HttpException {
  return new HttpException(cause.message, cause.statusCode ?? 500, { cause });
}
