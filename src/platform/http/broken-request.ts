/** What is no HTTP request at all, or didn't arrive in time, still gets an answer that a person can read. */
import type { Socket } from 'node:net';
import { encodeId, newId } from '../../kernel/ids.js';
import { Problem } from '../../kernel/problems.js';
import { errorCode } from '../db/db.js';
import { PROBLEM_TYPE, problemDocument } from './problem.filter.js';

const DETAILS: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'the request did not arrive in time',
  HPE_HEADER_OVERFLOW: 'the headers of the request are too large',
};

/** Answers 400 on the bare connection and closes it. */
export function answerBrokenRequest(error: Error, socket: Socket, replica: string): void {
  const code = errorCode(error) ?? '';
  if (code !== 'ECONNRESET' && socket.writable) {
    const requestId = encodeId('req', newId());
    const problem = new Problem('malformed_request', DETAILS[code] ?? 'this is not an HTTP request');
    const body = JSON.stringify(problemDocument(problem, requestId));
    socket.write(
      [
        'HTTP/1.1 400 Bad Request',
        `Content-Type: ${PROBLEM_TYPE}`,
        `Content-Length: ${Buffer.byteLength(body)}`,
        `X-Request-Id: ${requestId}`,
        `Capstan-Replica: ${replica}`,
        'Connection: close',
        '',
        body,
      ].join('\r\n'),
    );
  }
  socket.destroy();
}
