/** Many at a time and no more than that; how long it takes; and waiting, but not for ever. */
import { setTimeout as pause } from 'node:timers/promises';

/** Calls `work` with 0 to n - 1, `width` of them at a time. */
export async function inParallel(n, width, work) {
  let next = 0;
  const lane = async () => {
    while (next < n) {
      const i = next;
      next += 1;
      await work(i);
    }
  };
  await Promise.all(Array.from({ length: Math.min(n, width) }, lane));
}

/** What it takes, in milliseconds. */
export async function timed(work) {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

/** The time of day with the fractions of a millisecond that `Date.now()` lacks. */
export function nowMs() {
  return performance.timeOrigin + performance.now();
}

/** Asks until the answer is true; rejects, by the name of what was waited for, when that takes too long. */
export async function until(what, isTrue, { everyMs = 20, withinMs = 1_800_000 } = {}) {
  const endMs = performance.now() + withinMs;
  while (!(await isTrue())) {
    if (performance.now() > endMs) throw new Error(`waited too long until ${what}`);
    await pause(everyMs);
  }
}
