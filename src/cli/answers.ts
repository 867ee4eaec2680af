/** What a request came to when it isn't the wanted answer: a failure with what to do next, and whether it may pass. */
import type { Target } from './credentials.js';
import { type Fields, isFields } from './decode.js';
import { Failure, type ProblemDocument } from './failure.js';
import { isPassing, retryAfter } from './retry.rules.js';

export interface Setback {
  readonly failure: Failure;
  /** Another try may go better. */
  readonly isPassing: boolean;
  /** Something at that address answered or held a connection. */
  readonly reached: boolean;
  readonly retryAfterMs: number | undefined;
}

/** `code` of every failure to reach the server or to hear it out. */
export const NO_CONNECTION = 'no_connection';

const NOBODY_THERE = new Set([
  'ECONNREFUSED',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
]);
const BROKEN_OFF = new Set([
  'ECONNRESET',
  'EPIPE',
  'UND_ERR_SOCKET',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'TIMEOUT',
]);

/** The setback behind what `fetch` or its body threw; `undefined` when the error is none of theirs. */
export function lostConnection(error: unknown, { url }: Target): Setback | undefined {
  const code = connectionCode(error);
  if (code === undefined) return undefined;
  const base = { isPassing: NOBODY_THERE.has(code) || BROKEN_OFF.has(code), retryAfterMs: undefined };
  const reached = BROKEN_OFF.has(code);
  return { ...base, reached, failure: noConnection(...wordsFor(code, url.origin)) };
}

function connectionCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error.name === 'AbortError') return 'TIMEOUT';
  const { cause } = error;
  if (!(error instanceof TypeError) || !(cause instanceof Error)) return undefined;
  return 'code' in cause ? String(cause.code) : cause.message;
}

function wordsFor(code: string, origin: string): [detail: string, ...hints: string[]] {
  const elsewhere = 'another server: --url URL or CAPSTAN_URL';
  if (code === 'ECONNREFUSED') return [`no server answers at ${origin}`, 'start one: npm start', elsewhere];
  if (code === 'ENOTFOUND') return [`there is no host of the name in ${origin}`, elsewhere];
  if (code === 'TIMEOUT') return [`${origin} does not answer in time`];
  if (NOBODY_THERE.has(code)) return [`${origin} can't be reached (${code})`, elsewhere];
  if (BROKEN_OFF.has(code)) return [`the connection to ${origin} broke off (${code})`];
  const isTls = /CERT|TLS|SSL|SELF_SIGNED|EPROTO/.test(code);
  if (isTls) return [`no secure connection to ${origin} (${code})`, 'own authorities: NODE_EXTRA_CA_CERTS=FILE'];
  return [`${origin} doesn't speak HTTP as expected (${code})`, elsewhere];
}

/** The server can't be reached or heard out; `detail` says how. */
export function noConnection(detail: string, ...hints: readonly string[]): Failure {
  return new Failure('unable', { title: 'no connection', detail, code: NO_CONNECTION }, hints);
}

/** The setback in an answer that isn't the wanted one; reads its body. */
export async function refusal(response: Response, target: Target, nowMs: number): Promise<Setback> {
  const { status, headers } = response;
  const problem = await problemOf(response, target);
  return {
    failure: new Failure('unable', problem, nextSteps(problem, target)),
    isPassing: isPassing(status),
    reached: true,
    retryAfterMs: retryAfter(headers.get('retry-after'), nowMs),
  };
}

async function problemOf(response: Response, { url }: Target): Promise<ProblemDocument> {
  const { status } = response;
  const document = parsed(await response.text());
  if (document !== undefined) return { ...document, ...problemMembers(document, status) };
  if (status >= 300 && status < 400) {
    // Followed, it could carry the token to another host.
    const where = response.headers.get('location') ?? 'elsewhere';
    return { title: 'redirected', status, detail: `${url.origin} points to ${where}: name that server instead` };
  }
  return { title: `HTTP ${status}`, status, detail: `${url.origin} did not answer as a Capstan server does` };
}

function parsed(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isFields(value) && typeof value.title === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The members that are printed, each of its type or absent. */
function problemMembers({ title, detail, code, errors }: Fields, status: number): ProblemDocument {
  return {
    title: String(title),
    status,
    ...(detail === undefined ? {} : { detail: String(detail) }),
    ...(code === undefined ? {} : { code: String(code) }),
    ...(Array.isArray(errors) ? { errors: errors.filter(isFields).map(inputFault) } : {}),
  };
}

function inputFault({ pointer, message }: Fields): { pointer: string; message: string } {
  return { pointer: String(pointer ?? ''), message: String(message ?? '') };
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
