/**
 * The kinds of value a setting can have, each with its unit, its range and the sentence that says so. Pure.
 * Invariant: no accepted value holds a control character, so an accepted value may be shown.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { DURATION_PATTERN, parseDuration } from '../../kernel/duration.js';
import { Bug } from '../../kernel/problems.js';
import type { Parser } from './setting.js';

const NAME_WORDS = 'letters, digits and . _ -, up to 63 in all, the first a letter or digit';
/** U+FFFD is what Node makes of bytes that are not UTF-8. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u{FFFD}]/u;

const WHOLE_NUMBER = /^(0|[1-9]\d{0,8})$/;

/** A whole number without sign, point or leading zero. */
export function integer(min: number, max: number): Parser<number> {
  return {
    expects: `integer ${min} to ${max}`,
    parse: (text) => (WHOLE_NUMBER.test(text) ? within(min, max, Number(text)) : undefined),
    schema: { type: ['integer', 'string'], minimum: min, maximum: max, pattern: WHOLE_NUMBER.source },
  };
}

/** Milliseconds. The bounds are durations as text; where the lower one is zero a bare `0` is taken too. */
export function duration(min: string, max: string): Parser<number> {
  const [minMs, maxMs] = [parseDuration(min), parseDuration(max)];
  if (minMs === undefined || maxMs === undefined) throw new Bug(`no range of durations: ${min} to ${max}`);
  return {
    expects: `duration ${min} to ${max} (an integer and ms, s, m, h or d)`,
    parse: (text) => within(minMs, maxMs, text === '0' ? 0 : parseDuration(text)),
    schema: { type: 'string', pattern: minMs === 0 ? `^0$|${DURATION_PATTERN}` : DURATION_PATTERN },
  };
}

const SIZE = /^([1-9]\d{0,8})(KiB|MiB|GiB)$/;
const BYTES_OF = Object.freeze({ KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 });

/** Bytes. The bounds are sizes as text. */
export function size(min: string, max: string): Parser<number> {
  const [minBytes, maxBytes] = [parseSize(min), parseSize(max)];
  if (minBytes === undefined || maxBytes === undefined) throw new Bug(`no range of sizes: ${min} to ${max}`);
  return {
    expects: `size ${min} to ${max} (an integer and KiB, MiB or GiB)`,
    parse: (text) => within(minBytes, maxBytes, parseSize(text)),
    schema: { type: 'string', pattern: SIZE.source },
  };
}

function parseSize(text: string): number | undefined {
  const [, count, unit] = SIZE.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * BYTES_OF[unit as keyof typeof BYTES_OF];
}

export function oneOf<const T extends string>(...words: readonly T[]): Parser<T> {
  return {
    expects: `one of ${words.join(', ')}`,
    parse: (text) => words.find((word) => word === text),
    schema: { enum: words },
  };
}

/** How this process is called among its peers. */
export const workerName: Parser<string> = {
  expects: `name of ${NAME_WORDS}`,
  parse: matching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/),
};

/** Names of queues in the order given, each once; `['*']` stands for all of them. */
export const queueNames: Parser<readonly string[]> = {
  expects: `comma list of names (lower-case ${NAME_WORDS}), or * alone for all`,
  parse: (text) => {
    if (text === '*') return ['*'];
    const names = text.split(',').map((name) => name.trim());
    return names.every((name) => /^[a-z0-9][a-z0-9._-]{0,62}$/.test(name)) ? [...new Set(names)] : undefined;
  },
};

export const listenAddress: Parser<string> = {
  expects: 'IP address or host name',
  parse: (text) => (isIP(text) !== 0 || isHostName(text) ? text : undefined),
};

export const directory: Parser<string> = {
  expects: 'path of a directory',
  parse: (text) => (text === '' || UNPRINTABLE.test(text) ? undefined : text),
};

/** One server: the `pg` driver knows no lists of hosts. */
export const postgresUrl: Parser<string> = {
  expects: 'postgres:// or postgresql:// URL of one server (special characters in user and password percent-encoded)',
  parse: (text) => (isPostgresUrl(text) ? text : undefined),
};

