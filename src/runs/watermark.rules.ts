/**
 * Where a claimer goes on in a burst. A claim that begins at the front of its queue walks over the index entries of all
 * runs that were claimed before it and can't be vacuumed yet, because some session holds an old snapshot: a million of
 * them in a quarter of a second. Behind the last run that it took there are none. The mark is a hint: what came in before
 * it (a higher priority, a run whose instant has come, one that was given back) is met by the next look from the front.
 */
import type { ClaimedRun } from './run.js';

/** The last run that was taken out of a queue. */
export interface Mark {
  readonly queue: string;
  readonly priority: number;
  readonly position: number;
}

/** However busy a queue is, it is looked at from its front so often: a run is passed over for no longer. */
export const LOOK_BACK_EVERY_MS = 1_000;

/**
 * The marks after a claim of up to `limit` that took `runs`, in the order of their claim. None when it got fewer than
 * it asked for: there is no burst then.
 */
export function marksAfter(marks: readonly Mark[], runs: readonly ClaimedRun[], limit: number): readonly Mark[] {
  if (runs.length < limit) return [];
  const byQueue = new Map(marks.map((mark) => [mark.queue, mark]));
  for (const { queue, priority, position } of runs) byQueue.set(queue, { queue, priority, position });
  return [...byQueue.values()];
}
