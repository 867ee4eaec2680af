/**
 * How far somebody has followed a run: its events and its output are two sequences, each taken in its own order. Pure.
 * Whatever order the two were mixed in, a place says exactly what was taken and what wasn't.
 */

/** Everything up to here was taken. */
export interface Place {
  /** Of the last event. */
  readonly seq: number;
  /** The fence of the last claim and of the last start that were told. */
  readonly claim: number;
  readonly start: number;
  /** Of the last chunk of output. */
  readonly fence: number;
  readonly batch: number;
}

export const BEGINNING: Place = Object.freeze({ seq: 0, claim: 0, start: 0, fence: 0, batch: 0 });

const MAX_INTEGER = 2_147_483_647;
const ID = /^(0|[1-9]\d{0,15})\.(0|[1-9]\d{0,9})\.(0|[1-9]\d{0,9})$/;

/** `seq.fence.batch`. A run that has started and written nothing yet is `seq.fence.0`. */
export function idOf({ seq, start, fence, batch }: Place): string {
  return start > fence ? `${seq}.${start}.0` : `${seq}.${fence}.${batch}`;
}

/** The place that an id names; undefined when no stream can have given it. */
export function placeOfId(id: string): Place | undefined {
  const [seq, fence, batch] = (ID.exec(id)?.slice(1) ?? []).map(Number);
  if (seq === undefined || fence === undefined || batch === undefined) return undefined;
  const isPossible = Number.isSafeInteger(seq) && fence <= MAX_INTEGER && batch <= MAX_INTEGER;
  if (!isPossible || (fence === 0 && batch > 0)) return undefined;
  return { seq, claim: fence, start: fence, fence, batch };
}

/** Equal for equal places alone. */
export function keyOf({ seq, claim, start, fence, batch }: Place): string {
  return `${seq} ${claim} ${start} ${fence} ${batch}`;
}

/** Whether whoever is at `place` has taken all that one at `other` has. */
export function reaches(place: Place, other: Place): boolean {
  const hasOutput = place.fence > other.fence || (place.fence === other.fence && place.batch >= other.batch);
  return hasOutput && place.seq >= other.seq && place.claim >= other.claim && place.start >= other.start;
}

/** The place of who has taken all that either has. */
export function joined(a: Place, b: Place): Place {
  const isAhead = a.fence > b.fence || (a.fence === b.fence && a.batch >= b.batch);
  const { fence, batch } = isAhead ? a : b;
  const [seq, claim, start] = [Math.max(a.seq, b.seq), Math.max(a.claim, b.claim), Math.max(a.start, b.start)];
  return { seq, claim, start, fence, batch };
}
