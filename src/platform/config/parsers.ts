/**
 * The kinds of value a setting can have, each with its unit, its range and the sentence that says so. Pure.
 * Invariant: no accepted value holds a control character, so an accepted value may be shown.
 */
import { isIP } from 'node:net';
import { parseDuration } from '../../kernel/duration.js';
import { Bug } from '../../kernel/problems.js';
import type { Parser } from './setting.js';

const NAME_WORDS = 'letters, digits and . _ -, up to 63 in all, the first a letter or digit';
/** U+FFFD is what Node makes of bytes that are not UTF-8. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u{FFFD}]/u;

/** A whole number without sign, point or leading zero. */
export function integer(min: number, max: number): Parser<number> {
  return {
    expects: `integer ${min} to ${max}`,
    parse: (text) => (/^(0|[1-9]\d{0,8})$/.test(text) ? within(min, max, Number(text)) : undefined),
  };
}

/** Milliseconds. The bounds are durations as text; where the lower one is zero a bare `0` is taken too. */
export function duration(min: string, max: string): Parser<number> {
  const [minMs, maxMs] = [parseDuration(min), parseDuration(max)];
  if (minMs === undefined || maxMs === undefined) throw new Bug(`no range of durations: ${min} to ${max}`);
  return {
    expects: `duration ${min} to ${max} (an integer and ms, s, m, h or d)`,
    parse: (text) => within(minMs, maxMs, text === '0' ? 0 : parseDuration(text)),
  };
}

export function oneOf<const T extends string>(...words: readonly T[]): Parser<T> {
  return {
    expects: `one of ${words.join(', ')}`,
    parse: (text) => words.find((word) => word === text),
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
