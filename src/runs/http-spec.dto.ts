/** What a run of kind `http` is told to do, as it comes in. What is taken here can be sent: the worker adds no rule. */
import { IsIn, IsInt, IsOptional, Max, Min } from 'class-validator';
import { escapePointer } from '../kernel/json.js';
import type { InputFault } from '../kernel/problems.js';
import { Documented } from '../platform/http/document.js';
import { Holds, MayBeAbsent } from '../platform/http/input.js';
import { nullable, optionalStringMap } from '../platform/http/schema.js';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
const BODILESS = ['GET', 'HEAD'];
const MAX_URL = 8 * 1024;
const MAX_HEADERS = 64;
const MAX_HEADER_VALUE = 8 * 1024;
const MAX_BODY = 256 * 1024;
const MAX_STATUSES = 64;
const MAX_REDIRECTS = 10;

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** They say how the message is framed and carried on this one connection, which is not the caller's business. */
const OWN_HEADERS = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
const OWN_PREFIXES = ['proxy-', 'capstan-'];

function urlFaults(value: unknown): InputFault[] {
  const fault = urlFault(value);
  return fault === undefined ? [] : [{ pointer: '', message: fault }];
}

function urlFault(value: unknown): string | undefined {
  // The parser would drop line ends and blanks without a word: another URL than the one that was read.
  if (typeof value !== 'string' || /[\p{Cc}\s]/u.test(value)) return 'must be a URL';
  const url = parsed(value);
  if (url === undefined || !/^https?:\/\//i.test(value)) return 'must be an absolute http or https URL';
  if (url.username !== '' || url.password !== '')
    return 'must hold no credentials: a URL is shown to whoever reads runs';
  if (value.includes('#')) return 'must have no fragment: it would not be sent';
  return url.href.length > MAX_URL ? `must be at most ${MAX_URL} bytes long` : undefined;
}

function parsed(text: string): URL | undefined {
  return text.length <= MAX_URL && URL.canParse(text) ? new URL(text) : undefined;
}

function headerFaults(value: unknown): InputFault[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return [{ pointer: '', message: 'must be an object of strings' }];
  }
  const entries: [string, unknown][] = Object.entries(value);
  if (entries.length > MAX_HEADERS) return [{ pointer: '', message: `must have at most ${MAX_HEADERS} members` }];
  const seen = new Set<string>();
  return entries.flatMap(([name, text]) => {
    const fault = headerFault(name, text, seen);
    seen.add(name.toLowerCase());
    return fault === undefined ? [] : [{ pointer: `/${escapePointer(name)}`, message: fault }];
  });
}

function headerFault(name: string, text: unknown, seen: ReadonlySet<string>): string | undefined {
  const word = name.toLowerCase();
  if (!TOKEN.test(name)) return 'is not the name of a header';
  if (OWN_HEADERS.has(word) || OWN_PREFIXES.some((prefix) => word.startsWith(prefix))) {
    return 'is a header that the server sets itself, or does without';
  }
  if (seen.has(word)) return 'is there already, in another case';
  if (typeof text !== 'string' || text.length > MAX_HEADER_VALUE) {
    return `must be a string of at most ${MAX_HEADER_VALUE} characters`;
  }
  return HEADER_VALUE.test(text) ? undefined : 'must hold Latin-1 only, and no control characters';
}

function bodyFaults(value: unknown, owner: object): InputFault[] {
  if (typeof value !== 'string' || value.length > MAX_BODY) {
    return [{ pointer: '', message: `must be a string of at most ${MAX_BODY} characters` }];
  }
  const { method } = owner as Partial<HttpSpec>;
  const isRefused = method !== undefined && BODILESS.includes(method);
  return isRefused ? [{ pointer: '', message: `must be null: a ${method} request has no body` }] : [];
}

function statusFaults(value: unknown): InputFault[] {
  if (!Array.isArray(value) || value.length < 1 || value.length > MAX_STATUSES) {
    return [{ pointer: '', message: `must be null or an array of 1 to ${MAX_STATUSES} HTTP statuses` }];
  }
  return value.flatMap((status: unknown, i) => {
    if (!Number.isInteger(status) || Number(status) < 100 || Number(status) > 599) {
      return [{ pointer: `/${i}`, message: 'must be an integer from 100 to 599' }];
    }
    return value.indexOf(status) === i ? [] : [{ pointer: `/${i}`, message: 'is there already' }];
  });
}

/** Kind `http`: one request, made by the worker; the answer is the run's output. */
export class HttpSpec {
  @Documented((api) => api.ApiProperty({ type: String, enum: METHODS, required: false, default: 'GET' }))
  @MayBeAbsent()
  @IsIn(METHODS)
  method: (typeof METHODS)[number] = 'GET';

  @Documented((api) =>
    api.ApiProperty({
      type: String,
      format: 'uri',
      maxLength: MAX_URL,
      pattern: '^[Hh][Tt][Tt][Pp][Ss]?://',
      example: 'https://example.com/hooks/deploy',
      description:
        'Without credentials and without a fragment. Only public addresses are connected to, and those that ' +
        '`CAPSTAN_HTTP_ALLOW` of the worker names; anything else ends the run failed, code `denied`.',
    }),
  )
  @Holds(urlFaults)
  url: string;

  @Documented((api) =>
    api.ApiProperty(
      optionalStringMap({
        maxProperties: MAX_HEADERS,
        description:
          '`Capstan-Run-Id`, `Capstan-Fence` and, where none is given, `User-Agent` are added. Host, Connection, ' +
          'Content-Length, Transfer-Encoding and their like, Proxy-… and Capstan-… are refused. A redirect to another ' +
          'origin carries none of these headers but a few harmless ones, such as Accept and Content-Type.',
      }),
    ),
  )
  @MayBeAbsent()
  @Holds(headerFaults)
  headers: Readonly<Record<string, string>> = {};

  @Documented((api) =>
    api.ApiProperty(
      nullable('string', {
        maxLength: MAX_BODY,
        required: false,
        default: null,
        description: 'Sent as UTF-8. Must be null for GET and HEAD.',
      }),
    ),
  )
  @IsOptional()
  @Holds(bodyFaults)
  body: string | null = null;

  @Documented((api) =>
    api.ApiProperty(
      nullable('array', {
        items: { type: 'integer', minimum: 100, maximum: 599 },
        minItems: 1,
        maxItems: MAX_STATUSES,
        uniqueItems: true,
        required: false,
        default: null,
        description: 'Statuses that mean success. Null: any 2xx.',
      }),
    ),
  )
  @IsOptional()
  @Holds(statusFaults)
  expectedStatus: readonly number[] | null = null;

  @Documented((api) =>
    api.ApiProperty({
      type: 'integer',
      minimum: 0,
      maximum: MAX_REDIRECTS,
      required: false,
      default: 0,
      description: 'How many redirects are followed, each checked as the first request is.',
    }),
  )
  @MayBeAbsent()
  @IsInt()
  @Min(0)
  @Max(MAX_REDIRECTS)
  followRedirects = 0;
}
