/** What it means that `fetch`, or the reading of a body, failed. */
import { NoConnection } from './errors.js';

/** A try that came to nothing, whose trouble may pass or not. */
export interface LostConnection {
  readonly error: NoConnection;
  /** Another try may go better. */
  readonly isPassing: boolean;
  /** Something at that address held a connection. */
  readonly reached: boolean;
}

/** The code of a try whose time was over. */
const TIMEOUT = 'TIMEOUT';

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
  TIMEOUT,
]);

/** `undefined` when `error` is none of a connection's. */
export function lostConnection(error: unknown, origin: string): LostConnection | undefined {
  const code = connectionCode(error);
  if (code === undefined) return undefined;
  const reached = BROKEN_OFF.has(code);
  const isPassing = reached || NOBODY_THERE.has(code);
  return { error: new NoConnection(wordsFor(code, origin), code, { cause: error }), isPassing, reached };
}

/** No secure connection could be made: the certificate or the protocol doesn't fit. */
export function isTlsCode(code: string): boolean {
  return /CERT|TLS|SSL|SELF_SIGNED|EPROTO/.test(code);
}

/** Nobody was there, for all that can be told from here. */
export function isAbsenceCode(code: string): boolean {
  return NOBODY_THERE.has(code);
}

/** The connection was there and is no more, or brought nothing in time. */
export function isBreakCode(code: string): boolean {
  return BROKEN_OFF.has(code);
}

function connectionCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error.name === 'AbortError') return TIMEOUT;
  const { cause } = error;
  if (!(error instanceof TypeError) || !(cause instanceof Error)) return undefined;
  return 'code' in cause ? String(cause.code) : cause.message;
}

function wordsFor(code: string, origin: string): string {
  if (code === 'ECONNREFUSED') return `no server answers at ${origin}`;
  if (code === 'ENOTFOUND') return `there is no host of the name in ${origin}`;
  if (code === TIMEOUT) return `${origin} does not answer in time`;
  if (isAbsenceCode(code)) return `${origin} can't be reached (${code})`;
  if (isBreakCode(code)) return `the connection to ${origin} broke off (${code})`;
  if (isTlsCode(code)) return `no secure connection to ${origin} (${code})`;
  return `${origin} doesn't speak HTTP as expected (${code})`;
}
