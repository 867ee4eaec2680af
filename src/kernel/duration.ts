/** Durations as people write them: an integer and `ms`, `s`, `m`, `h` or `d`, the same in settings, bodies and flags. */

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** What every duration looks like. */
export const DURATION_PATTERN = '^(\\d{1,12})(ms|s|m|h|d)$';
const DURATION = new RegExp(DURATION_PATTERN);

/** Milliseconds, or `undefined` when the text is no duration or too long for an exact number. */
export function parseDuration(text: string): number | undefined {
  const match = DURATION.exec(text);
  if (!match) return undefined;
  const ms = Number(match[1]) * (UNIT_MS[match[2] ?? ''] ?? Number.NaN);
  return Number.isSafeInteger(ms) ? ms : undefined;
}

/** The shortest exact way to write it: 90000 is `90s`, 3600000 is `1h`. */
export function formatDuration(ms: number): string {
  for (const unit of ['d', 'h', 'm', 's']) {
    const size = UNIT_MS[unit] ?? 1;
    if (ms !== 0 && ms % size === 0) return `${ms / size}${unit}`;
  }
  return `${ms}ms`;
}
