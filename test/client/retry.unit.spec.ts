import { describe, expect, it } from 'vitest';
import { pauseBeforeRetry, retryAfter } from '../../src/client/retry.rules.js';

describe('another try', () => {
  const trouble = { tries: 1, elapsedMs: 0, retryAfterMs: undefined, reached: true };

  it('comes after pauses that double up to 3 s, each between half and the whole of it', () => {
    const longest = [1, 2, 3, 4, 5, 6].map((tries) => pauseBeforeRetry({ ...trouble, tries }, 0.999999));
    const shortest = [1, 2, 3, 4, 5, 6].map((tries) => pauseBeforeRetry({ ...trouble, tries }, 0));
    expect(longest).toEqual([200, 400, 800, 1600, 3000, 3000]);
    expect(shortest).toEqual([100, 200, 400, 800, 1500, 1500]);
  });

  it('waits as long as the server asked, and a little more so that not all come at once', () => {
    expect(pauseBeforeRetry({ ...trouble, retryAfterMs: 2000 }, 0)).toBe(2000);
    expect(pauseBeforeRetry({ ...trouble, retryAfterMs: 2000 }, 0.5)).toBe(2100);
  });

  it('is not begun when it would come later than 15 s after the first', () => {
    expect(pauseBeforeRetry({ ...trouble, elapsedMs: 14_900 }, 0)).toBe(100);
    expect(pauseBeforeRetry({ ...trouble, elapsedMs: 14_901 }, 0)).toBeUndefined();
    expect(pauseBeforeRetry({ ...trouble, retryAfterMs: 16_000 }, 0)).toBeUndefined();
  });

  it('is given up after 3 s where nobody has ever answered', () => {
    expect(pauseBeforeRetry({ ...trouble, reached: false, elapsedMs: 2_900 }, 0)).toBe(100);
    expect(pauseBeforeRetry({ ...trouble, reached: false, elapsedMs: 2_950 }, 0)).toBeUndefined();
  });

  it('of something worth a longer wait goes on for so long, once anything answered', () => {
    const patient = { ...trouble, patienceMs: 60_000 };
    expect(pauseBeforeRetry({ ...patient, elapsedMs: 59_900 }, 0)).toBe(100);
    expect(pauseBeforeRetry({ ...patient, elapsedMs: 59_901 }, 0)).toBeUndefined();
    expect(pauseBeforeRetry({ ...patient, reached: false, elapsedMs: 2_950 }, 0)).toBeUndefined();
  });

  it('reads Retry-After as seconds or as a date, and takes nothing else for one', () => {
    const nowMs = Date.parse('2026-03-02T10:00:00Z');
    expect(retryAfter('7', nowMs)).toBe(7000);
    expect(retryAfter('Mon, 02 Mar 2026 10:00:05 GMT', nowMs)).toBe(5000);
    expect(retryAfter('Mon, 02 Mar 2026 09:00:00 GMT', nowMs)).toBe(0);
    expect(retryAfter('soon', nowMs)).toBeUndefined();
    expect(retryAfter(null, nowMs)).toBeUndefined();
  });
});
