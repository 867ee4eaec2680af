/** A verification as the client asks for it: as events, so that no proxy takes a long chain's silence for death. */
import { noConnection } from './answers.js';
import type { Answer } from './api.js';
import { fieldsOf, numberOf, unexpected } from './decode.js';
import { readJson } from './http.js';
import { type ChainVerification, decodeVerification } from './resources.js';
import type { Session } from './session.js';
import { eventsOf } from './stream.js';

/** The first event comes behind the first entries, or after 15 s in line behind another. */
const BEGIN_MS = 60_000;

export interface Progress {
  readonly verified: number;
  readonly of: number;
}

export async function verification(
  { api, shell }: Session,
  query: URLSearchParams,
  onProgress: (progress: Progress) => Promise<void>,
): Promise<Answer<ChainVerification>> {
  const headers = {
    accept: 'text/event-stream, application/json;q=0.9, application/problem+json',
    'accept-encoding': 'identity',
  };
  const response = await api.http.open({ method: 'GET', path: 'v1/audit/verify', query, headers, tryMs: BEGIN_MS });
  if (response.headers.get('content-type')?.startsWith('application/json')) return answerOf(await readJson(response));
  for await (const { event, data } of eventsOf(api.http, shell.timing, response)) {
    if (event === 'result') return answerOf(parsed(data));
    if (event !== 'progress') continue;
    const progress = fieldsOf(parsed(data), 'the progress');
    await onProgress({ verified: numberOf(progress, 'verified'), of: numberOf(progress, 'of') });
  }
  throw noConnection('the verification broke off before its end');
}

function answerOf(document: unknown): Answer<ChainVerification> {
  return { document, value: decodeVerification(document) };
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    throw unexpected('an event of the verification is not JSON');
  }
}