/** A credential that can stand in an HTTP header as it is. */
export const credential: Parser<string> = {
  expects: '24 to 255 visible ASCII characters',
  parse: matching(/^[\x21-\x7e]{24,255}$/),
};

/** The seed of an Ed25519 key: 32 bytes in base64, as `capstan audit keygen` prints it; base64url is taken too. */
export const signingSeed: Parser<Buffer> = {
  expects: '32 bytes in base64 (44 characters), as `capstan audit keygen` prints them',
  parse: (text) => {
    const seed = Buffer.from(text, 'base64');
    const spellings = [seed.toString('base64'), seed.toString('base64url')];
    return seed.length === 32 && spellings.includes(text) ? seed : undefined;
  },
};

/** Stands in bundles as it is, so it can't hold a password. */
export const timestampUrl: Parser<string> = {
  expects: 'http:// or https:// URL without user, password and fragment',
  parse: (text) => {
    if (!/^https?:\/\//.test(text) || /\s/.test(text) || UNPRINTABLE.test(text) || !URL.canParse(text))
      return undefined;
    const { username, password, hash } = new URL(text);
    return username === '' && password === '' && hash === '' ? text : undefined;
  },
};

/** IP addresses and CIDR ranges in the order given, or `['*']` for all of them. */
export const addressRanges: Parser<readonly string[]> = {
  expects: 'comma list of IP addresses and CIDR ranges, or * alone for all',
  parse: (text) => {
    if (text === '*') return ['*'];
    const ranges = text.split(',').map((range) => range.trim());
    return ranges.every(isAddressRange) ? [...new Set(ranges)] : undefined;
  },
};

/** IPv4 in four decimal parts only: `10.1` is meant by nobody, and is 10.0.0.1 to a parser of old. */
function isAddressRange(text: string): boolean {
  const { IPv4, IPv6 } = ipaddr;
  if (IPv4.isValidFourPartDecimal(text) || IPv4.isValidCIDRFourPartDecimal(text)) return true;
  // Addresses are judged as IPv4 where they reach IPv4, so a range of mapped ones would never match.
  const [base = ''] = text.split('/');
  const isIPv6 = isIP(base) === 6 && !base.includes('%') && !IPv6.parse(base).isIPv4MappedAddress();
  return isIPv6 && (text === base || IPv6.isValidCIDR(text));
}

/** The nearest legal worker name to a host's name, which may be longer and hold other characters. */
export function workerNameFrom(hostName: string): string {
  const legal = hostName.replace(/[^A-Za-z0-9._-]/g, '-').replace(/^[^A-Za-z0-9]+/, '');
  return legal.slice(0, 63) || 'capstan';
}

function matching(pattern: RegExp): (text: string) => string | undefined {
  return (text) => (pattern.test(text) ? text : undefined);
}

function within(min: number, max: number, value: number | undefined): number | undefined {
  return value !== undefined && value >= min && value <= max ? value : undefined;
}

/** The last label must hold a letter, so that a mistyped IPv4 address is no host name. */
function isHostName(text: string): boolean {
  const labels = text.split('.');
  const isLegal = labels.every((label) => /^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/.test(label));
  return text.length <= 253 && isLegal && /[A-Za-z]/.test(labels.at(-1) ?? '');
}

function isPostgresUrl(text: string): boolean {
  // URL drops line ends and blanks without a word; the drivers would be given another text than was checked.
  if (!/^postgres(ql)?:\/\//.test(text) || /\s/.test(text) || UNPRINTABLE.test(text)) return false;
  try {
    const url = new URL(text);
    // A bare % or # in a password is the usual slip; the drivers fail on it with a message that quotes the URL.
    for (const part of [url.username, url.password, url.pathname]) decodeURIComponent(part);
    return url.hash === '' && !url.hostname.includes(',');
  } catch {
    return false;
  }
}
