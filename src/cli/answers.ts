/** What a request came to when it isn't the wanted answer: a failure with what to do next. */
import { isAbsenceCode, isBreakCode, isTlsCode } from '../client/connection.js';
import { CapstanProblem, NoConnection, UnexpectedAnswer } from '../client/errors.js';
import type { Target } from './credentials.js';
import { unexpected } from './decode.js';
import { Failure, type ProblemDocument } from './failure.js';

/** `code` of every failure to reach the server or to hear it out. */
export const NO_CONNECTION = 'no_connection';

/** What the client throws, as a failure; what is none of its errors stays as it is. */
export function failureOf(error: unknown, target: Target): unknown {
  if (error instanceof UnexpectedAnswer) return unexpected(error.what);
  return error instanceof CapstanProblem || error instanceof NoConnection ? troubleOf(error, target) : error;
}

/** A refusal, or an answer that didn't come. */
export function troubleOf(error: CapstanProblem | NoConnection, target: Target): Failure {
  if (error instanceof NoConnection)
    return noConnection(error.message, ...profileHint(target), ...waysAround(error.code));
  return new Failure('unable', error.document, nextSteps(error.document, target));
}

/** The server can't be reached or heard out; `detail` says how. */
export function noConnection(detail: string, ...hints: readonly string[]): Failure {
  return new Failure('unable', { title: 'no connection', detail, code: NO_CONNECTION }, hints);
}

function profileHint({ passedOver, tokenSource }: Target): string[] {
  if (passedOver === undefined) return [];
  const [name] = tokenSource.split(' ');
  return [`profile ${passedOver} was passed over, because ${name} is set; take it: --profile ${passedOver}`];
}

function waysAround(code: string): string[] {
  const elsewhere = 'another server: --url URL, --profile NAME or CAPSTAN_URL';
  if (code === 'ECONNREFUSED') return ['start one: npm start', elsewhere];
  if (isBreakCode(code)) return [];
  if (!isAbsenceCode(code) && isTlsCode(code)) return ['own authorities: NODE_EXTRA_CA_CERTS=FILE'];
  return [elsewhere];
}

function nextSteps(problem: ProblemDocument, { tokenSource }: Target): string[] {
  if (problem.status === 401) {
    return [
      `token used: ${tokenSource}`,
      'give one by --token-file FILE, CAPSTAN_TOKEN or CAPSTAN_TOKEN_FILE; a server with a database of its own',
      'keeps one in the file admin-token of its data folder (CAPSTAN_DATA_DIR, ./.capstan by default)',
    ];
  }
  if (problem.code === 'idempotency_key_reused') return ['for another run take another --idempotency-key'];
  const isServersFault = problem.status === 500 && typeof problem.requestId === 'string';
  return isServersFault ? [`look for ${problem.requestId} in the server's log`] : [];
}
