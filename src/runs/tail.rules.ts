/**
 * What comes next in a run: events and output mixed by time, each in its own order, the end behind everything. Pure.
 * Facts that have no event of their own (claimed, started) are told from the run's standing, each once per fence, and
 * always before the output that came of them.
 */
import { encodeId } from '../kernel/ids.js';
import type { Place } from './place.rules.js';

/** An event as it was stored. `at` is RFC 3339. */
export interface StoredEvent {
  readonly seq: number;
  readonly type: string;
  readonly at: string;
  readonly data: Record<string, unknown>;
}

export interface Standing {
  readonly fence: number;
  readonly claimedAt: Date | null;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  /** Who holds or held it. `id` is a UUID. */
  readonly workerId: string | null;
  readonly workerName: string | null;
  /** Where the output under the latest fence was cut: the last batch in front, and the bytes in front. */
  readonly cutAfter: number | null;
  readonly cutPos: number | null;
  readonly events: readonly StoredEvent[];
  /** There are more events than these. */
  readonly moreEvents: boolean;
  /** How many chunks of output to read next; 0 when there are none. */
  readonly chunks: number;
  /** There are more chunks than these. */
  readonly moreOutput: boolean;
}

/** Output as it was stored: one batch, of stdout (1) or stderr (2). `pos` is the bytes in front of it under its fence. */
export interface Chunk {
  readonly fence: number;
  readonly batch: number;
  readonly stream: 1 | 2;
  readonly at: Date;
  readonly pos: number;
  readonly data: Buffer;
}

/** An event as callers see it. `seq` is null for what is told from the run's standing. `at` is RFC 3339. */
export interface RunEvent {
  readonly seq: number | null;
  readonly type: string;
  readonly at: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Output that was dropped: the batches behind `after` and before `next`. Bytes of both streams, null when unknown. */
export interface Gap {
  readonly fence: number;
  readonly after: number;
  readonly next: number;
  readonly bytes: number | null;
}

type Told = { readonly event: RunEvent } | { readonly gap: Gap } | { readonly chunk: Chunk };

/** One thing to tell, and the place of who has taken it. */
export type Step = Told & { readonly place: Place };

export interface Page {
  readonly steps: readonly Step[];
  /** Where the page leads to. */
  readonly next: Place;
  /** There was more than fits. */
  readonly hasMore: boolean;
  /** The run has ended, and nothing comes behind this page. */
  readonly isLast: boolean;
}

type Telling = Told & { readonly atMs: number; readonly from: (place: Place) => Place };

/** What was read behind a place: how the run stood, and the chunks that were counted then. */
export interface Look {
  readonly standing: Standing;
  readonly chunks: readonly Chunk[];
}

/** The page behind `after`; with `upTo`, nothing of what is behind that. */
export function pageOf(after: Place, look: Look, upTo?: Place): Page {
  const { standing, chunks } = upTo ? within(look, upTo) : look;
  const work = [...factsOf(after, standing, upTo), ...outputOf(after, standing, chunks)];
  const events = standing.events.map((event): Telling => {
    // Whatever the clocks say, nothing comes behind the end.
    const atMs = event.type === 'run.ended' ? Number.POSITIVE_INFINITY : Date.parse(event.at);
    return { event, atMs, from: (place) => ({ ...place, seq: event.seq }) };
  });
  let next = after;
  const steps = mix(work, standing.moreOutput, events, standing.moreEvents).map(({ atMs: _, from, ...told }) => {
    next = from(next);
    return { ...told, place: next };
  });
  const hasMore = steps.length < work.length + events.length || standing.moreOutput || standing.moreEvents;
  return { steps, next, hasMore, isLast: standing.endedAt !== null && !hasMore && upTo === undefined };
}

function within({ standing, chunks }: Look, upTo: Place): Look {
  const isWithin = ({ fence, batch }: Chunk) => fence < upTo.fence || (fence === upTo.fence && batch <= upTo.batch);
  const last = chunks.at(-1);
  const isAllWithin = last !== undefined && isWithin(last) && (last.fence < upTo.fence || last.batch < upTo.batch);
  return {
    standing: {
      ...standing,
      events: standing.events.filter(({ seq }) => seq <= upTo.seq),
      moreEvents: standing.moreEvents && (standing.events.at(-1)?.seq ?? upTo.seq) < upTo.seq,
      moreOutput: standing.moreOutput && isAllWithin,
    },
    chunks: chunks.filter(isWithin),
  };
}

/** Stops where a sequence goes on that can't be seen yet: what follows there may be earlier than the rest of the other. */
function mix(work: readonly Telling[], moreWork: boolean, events: readonly Telling[], moreEvents: boolean): Telling[] {
  const mixed: Telling[] = [];
  let [w, e] = [0, 0];
  for (;;) {
    const [done, event] = [work[w], events[e]];
    if ((!done && moreWork) || (!event && moreEvents)) return mixed;
    if (event && (!done || event.atMs <= done.atMs)) {
      mixed.push(event);
      e += 1;
    } else if (done) {
      mixed.push(done);
      w += 1;
    } else return mixed;
  }
}

function factsOf(after: Place, standing: Standing, upTo: Place | undefined): Telling[] {
  const { fence, claimedAt, startedAt, workerId, workerName } = standing;
  const isDue = (told: number, limit = fence) => told < fence && fence <= limit;
  const worker = workerId === null ? null : encodeId('wrk', workerId);
  const facts: Telling[] = [];
  const tell = (type: string, at: Date, data: RunEvent['data'], from: Telling['from']) =>
    facts.push({ event: { seq: null, type, at: at.toISOString(), data }, atMs: at.getTime(), from });
  if (claimedAt !== null && isDue(after.claim, upTo?.claim)) {
    tell('run.claimed', claimedAt, { worker, workerName, fence }, (place) => ({ ...place, claim: fence }));
  }
  if (startedAt !== null && isDue(after.start, upTo?.start)) {
    tell('run.started', startedAt, { worker, fence }, (place) => ({ ...place, start: fence }));
  }
  return facts;
}

function outputOf(after: Place, standing: Standing, chunks: readonly Chunk[]): Telling[] {
  let last: { fence: number; batch: number; end: number | undefined } = {
    ...after,
    end: after.batch === 0 ? 0 : undefined,
  };
  return chunks.flatMap((chunk): Telling[] => {
    const before = chunk.fence === last.fence ? last : { fence: chunk.fence, batch: 0, end: 0 };
    const { fence, batch, pos } = chunk;
    last = { fence, batch, end: pos + chunk.data.length };
    const atMs = chunk.at.getTime();
    const told: Telling = { chunk, atMs, from: (place) => ({ ...place, fence, batch }) };
    if (batch === before.batch + 1) return [told];
    const begin = before.end ?? (before.batch === standing.cutAfter ? standing.cutPos : null);
    const gap: Gap = { fence, after: before.batch, next: batch, bytes: begin === null ? null : pos - begin };
    return [{ gap, atMs, from: (place) => ({ ...place, fence, batch: batch - 1 }) }, told];
  });
}
