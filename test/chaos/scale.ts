/** How often each fault is tried: a few times in CI, as often as was promised with `npm run chaos -- --full`. */
export const isFull = process.env.CHAOS_FULL === '1';

/** `few` in CI, `many` in a full run. */
export function scaled(few: number, many: number): number {
  return isFull ? many : few;
}
