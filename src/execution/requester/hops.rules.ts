/**
 * From one hop of a request to the next. Pure. Invariant: a hop to another origin carries nothing that was meant for the
 * one before, which is all but a few harmless headers, and nothing that was left behind comes back.
 */
import type { MakeRequest } from '../supervisor/requester-protocol.js';

/** As long as the URL of a run may be. */
const MAX_URL_BYTES = 8 * 1024;

const HARMLESS = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'cache-control',
  'capstan-fence',
  'capstan-run-id',
  'content-language',
  'content-type',
  'user-agent',
]);

/** One request to one server. */
export interface Hop {
  readonly url: URL;
  readonly method: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | null;
}

export function firstHop({ runId, fence, http }: MakeRequest, userAgent: string): Hop {
  const own = Object.entries(http.headers);
  const hasUserAgent = own.some(([name]) => name.toLowerCase() === 'user-agent');
  const added: [string, string][] = [
    ['Capstan-Run-Id', runId],
    ['Capstan-Fence', String(fence)],
  ];
  if (!hasUserAgent) added.push(['User-Agent', userAgent]);
  return { url: new URL(http.url), method: http.method, headers: [...added, ...own], body: http.body };
}

/** Where an answer sends its caller: null when it is no redirect, `unfit` when that is not a place to go. */
export function nextHop(hop: Hop, status: number, location: string | undefined): Hop | 'unfit' | null {
  if (![301, 302, 303, 307, 308].includes(status) || location === undefined) return null;
  if (!URL.canParse(location, hop.url.href)) return 'unfit';
  const url = new URL(location, hop.url.href);
  url.hash = '';
  const isWeb = url.protocol === 'http:' || url.protocol === 'https:';
  if (!isWeb || url.href.length > MAX_URL_BYTES) return 'unfit';
  url.username = '';
  url.password = '';
  const becomesGet = status === 303 ? hop.method !== 'HEAD' : status < 303 && hop.method === 'POST';
  const body = becomesGet ? null : hop.body;
  const headers = hop.headers.filter(([name]) => {
    const word = name.toLowerCase();
    if (url.origin !== hop.url.origin && !HARMLESS.has(word)) return false;
    return body !== null || !word.startsWith('content-');
  });
  return { url, method: becomesGet ? 'GET' : hop.method, headers, body };
}
