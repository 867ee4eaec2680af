/** The keeper's thread on a real database and a real pipe: what it renews, what it extends, and when it stops. */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { KeeperClient } from '../../../src/execution/keeper/keeper.client.js';
import { createDatabase, type TestDatabase } from '../../database.js';
import { compiledKeeper, KeeperPipe, NORMAL, Recorder, type StartKeeper, until, Workers } from './keeper.fixture.js';

let database: TestDatabase;
let workers: Workers;
let startKeeper: StartKeeper;
const keepers: KeeperClient[] = [];
const pipes: KeeperPipe[] = [];

beforeAll(async () => {
  database = await createDatabase();
  workers = await Workers.open(await database.session());
  startKeeper = await compiledKeeper();
});
afterEach(async () => {
  await Promise.all(keepers.splice(0).map((started) => started.close()));
  for (const pipe of pipes.splice(0)) pipe.close();
});
afterAll(() => database.drop());

function keeper(options: Partial<typeof NORMAL> = {}) {
  const seen = new Recorder();
  const started = startKeeper({ databaseUrl: database.url, ...NORMAL, ...options, log: seen.log });
  keepers.push(started);
  seen.watch(started);
  return { keeper: started, seen };
}

async function makePipe(): Promise<KeeperPipe> {
  const pipe = await KeeperPipe.make();
  pipes.push(pipe);
  return pipe;
}

async function begin(started: KeeperClient, options: { state?: string; leaseMs?: number } = {}) {
  const pipe = await makePipe();
  const incarnation = await workers.insert(options);
  started.begin({ incarnation, pipeFd: pipe.fd, supervisorPid: 0 });
  return { incarnation, pipe };
}

