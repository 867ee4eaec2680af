/** Many viewers of one run: they share what is read, wherever each of them is, and each gets everything once. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MessageStore } from '../../src/runs/message-store.js';
import { BEGINNING, type Place } from '../../src/runs/place.rules.js';
import { RunTail } from '../../src/runs/run-tail.js';
import type { Chunk, Look, StoredEvent } from '../../src/runs/tail.rules.js';

/** Time flies: whoever waits is there at once. */
class Clock {
  nowMs = 0;
  readonly delays: number[] = [];
  /** Until then nobody who waits gets on. */
  held: Promise<void> | undefined;
  monotonicMs = () => this.nowMs;
  random = () => 1;
  delay = async (ms: number) => {
    this.delays.push(ms);
    this.nowMs += ms;
    await (this.held ?? new Promise(setImmediate));
  };
}

/** A run that grows while it is followed. */
class FakeRun {
  readonly events: StoredEvent[] = [];
  chunks: Chunk[] = [];
  hasStarted = false;
  isEnded = false;
  looks = 0;
  batch = 0;
  /** No two looks see the same, and output is dated long after the events that come with it. */
  isBusy = false;

  event(type = 'message'): void {
    this.events.push({ seq: this.events.length + 1, type, at: new Date(this.events.length).toISOString(), data: {} });
  }

  write(): void {
    this.hasStarted = true;
    this.batch += 1;
    const data = Buffer.from(`${this.batch}\n`);
    this.chunks.push({ fence: 1, batch: this.batch, stream: 1, at: new Date(this.isBusy ? 1e9 : 0), pos: 0, data });
  }

  finish(): void {
    this.event('run.ended');
    this.isEnded = true;
  }

  async look(after: Place): Promise<Look> {
    this.looks += 1;
    if (this.isBusy) {
      this.write();
      this.event();
    }
    const events = this.events.filter(({ seq }) => seq > after.seq);
    const chunks = this.chunks.filter(({ batch }) => after.fence === 0 || batch > after.batch);
    const seen: Look = {
      standing: {
        fence: this.hasStarted ? 1 : 0,
        claimedAt: this.hasStarted ? new Date(0) : null,
        startedAt: this.hasStarted ? new Date(0) : null,
        endedAt: this.isEnded ? new Date(0) : null,
        workerId: null,
        workerName: null,
        cutAfter: null,
        cutPos: null,
        events: events.slice(0, 3),
        moreEvents: events.length > 3,
        chunks: Math.min(3, chunks.length),
        moreOutput: chunks.length > 3,
      },
      chunks: chunks.slice(0, 3),
    };
    await new Promise(setImmediate);
    return seen;
  }
}

function tailOf(run: FakeRun, over: { look?: (after: Place) => Promise<Look | undefined>; maxBytes?: number } = {}) {
  const clock = new Clock();
  const faults: unknown[] = [];
  const store = new MessageStore({ maxBytes: over.maxBytes ?? 1_000_000, keepMs: 1_000_000 }, clock);
  const look = over.look ?? ((after) => run.look(after));
  const end = async () => Buffer.from('end');
  const tail = new RunTail('run', { look, end, store, timing: clock, onFault: (error) => faults.push(error) });
  return { tail, clock, faults };
}

class FakeViewer {
  readonly taken: string[] = [];
  place: Place;

  constructor(
    private readonly tail: RunTail,
    from: Place = BEGINNING,
  ) {
    this.place = from;
    tail.join();
  }

  get isDone(): boolean {
    return this.taken.at(-1) === 'end';
  }

  /** Takes one message, or asks for more. */
  async step(): Promise<void> {
    const message = this.tail.next(this.place);
    const end = message ? undefined : this.tail.endAt(this.place);
    if (message) {
      this.place = message.place;
      const { bytes } = message;
      const [, data = ''] = /data: (.*)/.exec(bytes.toString()) ?? [];
      const { batch, type } = JSON.parse(data);
      this.taken.push(batch === undefined ? type : `chunk ${batch}`);
    } else if (end) this.taken.push('end');
    else await this.tail.more(this.place);
  }

