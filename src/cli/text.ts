/** Text that others chose, made fit for a terminal and for one field of a line. Pure. */
import { closest, distance } from 'fastest-levenshtein';

/** Control characters, line separators, and the marks that turn the direction of writing. */
const STEERING = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** The same text without anything that moves a cursor, ends a line or begins another field. */
export function printable(text: string): string {
  return text.replace(STEERING, (char) => (/[\t\n\r]/.test(char) ? ' ' : '\u{FFFD}'));
}

/** JSON whose texts steer no terminal either: JSON itself escapes only the first of these. */
export function printableJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replace(
    /[\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** A hint that ends in a command of ours, such as `see it: capstan show ID`, with the program as it was started. */
export function startedAs(program: string, hint: string): string {
  return hint.replace(/^([a-z ]+: )capstan /, `$1${program} `);
}

const BRIEF_CHARS = 200;

/** A JSON value on one line, cut short; nothing for null. */
export function brief(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  const text = JSON.stringify(value);
  // Cut between characters, not between the halves of one.
  return text.length <= BRIEF_CHARS ? text : `${text.slice(0, BRIEF_CHARS).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** An argument as a shell would need it quoted. */
export function quoted(argument: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`;
}

/** ` Did you mean …?` when one of the words is near; what shares little with the text helps nobody. */
export function nearest(text: string, words: readonly string[]): string {
  const near = closest(text, words);
  return distance(text, near) <= Math.max(1, Math.floor(near.length / 3)) ? ` Did you mean ${near}?` : '';
}

/** A count as people read it: `20,000`. */
export function grouped(count: number): string {
  return count.toLocaleString('en-US');
}

/** `1 run`, `20,000 runs`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}
