/** The cursor of a list of entries: of which chain, and below which number it goes on. Pure. */

const SHAPE = /^([A-Za-z0-9_.-]{1,64}) ([1-9]\d{0,14})$/;

export interface EntryPlace {
  readonly chain: string;
  readonly below: number;
}

export function entryCursorOf({ chain, below }: EntryPlace): string {
  return Buffer.from(`${chain} ${below}`).toString('base64url');
}

/** The place that a cursor names; undefined when we didn't write it. */
export function entryPlaceOf(cursor: unknown): EntryPlace | undefined {
  if (typeof cursor !== 'string' || cursor.length > 200) return undefined;
  const [, chain, below] = SHAPE.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? [];
  if (!chain) return undefined;
  const place = { chain, below: Number(below) };
  return entryCursorOf(place) === cursor ? place : undefined;
}
