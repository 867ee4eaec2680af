/**
 * Every route as the document has it, typed: `raw.GET('/v1/runs/{id}', { params: { path: { id } } })`. Requests go the
 * way of all others: sent again where that helps, with a key of their own, and an answer that isn't 2xx is thrown.
 */
import createClient, { type Client } from 'openapi-fetch';
import { UnexpectedAnswer } from './errors.js';
import type { paths } from './schema.js';
import { jsonIn, type Transport, type TransportRequest } from './transport.js';

export type RawClient = Client<paths>;

/** A server works on one request for so long, or is asked to wait with its answer. */
const LONG_WORK = /^v1\/(runs\/(batch|cancel|rerun)|audit\/verify)($|\?)/;
const LONG_TRY_MS = 90_000;

/** The signal of a request follows its caller's while the request lives: as long as somebody may read the body. */
const REQUESTS = new WeakMap<ReadableStream, Request>();

/** `url` ends in a slash. */
export function rawClient(transport: Transport, url: URL): RawClient {
  return createClient<paths>({ baseUrl: url.href, fetch: (request) => answerTo(transport, url, request) });
}

/** What a call of `raw` brought. Throws `UnexpectedAnswer` when it isn't what the document says. */
export async function dataOf<T>(call: Promise<{ data?: T }>): Promise<T> {
  try {
    const { data } = await call;
    if (data !== undefined) return data;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new UnexpectedAnswer('the body is not JSON');
}

async function answerTo(transport: Transport, url: URL, request: Request): Promise<Response> {
  const path = request.url.slice(url.href.length);
  const headers = Object.fromEntries(request.headers);
  const body = request.body === null ? undefined : await request.text();
  const tryMs = LONG_WORK.test(path) || request.headers.has('prefer') ? LONG_TRY_MS : undefined;
  const { method } = request;
  // The request is read for each try: it has to live as long as its signal is needed.
  const asked = (): TransportRequest => ({ method, path, headers, body, tryMs, isWanted, signal: request.signal });
  return await transport.send(asked, async (response, stopClock) => {
    const type = response.headers.get('content-type') ?? '';
    if (type.startsWith('text/event-stream')) {
      stopClock();
      if (response.body !== null) REQUESTS.set(response.body, request);
      return response;
    }
    // Read here, so that a connection that breaks off on the way is another try.
    const bytes = await response.arrayBuffer();
    const isJson = /^application\/([\w.-]+\+)?json/.test(type);
    if (isJson) jsonIn(new TextDecoder().decode(bytes), 'the body');
    else if (!type.startsWith('text/plain')) throw new UnexpectedAnswer(`the body is not JSON (${type || 'no type'})`);
    const { status, statusText, headers } = response;
    return new Response(bytes.byteLength === 0 ? null : bytes, { status, statusText, headers });
  });
}

/** A batch of which nothing was taken is answered as any other, item by item; a problem has a type of its own. */
function isWanted({ status, headers }: Response): boolean {
  return status === 422 && headers.get('content-type')?.startsWith('application/json') === true;
}
