/** Times as a bundle writes them: RFC 3339 in UTC with `Z`, and a fraction of any length. */

const TIME = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d+))?Z$/;

export function isTime(text: string): boolean {
  const second = TIME.exec(text)?.[1];
  if (second === undefined) return false;
  const ms = Date.parse(`${second}Z`);
  // Some days that no month has are taken for days of the next month.
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(second);
}

/** Nanoseconds since 1970 of such a time; what is finer is cut off. */
export function nanosOf(time: string): bigint {
  const [, second = '', fraction = ''] = TIME.exec(time) ?? [];
  return BigInt(Date.parse(`${second}Z`)) * 1_000_000n + BigInt(fraction.slice(0, 9).padEnd(9, '0'));
}
