/** Which entries of a chain a bundle holds: a window without gaps, and no wider than may be signed at once. Pure. */

/** A signature is over the whole: so many entries are some megabytes. A verifier joins adjacent bundles. */
export const MAX_BUNDLE_ENTRIES = 10_000;

/** Sequence numbers, both included. */
export interface EntryRange {
  readonly from: number;
  readonly to: number;
}

export type Choice =
  /** Without `to` it goes to the head, the entry of the export itself included. */
  | { readonly from: number; readonly to: number | undefined }
  /** Too many entries: adjacent windows that hold them all, none of them too wide. */
  | { readonly windows: readonly EntryRange[] }
  | 'empty';

/** What is asked for, either bound or none, of a chain that ends at `head`. Without bounds: the newest there are. */
export function chooseWindow(asked: { readonly from?: number; readonly to?: number }, head: number): Choice {
  const isWhole = asked.from === undefined && asked.to === undefined;
  // One place is left for the entry of the export.
  if (isWhole) return head === 0 ? 'empty' : { from: Math.max(1, head + 2 - MAX_BUNDLE_ENTRIES), to: undefined };
  const from = asked.from ?? 1;
  const to = asked.to === undefined || asked.to > head ? undefined : asked.to;
  const last = to ?? head;
  if (from > last) return 'empty';
  return last - from < MAX_BUNDLE_ENTRIES ? { from, to } : { windows: windowsOf(from, last) };
}

function windowsOf(from: number, last: number): EntryRange[] {
  const count = Math.ceil((last - from + 1) / MAX_BUNDLE_ENTRIES);
  return Array.from({ length: count }, (_, index) => {
    const first = from + index * MAX_BUNDLE_ENTRIES;
    return { from: first, to: Math.min(first + MAX_BUNDLE_ENTRIES - 1, last) };
  });
}
