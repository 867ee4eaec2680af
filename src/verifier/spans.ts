/**
 * Beats (`loomseal.span/1`): entries that a producer makes on a cadence, each telling how many entries stand between it
 * and the beat before. They show that nothing was left out while nothing happened; a late one is a gap, which is told.
 */
import type { Bundle } from './bundle.js';
import { Refusal } from './refusal.js';
import { nanosOf } from './time.js';

export const SPAN_TYPE = 'loomseal.span/1';

export interface Beat {
  readonly seq: number;
  readonly at: string;
  readonly beat: number;
  readonly count: number;
  readonly cadenceS: number;
}

export interface SpanFacts {
  readonly beats: number;
  /** Such as `2/4 windows attested`. */
  readonly coverage: string;
  readonly gaps: readonly { readonly seq: number; readonly seconds: number; readonly cadenceS: number }[];
}

export function beatsOf({ chain, claims }: Bundle): Beat[] {
  return claims
    .filter(({ type }) => type === SPAN_TYPE)
    .map(({ at, payload, chain: coordinates }) => {
      if (chain === undefined || coordinates === undefined) throw new Refusal('span', 'there is a beat and no chain');
      const { seq } = coordinates;
      const integer = (name: string, min: number) => {
        const value = payload.get(name);
        if (typeof value === 'number' && value >= min) return value;
        throw new Refusal('span', `${name} of a beat is no integer of ${min} or more`, seq);
      };
      if (payload.get('stream') !== 'chain') throw new Refusal('span', 'a beat of another stream than chain', seq);
      return { seq, at, beat: integer('beat', 1), count: integer('count', 0), cadenceS: integer('cadence_s', 1) };
    });
}

/** `undefined` where there are no beats. A first beat that is not the chain's first is taken as it is. */
export function checkBeats(beats: readonly Beat[]): SpanFacts | undefined {
  const gaps: { seq: number; seconds: number; cadenceS: number }[] = [];
  let missed = 0;
  for (const [index, beat] of beats.entries()) {
    const { seq, at, count } = beat;
    const last = beats[index - 1];
    const isFirstOfChain = last === undefined && beat.beat === 1;
    if (last && beat.beat - last.beat !== 1) refuse(`beat ${last.beat} is followed by beat ${beat.beat}`, seq);
    if ((last || isFirstOfChain) && count !== seq - (last?.seq ?? 0) - 1) {
      refuse(`the beat counts ${count} entries since the last one, there are ${seq - (last?.seq ?? 0) - 1}`, seq);
    }
    if (last === undefined) continue;
    const seconds = Number(nanosOf(at) - nanosOf(last.at)) / 1e9;
    if (seconds <= 0) refuse('a beat is not later than the one before', seq);
    if (seconds > last.cadenceS) gaps.push({ seq, seconds, cadenceS: last.cadenceS });
    missed += Math.max(0, Math.round(seconds / last.cadenceS) - 1);
  }
  if (beats.length === 0) return undefined;
  return { beats: beats.length, coverage: `${beats.length}/${beats.length + missed} windows attested`, gaps };
}

function refuse(reason: string, seq: number): never {
  throw new Refusal('span', reason, seq);
}
