/** Which part of an output a request means. Pure. Positions are bytes counted from 0; ends are excluded. */

export type OutputPick =
  | { readonly pick: 'all' }
  | { readonly pick: 'range'; readonly first: number; readonly last: number | undefined }
  | { readonly pick: 'suffix'; readonly bytes: number };

/** What a `Range` header asks for. More ranges than one, or what is no range of bytes, means all, as HTTP has it. */
export function outputPickOf(range: string | undefined): OutputPick {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range?.trim() ?? '');
  const [, first = '', last = ''] = match ?? [];
  if (first === '') return last === '' ? { pick: 'all' } : { pick: 'suffix', bytes: Number(last) };
  if (last !== '' && Number(last) < Number(first)) return { pick: 'all' };
  return { pick: 'range', first: Number(first), last: last === '' ? undefined : Number(last) };
}

/** The part of `total` bytes that is meant; `undefined` when none of it exists. */
export function outputPart(
  pick: OutputPick,
  total: number,
): { readonly from: number; readonly to: number } | undefined {
  if (pick.pick === 'all') return { from: 0, to: total };
  if (pick.pick === 'suffix') {
    return pick.bytes === 0 || total === 0 ? undefined : { from: Math.max(0, total - pick.bytes), to: total };
  }
  if (pick.first >= total) return undefined;
  return { from: pick.first, to: Math.min(total, (pick.last ?? total) + 1) };
}
