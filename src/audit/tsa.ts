/**
 * Asks a time-stamping authority (RFC 3161) for a timestamp of a link. What comes back is a stranger's: it is bounded in
 * time and size, and counts only once the offline verifier accepts it and it answers this very request.
 */
import { createHash, randomBytes } from 'node:crypto';
import { DerReader, integerHex, TAG } from '../verifier/der.js';
import { Refusal } from '../verifier/refusal.js';
import { readTimeStamp, type TimeStamp } from '../verifier/rfc3161.js';

const ANSWER_WITHIN_MS = 10_000;
/** A token with its certificates has 2 to 10 KiB. */
const LONGEST_ANSWER_BYTES = 65_536;
const LONGEST_WORDS = 200;
const NONCE_BYTES = 8;
const REQUEST_TYPE = 'application/timestamp-query';
const REPLY_TYPE = 'application/timestamp-reply';

/** PKIStatus (RFC 3161, 2.4.2) of an answer that has a token. */
const GRANTED: readonly string[] = ['00', '01'];
const STATUS_WORDS: Readonly<Record<string, string>> = Object.freeze({
  '02': 'rejection',
  '03': 'waiting',
  '04': 'its revocation is imminent',
  '05': 'it was revoked',
});

export interface Stamped {
  /** The DER TimeStampToken as it came. */
  readonly token: Uint8Array;
  readonly stamp: TimeStamp;
}

/** Why there is no timestamp, in one line that goes on from "the authority …". */
export interface NotStamped {
  readonly reason: string;
}

/** A TimeStampReq for the SHA-256 of the link's 32 bytes that asks for the certificates; `nonce`: 8 bytes from 40 to 7f. */
export function timeStampRequest(link: string, nonce: Uint8Array): Buffer {
  const imprint = createHash('sha256').update(Buffer.from(link, 'hex')).digest();
  return Buffer.concat([
    Buffer.from('3043020101', 'hex'), // SEQUENCE { version 1,
    Buffer.from('3031300d060960864801650304020105000420', 'hex'), // SEQUENCE { { sha256, NULL }, OCTET STRING
    imprint,
    Buffer.from('0208', 'hex'), // INTEGER
    nonce,
    Buffer.from('0101ff', 'hex'), // certReq TRUE }
  ]);
}

/** Asks once. Never rejects: whatever goes wrong is an answer; when `signal` aborts, at once. */
export async function requestTimeStamp(url: string, link: string, signal: AbortSignal): Promise<Stamped | NotStamped> {
  const nonce = randomBytes(NONCE_BYTES);
  nonce[0] = 0x40 | ((nonce[0] ?? 0) & 0x3f);
  const outOfTime = AbortSignal.timeout(ANSWER_WITHIN_MS);
  try {
    const reply = await post(url, timeStampRequest(link, nonce), AbortSignal.any([signal, outOfTime]));
    return reply instanceof Uint8Array ? readReply(reply, link, nonce.toString('hex')) : reply;
  } catch (error) {
    if (error instanceof Refusal) return { reason: `answered with what can't be used: ${error.reason}` };
    if (signal.aborted) return { reason: 'was not waited for' };
    if (outOfTime.aborted) return { reason: `gave no answer within ${ANSWER_WITHIN_MS / 1_000} s` };
    return { reason: `can't be reached (${causeOf(error)}); check CAPSTAN_TSA_URL and the way there` };
  }
}

async function post(url: string, request: Buffer, signal: AbortSignal): Promise<Uint8Array | NotStamped> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': REQUEST_TYPE, accept: REPLY_TYPE },
    body: request,
    redirect: 'manual',
    signal,
  });
  const fault = faultOf(response);
  if (fault) {
    await response.body?.cancel();
    return { reason: fault };
  }
  return readBounded(response);
}

function faultOf({ status, headers }: Response): string | undefined {
  if (status >= 300 && status < 400) {
    return `answered with a redirect (${status}), which isn't followed; set CAPSTAN_TSA_URL to where it leads`;
  }
  if (status !== 200) return `answered with status ${status}`;
  const [type = ''] = (headers.get('content-type') ?? '').split(';');
  if (type.trim().toLowerCase() === REPLY_TYPE) return undefined;
  return `answered with something else than ${REPLY_TYPE}; check that CAPSTAN_TSA_URL is its address for RFC 3161`;
}

async function readBounded({ body }: Response): Promise<Uint8Array | NotStamped> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    // Leaving the loop cancels the rest.
    if (size > LONGEST_ANSWER_BYTES) return { reason: `answered with more than ${LONGEST_ANSWER_BYTES / 1_024} KiB` };
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The token of a TimeStampResp, checked against what was asked. Throws a `Refusal`. */
function readReply(bytes: Uint8Array, link: string, nonce: string): Stamped | NotStamped {
  const file = new DerReader(bytes, 'the answer');
  const reply = file.open(TAG.sequence);
  file.end();
  const statusInfo = reply.open(TAG.sequence, 'the status of the answer');
  const status = integerHex(statusInfo.take(TAG.integer));
  if (!GRANTED.includes(status)) return { reason: `refused: ${STATUS_WORDS[status] ?? status}${wordsOf(statusInfo)}` };
  const token = reply.take(TAG.sequence).whole;
  reply.end();
  const stamp = readTimeStamp(token, link);
  if (stamp.nonce !== nonce) return { reason: 'answered another request than ours: its nonce is not the one sent' };
  return { token, stamp };
}

/** What the authority says about its refusal, if anything; made fit to be logged. */
function wordsOf(statusInfo: DerReader): string {
  const texts = statusInfo.takeIf(TAG.sequence);
  if (!texts) return '';
  const text = Buffer.from(new DerReader(texts.content, 'the status of the answer').takeAny().content).toString('utf8');
  return `, "${text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?').slice(0, LONGEST_WORDS)}"`;
}

/** `fetch` wraps what happened: its code says what an operator can look for. */
function causeOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) return 'unknown error';
  return 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.message;
}
