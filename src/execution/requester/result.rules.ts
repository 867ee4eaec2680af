/**
 * What is kept of an answer, and what it means for its run. Pure.
 * Invariants: the kept JSON is below MAX_RESULT_BYTES whatever came, and holds no NUL; no detail of an end holds a
 * header's value or a piece of a body.
 */
import type { Verdict } from '../supervisor/plan.js';

/** A run's output may have 256 KiB; the rest is for those who store it. */
const MAX_RESULT_BYTES = 250 * 1024;
/** Of the body, in bytes as they came. */
export const MAX_KEPT_BODY_BYTES = 128 * 1024;
/** Of an answer's headers; as JSON they are at most three times as long. */
export const MAX_HEADER_BYTES = 16 * 1024;

/** An answer, its body in so far as it is kept. */
export interface Answer {
  readonly status: number;
  /** Names in lower case; one that came more than once is joined with `, `, except `set-cookie`, which is a list. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** Where the answer came from, after redirects. */
  readonly url: string;
  /** The first bytes of the body, MAX_KEPT_BODY_BYTES at most. */
  readonly kept: Buffer;
  readonly bodyBytes: number;
  /** False when the connection broke before the end of the body. */
  readonly isComplete: boolean;
}

/** The answer as JSON: the run's output. */
export function resultOf(answer: Answer): string {
  const { status, headers, url, kept, bodyBytes, isComplete } = answer;
  const isWhole = bodyBytes === kept.length;
  const result = { status, headers, url, ...bodyOf(kept, isWhole), bodyBytes, bodyTruncated: !(isWhole && isComplete) };
  const json = JSON.stringify(result);
  if (Buffer.byteLength(json) <= MAX_RESULT_BYTES) return json;
  // Control characters are six times as long in JSON.
  const encoded = { ...result, body: undefined, bodyBase64: kept.toString('base64') };
  return JSON.stringify(encoded);
}

/** As text when it is text: UTF-8 without NUL; a character that was cut off at the end does not count against it. */
function bodyOf(kept: Buffer, isWhole: boolean): { body: string } | { bodyBase64: string } {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(kept, { stream: !isWhole });
    if (!text.includes('\0')) return { body: text };
  } catch {
    // Not UTF-8.
  }
  return { bodyBase64: kept.toString('base64') };
}

/**
 * Names and values as the parser gave them: alternating, each byte a character. `__proto__` is left out: no stored JSON
 * may have a member of that name, and a server must not be able to have the whole result refused.
 */
export function headersOf(raw: readonly string[]): Answer['headers'] {
  const values = new Map<string, string[]>();
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = (raw[at] ?? '').toLowerCase();
    const value = textOf(raw[at + 1] ?? '');
    values.set(name, [...(values.get(name) ?? []), value]);
  }
  const entries = [...values].map(([name, all]) => [name, name === 'set-cookie' ? all : all.join(', ')] as const);
  return Object.fromEntries(entries.filter(([name]) => name !== '__proto__'));
}

/** What is not UTF-8 in a header is Latin-1, the only other thing it can be. */
function textOf(latin1: string): string {
  const text = Buffer.from(latin1, 'latin1').toString();
  return (text.includes('\uFFFD') ? latin1 : text).replaceAll('\0', '');
}

/** Judges a whole answer. `expected`: null is any 2xx. */
export function judgeStatus(status: number, expected: readonly number[] | null): Verdict {
  const ok = expected === null ? status >= 200 && status <= 299 : expected.includes(status);
  if (ok) return { ok, code: 'ok', detail: `HTTP status ${status}` };
  const wanted = expected === null ? '2xx' : expected.join(', ');
  return { ok, code: 'tool_failed', detail: `HTTP status ${status} (expected ${wanted})` };
}

export interface Denied {
  readonly host: string;
  readonly addresses: readonly string[];
}

/** No address of the host may be connected to. */
export function judgeDenied({ host, addresses }: Denied): Verdict {
  const shown = addresses.slice(0, 4).join(', ');
  const more = addresses.length > 4 ? ` and ${addresses.length - 4} more` : '';
  const named = addresses.length === 1 && addresses[0] === host ? shown : `${host} (${shown}${more})`;
  return {
    ok: false,
    code: 'denied',
    detail: `requests to ${named} are not allowed: the address is not public and CAPSTAN_HTTP_ALLOW does not name it`,
  };
}

/** Errors by their code: their texts may hold what was sent or what came. */
const FAULTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection ended before the answer was complete',
  EPIPE: 'the connection ended before the answer was complete',
  ETIMEDOUT: 'the server did not answer in time',
  EHOSTUNREACH: 'the server cannot be reached',
  ENETUNREACH: 'the server cannot be reached',
  ENOTFOUND: 'the name could not be resolved',
  EAI_AGAIN: 'the name could not be resolved',
  HPE_HEADER_OVERFLOW: `the headers of the answer are longer than ${MAX_HEADER_BYTES / 1024} KiB`,
  CAPSTAN_REDIRECT: 'a redirect leads to what is no http or https URL, or one that is too long',
  ERR_TLS_CERT_ALTNAME_INVALID: "the server's certificate is for another name",
  CERT_HAS_EXPIRED: "the server's certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: "the server's certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "the server's certificate is signed by nobody known here",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "the server's certificate is signed by nobody known here",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "the server's certificate is signed by nobody known here",
};

/** Judges a request that got no whole answer. `isSent`: bytes of it may have reached the server. */
export function judgeFault(code: string, isSent: boolean): Verdict {
  const known = FAULTS[code];
  const what = known ?? (code.startsWith('HPE_') ? 'the answer is not valid HTTP' : 'the request failed');
  const effect = isSent ? 'the request may have been carried out' : 'nothing was sent';
  return { ok: false, code: 'tool_failed', detail: `${what} (${code}); ${effect}` };
}
