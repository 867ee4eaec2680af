/** Text that the file's maker chose, made harmless for one line of a terminal, a log or a reason. */

/** Controls, formats (which hide text or turn its direction), unassigned ones, and separators of lines. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** Cut short, with everything that could steer a terminal spelled out: U+001B becomes `\u{1b}`. */
export function shown(text: string, limit = 100): string {
  const chars = [...text.slice(0, limit * 2)];
  const whole = chars.length <= limit && text.length <= limit * 2;
  const harmless = chars
    .slice(0, limit)
    .join('')
    .replace(UNSEEN, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);
  return whole ? harmless : `${harmless}…`;
}

/** One line of JSON, in which the same characters are escaped as JSON does it. */
export function shownJson(value: unknown): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value).replace(UNSEEN, (char) => char.split('').map(escaped).join(''));
}
