import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDuration, parseDuration } from '../../src/kernel/duration.js';

describe('durations', () => {
  it.each([
    ['0s', 0],
    ['250ms', 250],
    ['30s', 30_000],
    ['10m', 600_000],
    ['2h', 7_200_000],
    ['365d', 31_536_000_000],
  ])('%s is read as %d ms', (text, ms) => expect(parseDuration(text)).toBe(ms));

  it.each([
    '',
    '30',
    's',
    '1.5s',
    '-1s',
    '+1s',
    ' 1s',
    '1s ',
    '1 s',
    '1S',
    '1w',
    '1s1s',
    '٣s',
    '9999999999999s',
    '999999999999d',
  ])('what is no duration, or too long for an exact number, is refused: %j', (text) =>
    expect(parseDuration(text)).toBeUndefined(),
  );

  it('what is written is read back exactly, in the largest whole unit', () => {
    expect([0, 90_000, 3_600_000, 172_800_000, 1_001].map(formatDuration)).toEqual([
      '0ms',
      '90s',
      '1h',
      '2d',
      '1001ms',
    ]);
    fc.assert(fc.property(fc.nat(2 ** 31 - 1), (ms) => parseDuration(formatDuration(ms)) === ms));
  });
});
