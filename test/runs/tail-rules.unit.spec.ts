/** What comes next in a run, whatever was taken before, however clocks run and pages fall. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { newId } from '../../src/kernel/ids.js';
import { BEGINNING, idOf, joined, keyOf, type Place, placeOfId, reaches } from '../../src/runs/place.rules.js';
import {
  type Chunk,
  type Look,
  pageOf,
  type Standing,
  type Step,
  type StoredEvent,
} from '../../src/runs/tail.rules.js';

const WORKER = newId();

/** A run as it is stored. Instants are milliseconds. */
interface Stored {
  readonly events: readonly { readonly atMs: number }[];
  readonly chunks: readonly { readonly atMs: number; readonly bytes: number; readonly gone: boolean }[];
  readonly isEnded: boolean;
  readonly eventsPerLook: number;
  readonly chunksPerLook: number;
}

const instant = fc.integer({ min: 1_000, max: 1_040 });
const stored: fc.Arbitrary<Stored> = fc.record({
  events: fc.array(fc.record({ atMs: instant }), { maxLength: 12 }),
  chunks: fc.array(
    fc.record({
      atMs: instant,
      bytes: fc.integer({ min: 1, max: 9 }),
      gone: fc.integer({ min: 0, max: 9 }).map((n) => n < 1),
    }),
    { maxLength: 12 },
  ),
  isEnded: fc.boolean(),
  eventsPerLook: fc.integer({ min: 1, max: 5 }),
  chunksPerLook: fc.integer({ min: 1, max: 5 }),
});

/** What a look behind a place finds, as the statement has it. */
function lookBehind(run: Stored, after: Place): Look {
  const events: StoredEvent[] = [
    ...run.events.map(({ atMs }) => ({ type: 'message', atMs })),
    ...(run.isEnded ? [{ type: 'run.ended', atMs: 1_020 }] : []),
  ].map(({ type, atMs }, i) => ({ seq: i + 1, type, at: new Date(atMs).toISOString(), data: {} }));
  let pos = 0;
  const chunks = run.chunks.flatMap(({ atMs, bytes, gone }, i): Chunk[] => {
    pos += bytes;
    const chunk: Chunk = {
      fence: 1,
      batch: i + 1,
      stream: 1,
      at: new Date(atMs),
      pos: pos - bytes,
      data: Buffer.alloc(bytes),
    };
    return gone ? [] : [chunk];
  });
  const laterEvents = events.filter(({ seq }) => seq > after.seq);
  const laterChunks = chunks.filter(({ batch }) => after.fence < 1 || batch > after.batch);
  const standing: Standing = {
    fence: 1,
    claimedAt: new Date(1_005),
    startedAt: new Date(1_006),
    endedAt: run.isEnded ? new Date(1_020) : null,
    workerId: WORKER,
    workerName: 'w',
    cutAfter: null,
    cutPos: null,
    events: laterEvents.slice(0, run.eventsPerLook),
    moreEvents: laterEvents.length > run.eventsPerLook,
    chunks: Math.min(laterChunks.length, run.chunksPerLook),
    moreOutput: laterChunks.length > run.chunksPerLook,
  };
  return { standing, chunks: laterChunks.slice(0, run.chunksPerLook) };
}

/** Everything behind a place, page after page. */
function walk(run: Stored, from: Place, upTo?: Place): { steps: Step[]; isLast: boolean; next: Place } {
  const steps: Step[] = [];
  for (let at = from; ; ) {
    const page = pageOf(at, lookBehind(run, at), upTo);
    steps.push(...page.steps);
    at = page.next;
    if (!page.hasMore) return { steps, isLast: page.isLast, next: at };
    if (page.steps.length === 0) throw new Error('there is more, and nothing comes');
  }
}

const nameOf = (step: Step): string => {
  if ('chunk' in step) return `chunk ${step.chunk.batch}`;
  if ('gap' in step) return `gap ${step.gap.after} ${step.gap.next}`;
  return `${step.event.type} ${step.event.seq}`;
};
const numbers = (steps: readonly Step[], kind: 'chunk' | 'event') =>
  steps.flatMap((step) => {
    if (kind === 'chunk') return 'chunk' in step ? [step.chunk.batch] : [];
    return 'event' in step && step.event.seq !== null ? [step.event.seq] : [];
  });