describe('a life', () => {
  it('S4-11 S1-06 its lease moves forward at least every renewal interval, and reaches a whole TTL each time', async () => {
    const { keeper: started, seen } = keeper({ renewMs: 1_000 });
    const { incarnation } = await begin(started, { leaseMs: 1_000 });
    await until('four renewals', () => seen.of('renewed').length >= 4);
    // A busy machine delays its timers: 200 ms are for that, a renewal left out would be 1,000.
    expect(await workers.longestGapMs(incarnation)).toBeLessThan(1_200);
    for (const { leaseUntil, at } of seen.of('renewed')) {
      expect(leaseUntil.getTime() - at.getTime()).toBeGreaterThan(NORMAL.ttlMs - 100);
    }
    expect(seen.of('renewed')[0]).toMatchObject({ incarnation, state: 'live' });
  });

  it('every renewal becomes one extension, numbered from 1, with the time when it was sent', async () => {
    const { keeper: started } = keeper();
    const before = process.hrtime.bigint();
    const { incarnation, pipe } = await begin(started);
    await until('three frames', () => pipe.frames.length >= 3);
    const frames = pipe.frames.slice(0, 3);
    expect(frames.map(({ seq }) => seq)).toEqual([1, 2, 3]);
    expect(new Set(frames.map((frame) => frame.incarnation))).toEqual(new Set([incarnation]));
    const times = [before, ...frames.map(({ sentAtNs }) => sentAtNs), process.hrtime.bigint()];
    expect(times).toEqual([...times].sort((a, b) => Number(a - b)));
    expect(started.stats.extensionSeq).toBeGreaterThanOrEqual(3);
  });

  it('an extension counts from when its renewal was sent, however long the database took to answer', async () => {
    const { keeper: started, seen } = keeper();
    const locker = await database.session();
    const pipe = await makePipe();
    const incarnation = await workers.insert();
    await locker.query('begin');
    await locker.query('select 1 from workers where id = $1 for update', [incarnation]);
    started.begin({ incarnation, pipeFd: pipe.fd, supervisorPid: 0 });
    await until('the renewal waits for the row', () => workers.isWaitingForLock());
    const waitedAt = process.hrtime.bigint();
    expect(pipe.frames).toEqual([]);
    await locker.query('commit');
    await until('the extension', () => pipe.frames.length > 0);
    expect(pipe.frames[0]?.sentAtNs).toBeLessThan(waitedAt);
    expect(seen.of('failing')).toEqual([]);
  });

  it('revives a lease that was late, and learns that it is draining', async () => {
    const { keeper: started, seen } = keeper();
    const { incarnation } = await begin(started, { leaseMs: -5_000 });
    await until('the first renewal', () => seen.of('renewed').length > 0);
    expect(await workers.leaseMs(incarnation)).toBeGreaterThan(0);
    await workers.setState(incarnation, 'draining');
    await until('the drain', () => seen.of('renewed').some(({ state }) => state === 'draining'));
  });

  it('is over when its row was reaped: no lease, no extension and no report after that', async () => {
    const { keeper: started, seen } = keeper();
    const { incarnation, pipe } = await begin(started);
    await until('a frame', () => pipe.frames.length > 0);
    await workers.setState(incarnation, 'lost');
    await until('the end of the life', () => seen.of('over').length > 0);
    const frames = pipe.frames.length;
    // A second life shows that the keeper goes on, and that a few intervals have passed.
    const next = await begin(started);
    await until('three frames of the next life', () => next.pipe.frames.length >= 3);
    expect(pipe.frames.length).toBe(frames);
    expect(seen.of('over')).toEqual([{ type: 'over', incarnation }]);
    expect(seen.codes).toEqual(['lease_over']);
    expect(next.pipe.frames[0]).toMatchObject({ incarnation: next.incarnation, seq: 1 });
  });

  it('is over for good, although the main thread is busy and the row comes back', async () => {
    const { keeper: started, seen } = keeper();
    const { incarnation, pipe } = await begin(started);
    await until('a frame', () => pipe.frames.length > 0);
    await workers.delete(incarnation);
    const renewed = await workers.renewalsOf(incarnation);
    const comesBack = workers.insert({ id: incarnation, delayMs: 2 * NORMAL.renewMs });
    spin(4 * NORMAL.renewMs);
    await comesBack;
    expect(await workers.renewalsOf(incarnation)).toBe(renewed);
    await until('the end of the life', () => seen.of('over').length > 0);
  });

  it('that is ended is neither renewed nor reported any more, whatever was on its way', async () => {
    const { keeper: started, seen } = keeper();
    const first = await begin(started);
    const next = await workers.insert();
    await until('a renewal', () => seen.of('renewed').length > 0);
    const told = seen.of('renewed').length;
    // Reports of the renewals meanwhile wait for this thread to take them in.
    spin(2 * NORMAL.renewMs);
    const begunAtMs = performance.now();
    started.begin({ incarnation: next, pipeFd: first.pipe.fd, supervisorPid: 0 });
    const renewed = await workers.renewalsOf(first.incarnation);
    await until('three renewals of the next life', () => seen.of('renewed').length >= told + 3);
    const later = seen.of('renewed').slice(told);
    expect(later.map(({ incarnation }) => incarnation)).toEqual(later.map(() => next));
    for (const { clock } of later) expect(clock.sentAtMs).toBeGreaterThan(begunAtMs);
    // One statement may have been under way.
    expect(await workers.renewalsOf(first.incarnation)).toBeLessThanOrEqual(renewed + 1);
  });

  it('gets its first renewal at once although the one before left a statement hanging', async () => {
    const { keeper: started, seen } = keeper();
    const locker = await database.session();
    const hanging = await workers.insert();
    await locker.query('begin');
    await locker.query('select 1 from workers where id = $1 for update', [hanging]);
    const pipe = await makePipe();
    started.begin({ incarnation: hanging, pipeFd: pipe.fd, supervisorPid: 0 });
    await until('the renewal waits for the row', () => workers.isWaitingForLock());
    const next = await begin(started);
    // Well before the hanging statement is given up.
    await until('the next life is renewed', () => next.pipe.frames.length > 0, 3_000);
    await locker.query('commit');
    expect(seen.of('failing')).toEqual([]);
  });
});

