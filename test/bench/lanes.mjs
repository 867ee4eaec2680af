/** Many at a time, and no more than that. */

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
