/** A verification of a chain as the command line follows it. */
import type { Answer } from './api.js';
import { fieldsOf, numberOf } from './decode.js';
import { type ChainVerification, decodeVerification } from './resources.js';
import type { Session } from './session.js';

export interface Progress {
  readonly verified: number;
  readonly of: number;
}

export async function verification(
  { api }: Session,
  query: URLSearchParams,
  onProgress: (progress: Progress) => Promise<void>,
): Promise<Answer<ChainVerification>> {
  for await (const { type, document } of api.http.verification(query)) {
    if (type === 'result') return { document, value: decodeVerification(document) };
    const progress = fieldsOf(document, 'the progress');
    await onProgress({ verified: numberOf(progress, 'verified'), of: numberOf(progress, 'of') });
  }
  throw new Error('a verification ended without its result');
}
