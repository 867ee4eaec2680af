/** Instants as callers write them: RFC 3339 with an offset, in the calendar and to the millisecond. */

const SHAPE = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/** The instant, cut to milliseconds; `undefined` when the text is none (a 31st of February isn't). Years 1970 to 9999. */
export function parseInstant(text: string): Date | undefined {
  const match = SHAPE.exec(text);
  if (!match) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const ms = Number((match[7] ?? '').padEnd(3, '0').slice(0, 3));
  const [offsetHours, offsetMinutes] = [Number(match[9] ?? 0), Number(match[10] ?? 0)];
  if (month < 1 || month > 12 || hour > 23 || minute > 59 || second > 59) return undefined;
  if (offsetHours > 23 || offsetMinutes > 59) return undefined;
  const local = new Date(Date.UTC(year, month - 1, day, hour, minute, second, ms));
  if (local.getUTCDate() !== day || local.getUTCFullYear() !== year) return undefined;
  const offsetMs = (offsetHours * 60 + offsetMinutes) * 60_000 * (match[8] === '-' ? -1 : 1);
  const instant = new Date(local.getTime() - offsetMs);
  const utcYear = instant.getUTCFullYear();
  return utcYear >= 1970 && utcYear <= 9999 ? instant : undefined;
}