  /** Takes what is at hand, and asks for more. */
  async turn(): Promise<void> {
    while (this.tail.next(this.place)) await this.step();
    await this.step();
  }

  async takeAll(): Promise<void> {
    for (let i = 0; i < 500 && !this.isDone; i += 1) await this.step();
  }
}

const chunksOf = (taken: readonly string[]) => taken.filter((name) => name.startsWith('chunk'));

it('200 who come together cost what one costs', async () => {
  const cost = async (viewers: number) => {
    const run = new FakeRun();
    run.event('run.submitted');
    for (let i = 0; i < 20; i += 1) run.write();
    run.finish();
    const { tail } = tailOf(run);
    const all = Array.from({ length: viewers }, () => new FakeViewer(tail));
    await Promise.all(all.map((viewer) => viewer.takeAll()));
    for (const { taken } of all) expect(chunksOf(taken)).toHaveLength(20);
    return run.looks;
  };
  expect(await cost(200)).toBe(await cost(1));
});

it('who came at different times and places waits for one poll with all others, also of a run that never rests', async () => {
  const run = new FakeRun();
  run.event('run.submitted');
  run.write();
  run.isBusy = true;
  const { tail } = tailOf(run);
  const viewers: FakeViewer[] = [];
  const allTurn = () => Promise.all(viewers.map((viewer) => viewer.turn()));
  for (let i = 0; i < 10; i += 1) {
    // As another replica has told them, one ahead of this one in a part: no two begin at the same place.
    const ahead = { ...BEGINNING, seq: i % 3, start: 1, claim: 1, fence: 1, batch: i };
    viewers.push(new FakeViewer(tail), new FakeViewer(tail, ahead));
    for (let n = 0; n < 5; n += 1) await allTurn();
  }
  for (let n = 0; n < 100; n += 1) await allTurn();
  const before = run.looks;
  for (let n = 0; n < 50; n += 1) await allTurn();
  expect(run.looks - before).toBe(50);
});

it('who comes while others wait reads no further than they have', async () => {
  const run = new FakeRun();
  run.event('run.submitted');
  for (let i = 0; i < 3; i += 1) run.write();
  const { tail, clock } = tailOf(run);
  const early = new FakeViewer(tail);
  for (let i = 0; i < 3; i += 1) await early.turn();
  let letGo = () => {};
  clock.held = new Promise((resolve) => {
    letGo = resolve;
  });
  const waiting = early.turn();
  run.write();
  run.event();
  const late = new FakeViewer(tail, { seq: 0, claim: 1, start: 1, fence: 1, batch: 1 });
  await late.step();
  while (tail.next(late.place)) await late.step();
  expect(late.place).toEqual(early.place);
  const looks = run.looks;
  letGo();
  await Promise.all([waiting, late.step()]);
  expect(run.looks).toBe(looks + 1);
  for (const viewer of [early, late]) {
    while (tail.next(viewer.place)) await viewer.step();
    expect(viewer.taken.slice(-2).sort()).toEqual(['chunk 4', 'message']);
  }
});

it('each gets everything once and the end last, however he comes, stops and goes on', async () => {
  const action = fc.oneof(
    { weight: 3, arbitrary: fc.constant('write') },
    { weight: 2, arbitrary: fc.constant('event') },
    { weight: 9, arbitrary: fc.nat(2) },
    { weight: 1, arbitrary: fc.constant('join') },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(action, { maxLength: 60 }),
      fc.constantFrom(1, 3_000, 1_000_000),
      async (actions, maxBytes) => {
        const run = new FakeRun();
        run.event('run.submitted');
        const { tail } = tailOf(run, { maxBytes });
        const viewers = [new FakeViewer(tail), new FakeViewer(tail), new FakeViewer(tail)];
        for (const act of actions) {
          if (act === 'write') run.write();
          else if (act === 'event') run.event();
          else if (act === 'join') viewers.push(new FakeViewer(tail));
          else await viewers[Number(act)]?.step();
        }
        run.finish();
        await Promise.all(viewers.map((viewer) => viewer.takeAll()));
        for (const { taken } of viewers) {
          expect(chunksOf(taken)).toEqual(Array.from({ length: run.batch }, (_, i) => `chunk ${i + 1}`));
          expect(taken.filter((name) => name === 'message')).toHaveLength(run.events.length - 2);
          expect(taken.slice(-2)).toEqual(['run.ended', 'end']);
          expect(new Set(taken).size + run.events.length - 2 - (run.events.length > 2 ? 1 : 0)).toBe(taken.length);
        }
      },
    ),
    { numRuns: 60 },
  );
});