describe('a busy main thread', () => {
  it.each([
    ['that computes', (ms: number) => void spin(ms)],
    ['that is blocked', (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)],
  ])('S4-41 F002 %s for many renewal intervals loses no renewal and no extension', async (_, block) => {
    const { keeper: started, seen } = keeper();
    const { incarnation, pipe } = await begin(started);
    await until('a frame', () => pipe.frames.length > 0);
    block(2_000);
    expect(await workers.longestGapMs(incarnation)).toBeLessThan(NORMAL.renewMs + 300);
    await until('the frames written meanwhile', () => pipe.frames.length >= 6);
    expect(seen.of('failing')).toEqual([]);
  });
});

describe('the pipe to the supervisor', () => {
  it('when its reader is gone, the lease is still renewed, nothing is extended, and it is logged once', async () => {
    const { keeper: started, seen } = keeper();
    const { incarnation, pipe } = await begin(started);
    await until('a frame', () => pipe.frames.length > 0);
    pipe.closeReadingEnd();
    await until('the log line', () => seen.codes.length > 0);
    const { extensionSeq } = started.stats;
    const renewed = await workers.renewalsOf(incarnation);
    await until('four more renewals', async () => (await workers.renewalsOf(incarnation)) >= renewed + 4);
    expect(started.stats.extensionSeq).toBe(extensionSeq);
    expect(seen.codes).toEqual(['extension_not_written']);
  });

  it('when nobody reads it and it is full, nothing throws or waits, and reading makes it work again', async () => {
    const { keeper: started, seen } = keeper();
    const pipe = await makePipe();
    const incarnation = await workers.insert();
    pipe.fill();
    started.begin({ incarnation, pipeFd: pipe.fd, supervisorPid: 0 });
    await until('renewals without extension', () => seen.of('renewed').length >= 3);
    expect(started.stats.extensionSeq).toBe(0);
    expect(seen.codes).toEqual(['extension_not_written']);
    await until('an extension', () => pipe.frames.length > 0);
    expect(pipe.frames[0]).toMatchObject({ incarnation, seq: 1 });
  });

  it('its descriptor is never written to once it belongs to something else', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'keeper-'));
    const victim = join(folder, 'victim');
    const { keeper: started, seen } = keeper();
    const { incarnation, pipe } = await begin(started);
    const { fd } = pipe;
    await until('a frame', () => pipe.frames.length > 0);
    pipe.closeWritingEnd();
    // The system gives the lowest number that is free.
    const opened: number[] = [];
    do opened.push(openSync(victim, 'w'));
    while (opened.at(-1) !== fd && opened.length < 50);
    expect(opened.at(-1)).toBe(fd);
    const renewed = await workers.renewalsOf(incarnation);
    await until('four more renewals', async () => (await workers.renewalsOf(incarnation)) >= renewed + 4);
    expect(readFileSync(victim)).toHaveLength(0);
    expect(seen.codes).toEqual(['extension_not_written']);
    for (const descriptor of opened) closeSync(descriptor);
    rmSync(folder, { recursive: true });
  });

  it('gets nothing after end() has returned, although a renewal that was under way still succeeds', async () => {
    const { keeper: started, seen } = keeper();
    const locker = await database.session();
    const pipe = await makePipe();
    const [ended, next] = [await workers.insert(), await workers.insert()];
    await locker.query('begin');
    await locker.query('select 1 from workers where id = $1 for update', [ended]);
    started.begin({ incarnation: ended, pipeFd: pipe.fd, supervisorPid: 0 });
    await until('the renewal waits for the row', () => workers.isWaitingForLock());
    started.end();
    await locker.query('commit');
    await until('the renewal succeeds', async () => (await workers.renewalsOf(ended)) === 1);
    started.begin({ incarnation: next, pipeFd: pipe.fd, supervisorPid: 0 });
    await until('a frame of the next life', () => pipe.frames.length > 0);
    expect(pipe.frames[0]).toMatchObject({ incarnation: next, seq: 1 });
    expect(seen.of('renewed').map(({ incarnation }) => incarnation)).toEqual([next]);
  });
});

function spin(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}