describe('a walk', () => {
  it('tells everything once, each kind in its order, facts before output and the end behind all of it', () => {
    fc.assert(
      fc.property(stored, (run) => {
        const { steps, isLast } = walk(run, BEGINNING);
        expect(numbers(steps, 'chunk')).toEqual(run.chunks.flatMap(({ gone }, i) => (gone ? [] : [i + 1])));
        expect(numbers(steps, 'event')).toEqual(
          Array.from({ length: run.events.length + (run.isEnded ? 1 : 0) }, (_, i) => i + 1),
        );
        const names = steps.map(nameOf);
        expect(names.filter((name) => name.endsWith('null'))).toEqual(['run.claimed null', 'run.started null']);
        const firstOutput = names.findIndex((name) => name.startsWith('chunk'));
        if (firstOutput >= 0) expect(names.indexOf('run.started null')).toBeLessThan(firstOutput);
        expect(isLast).toBe(run.isEnded);
        if (run.isEnded) expect(names.at(-1)).toMatch(/^run\.ended/);
      }),
    );
  });

  it('goes on behind any id with what had not come, and nothing twice', () => {
    fc.assert(
      fc.property(stored, fc.nat(), (run, pick) => {
        const { steps } = walk(run, BEGINNING);
        const taken = steps.slice(0, pick % (steps.length + 1));
        const place = taken.at(-1)?.place ?? BEGINNING;
        expect(walk(run, place).steps.map(nameOf).sort()).toEqual(steps.slice(taken.length).map(nameOf).sort());
        // An id says less than a place: a claim that was told without a start behind it comes again.
        const resumed = placeOfId(idOf(place));
        const rest = walk(run, resumed!).steps;
        for (const kind of ['chunk', 'event'] as const) {
          expect([...numbers(taken, kind), ...numbers(rest, kind)]).toEqual(numbers(steps, kind));
        }
        if (place.start > 0) expect(rest.map(nameOf)).not.toContain('run.started null');
      }),
    );
  });

  it('up to a place goes to it exactly, from wherever', () => {
    fc.assert(
      fc.property(stored, fc.nat(), fc.nat(), (run, pickFrom, pickTo) => {
        const places = [BEGINNING, ...walk(run, BEGINNING).steps.map(({ place }) => place)];
        const from = places[pickFrom % places.length]!;
        const upTo = joined(from, places[pickTo % places.length]!);
        const { next, isLast } = walk(run, from, upTo);
        // A gap is told with the chunk behind it.
        const isInGap = run.chunks[upTo.batch - 1]?.gone === true;
        if (!isInGap) expect(keyOf(next)).toBe(keyOf(upTo));
        expect(reaches(upTo, next)).toBe(true);
        expect(isLast).toBe(false);
      }),
    );
  });

  it('tells each gap with the bytes that are missing', () => {
    const chunk = (bytes: number, gone = false) => ({ atMs: 1_010, bytes, gone });
    const run: Stored = {
      events: [],
      chunks: [chunk(1, true), chunk(2), chunk(3, true), chunk(4, true), chunk(5)],
      isEnded: false,
      eventsPerLook: 5,
      chunksPerLook: 5,
    };
    const gaps = walk(run, BEGINNING).steps.flatMap((step) => ('gap' in step ? [step.gap] : []));
    expect(gaps).toEqual([
      { fence: 1, after: 0, next: 2, bytes: 1 },
      { fence: 1, after: 2, next: 5, bytes: 7 },
    ]);
  });

  it('tells how much is missing behind a place in the middle when the cut begins there, else that it is unknown', () => {
    const run: Stored = {
      events: [],
      chunks: [1, 2, 3, 4].map((bytes) => ({ atMs: 1_010, bytes, gone: bytes === 3 })),
      isEnded: false,
      eventsPerLook: 5,
      chunksPerLook: 5,
    };
    const place = { ...BEGINNING, claim: 1, start: 1, fence: 1, batch: 2 };
    const look = lookBehind(run, place);
    const bytesOf = (standing: Standing) =>
      pageOf(place, { ...look, standing }).steps.flatMap((step) => ('gap' in step ? [step.gap.bytes] : []));
    expect(bytesOf(look.standing)).toEqual([null]);
    expect(bytesOf({ ...look.standing, cutAfter: 2, cutPos: 3 })).toEqual([3]);
    expect(bytesOf({ ...look.standing, cutAfter: 1, cutPos: 1 })).toEqual([null]);
  });
});

describe('an id', () => {
  it('names the place that gave it', () => {
    const n = fc.integer({ min: 0, max: 2_147_483_647 });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }), n, n, (seq, fence, batch) => {
        const place = { seq, claim: fence, start: fence, fence, batch: fence === 0 ? 0 : batch };
        if (seq < 1e16) expect(placeOfId(idOf(place))).toEqual(place);
      }),
    );
  });

  it.each([
    '',
    '1',
    '1.1',
    '1.1.1.1',
    '1.0.1',
    '01.1.1',
    '1.1.-1',
    '1.1.1 ',
    ' 1.1.1',
    '1.1.1e3',
    '1.2147483648.1',
    '1.1.2147483648',
    '9999999999999999.1.1',
    '1.1.1\n',
    '١.1.1',
    'x.y.z',
  ])('%j is none', (text) => {
    expect(placeOfId(text)).toBeUndefined();
  });
});

it('two places joined are reached by nobody who lacks what one of them has', () => {
  const n = fc.integer({ min: 0, max: 3 });
  const place = fc.record({ seq: n, claim: n, start: n, fence: n, batch: n });
  fc.assert(
    fc.property(place, place, place, (a, b, c) => {
      expect(reaches(joined(a, b), a) && reaches(joined(a, b), b)).toBe(true);
      expect(reaches(c, joined(a, b))).toBe(reaches(c, a) && reaches(c, b));
    }),
  );
});