it('a slow viewer is not kept from going on by what was dropped meanwhile', async () => {
  const run = new FakeRun();
  for (let i = 0; i < 3; i += 1) run.write();
  const { tail } = tailOf(run, { maxBytes: 1 });
  const [slow, fast] = [new FakeViewer(tail), new FakeViewer(tail)];
  for (let i = 0; i < 5; i += 1) await slow.step();
  for (let i = 0; i < 20; i += 1) await fast.step();
  run.chunks = [];
  for (let i = 0; i < 5; i += 1) run.write();
  run.finish();
  const looks = run.looks;
  await slow.takeAll();
  expect(slow.taken.slice(-3)).toEqual(['chunk 8', 'run.ended', 'end']);
  expect(run.looks - looks).toBeLessThan(20);
});

it('a quiet run is asked for less and less often, one that moves at once more often', async () => {
  const run = new FakeRun();
  run.event('run.submitted');
  const { tail, clock } = tailOf(run);
  const viewer = new FakeViewer(tail);
  for (let i = 0; i < 12; i += 1) await viewer.step();
  expect(clock.delays).toEqual([...clock.delays].sort((a, b) => a - b));
  expect(clock.delays.at(0)).toBe(100);
  expect(clock.delays.at(-1)).toBe(500);
  run.write();
  const quiet = clock.delays.length;
  for (let i = 0; i < 6; i += 1) await viewer.step();
  expect(clock.delays.slice(quiet)).toEqual([500, 100, 150]);
});

it('a database that is away is asked again with growing pauses, and nobody misses anything', async () => {
  const run = new FakeRun();
  run.write();
  run.finish();
  let isAway = true;
  const look = (after: Place) =>
    isAway ? Promise.reject(Object.assign(new Error('away'), { code: 'ECONNREFUSED' })) : run.look(after);
  const { tail, clock, faults } = tailOf(run, { look });
  const viewer = new FakeViewer(tail);
  for (let i = 0; i < 8; i += 1) await viewer.step();
  expect(faults).toHaveLength(8);
  expect(clock.delays).toEqual([250, 500, 1_000, 2_000, 4_000, 5_000, 5_000, 5_000]);
  isAway = false;
  await viewer.takeAll();
  expect(viewer.taken.slice(-3)).toEqual(['chunk 1', 'run.ended', 'end']);
  expect(tail.isBroken).toBe(false);
});

it('a fault of our own, or a run that was removed, is the end of it', async () => {
  const run = new FakeRun();
  const broken = tailOf(run, { look: () => Promise.reject(new Error('a bug')) });
  await broken.tail.more(BEGINNING);
  expect(broken.tail.isBroken).toBe(true);
  expect(broken.faults).toHaveLength(1);
  const removed = tailOf(run, { look: async () => undefined });
  await removed.tail.more(BEGINNING);
  expect(removed.tail.isBroken).toBe(true);
});

it('nothing is read any more once nobody follows', async () => {
  const run = new FakeRun();
  const { tail } = tailOf(run);
  const viewer = new FakeViewer(tail);
  for (let i = 0; i < 3; i += 1) await viewer.step();
  const waiting = viewer.step();
  tail.leave();
  const looks = run.looks;
  await waiting;
  await viewer.step();
  expect(run.looks).toBe(looks);
});
