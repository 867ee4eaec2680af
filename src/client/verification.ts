/** A verification of a chain, asked for as events, so that no proxy takes a long chain's silence for death. */
import { NoConnection } from './errors.js';
import { EVENT_HEADERS, eventsOf } from './events.js';
import { jsonIn, readJson, type Transport } from './transport.js';

/** The first event comes behind the first entries, or after 15 s in line behind another. */
const BEGIN_MS = 60_000;

export interface VerificationStep {
  readonly type: 'progress' | 'result';
  /** As it came. */
  readonly document: unknown;
}

/** Steps up to the `result`, which is the last. `query` is that of the route. */
export async function* verificationSteps(
  transport: Transport,
  query: URLSearchParams,
  signal?: AbortSignal,
): AsyncGenerator<VerificationStep, void, undefined> {
  const headers = { ...EVENT_HEADERS, accept: 'text/event-stream, application/json;q=0.9, application/problem+json' };
  const path = `v1/audit/verify${query.size === 0 ? '' : `?${query}`}`;
  const response = await transport.open({ method: 'GET', path, headers, tryMs: BEGIN_MS, signal });
  if (response.headers.get('content-type')?.startsWith('application/json')) {
    yield { type: 'result', document: await readJson(response) };
    return;
  }
  for await (const { event, data } of eventsOf(transport, response, signal)) {
    if (event !== 'progress' && event !== 'result') continue;
    yield { type: event, document: jsonIn(data, 'an event of the verification') };
    if (event === 'result') return;
  }
  throw new NoConnection('the verification broke off before its end', 'BREAK');
}
