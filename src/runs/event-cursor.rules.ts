/** The cursor of a list of events: where a page ends, facts that have no number included. Pure. */
import { BEGINNING, type Place } from './place.rules.js';

const SHAPE = /^(0|[1-9]\d{0,14}) (0|[1-9]\d{0,8}) (0|[1-9]\d{0,8})$/;

export function eventCursorOf({ seq, claim, start }: Pick<Place, 'seq' | 'claim' | 'start'>): string {
  return Buffer.from(`${seq} ${claim} ${start}`).toString('base64url');
}

/** The place that a cursor names; undefined when we didn't write it. */
export function eventPlaceOf(cursor: unknown): Place | undefined {
  if (typeof cursor !== 'string' || cursor.length > 100) return undefined;
  const match = SHAPE.exec(Buffer.from(cursor, 'base64url').toString('latin1'));
  if (!match) return undefined;
  const [seq = 0, claim = 0, start = 0] = match.slice(1).map(Number);
  const place = { ...BEGINNING, seq, claim, start };
  return eventCursorOf(place) === cursor ? place : undefined;
}
