/** The keeper when the database or the way to it fails: what it does in which time, and that it never gives up. */
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { KeeperClient } from '../../../src/execution/keeper/keeper.client.js';
import { createDatabase, type TestDatabase } from '../../database.js';
import { TcpProxy } from '../../tcp-proxy.js';
import { compiledKeeper, KeeperPipe, NORMAL, Recorder, type StartKeeper, until, Workers } from './keeper.fixture.js';

let database: TestDatabase;
let session: pg.Client;
let workers: Workers;
let startKeeper: StartKeeper;
let proxy: TcpProxy;
let pipe: KeeperPipe;
let keeper: KeeperClient;
let seen: Recorder;
let incarnation: string;

beforeAll(async () => {
  database = await createDatabase();
  session = await database.session();
  workers = await Workers.open(session);
  startKeeper = await compiledKeeper();
});
afterAll(() => database.drop());

beforeEach(async () => {
  proxy = await TcpProxy.start(database.url);
  pipe = await KeeperPipe.make();
  seen = new Recorder();
  incarnation = await workers.insert();
});
afterEach(async () => {
  await keeper.close();
  pipe.close();
  await proxy.close();
});

function begin(options: Partial<typeof NORMAL> = {}, query = ''): void {
  keeper = startKeeper({ databaseUrl: proxy.through + query, ...NORMAL, ...options, log: seen.log });
  seen.watch(keeper);
  keeper.begin({ incarnation, pipeFd: pipe.fd, supervisorPid: 0 });
}

/** So that a test needn't wait for long, and a busy machine still answers in time. */
const SOON = { statementLimitMs: 1_000 };

/** From the keeper's side all is well: it renews, and what it renews counts. */
async function isRenewing(): Promise<void> {
  const { renewals } = keeper.stats;
  await until('two more renewals', () => keeper.stats.renewals >= renewals + 2);
}

describe('half-open TCP: nothing gets through any more, and no error says so', () => {
  it('is found out within one statement limit; renewals go on over a new connection', async () => {
    begin(SOON);
    await isRenewing();
    proxy.goSilent();
    const silentAt = process.hrtime.bigint();
    await until('the loss', () => seen.of('failing').length > 0, 5_000);
    // Until the next renewal is due, then as long again for its answer.
    expect(Number(process.hrtime.bigint() - silentAt) / 1e6).toBeLessThan(NORMAL.renewMs + SOON.statementLimitMs + 500);
    expect(seen.of('failing')[0]?.error).toMatch(/no answer within/);
    proxy.speak();
    await until('the recovery', () => seen.of('recovered').length > 0);
    await isRenewing();
    expect(seen.codes).toEqual(['lease_renewal_failing', 'lease_renewal_recovered']);
  });

  it('extends nothing for a renewal whose answer was lost, although the database carried it out', async () => {
    begin(SOON);
    await until('a frame', () => pipe.frames.length > 0);
    proxy.swallowAnswers();
    const renewed = await workers.renewalsOf(incarnation);
    await until('a renewal without answer', async () => (await workers.renewalsOf(incarnation)) > renewed);
    const [frames, carriedOutAt] = [pipe.frames.length, process.hrtime.bigint()];
    await until('the loss', () => seen.of('failing').length > 0);
    expect(pipe.frames.length).toBe(frames);
    await until('the next frame', () => pipe.frames.length > frames);
    expect(pipe.frames.at(-1)?.sentAtNs).toBeGreaterThan(carriedOutAt);
    // Numbers stay without a gap, for the supervisor acknowledges what it got.
    expect(pipe.frames.map(({ seq }) => seq)).toEqual(pipe.frames.map((_, index) => index + 1));
  });

  it('leaves no statement behind in the server that would wait for a lock and be carried out long after', async () => {
    const locker = await database.session();
    await locker.query('begin');
    await locker.query('select 1 from workers where id = $1 for update', [incarnation]);
    begin(SOON);
    await until('the renewal waits for the row', () => workers.isWaitingForLock());
    proxy.goSilent();
    await until('the server gives it up too', async () => !(await workers.isWaitingForLock()));
    await locker.query('commit');
    expect(await workers.renewalsOf(incarnation)).toBe(0);
  });

  it('a connection that is accepted and never spoken to is given up just so; that is logged once for all tries', async () => {
    proxy.goSilent();
    begin({ statementLimitMs: 400 });
    await until('the second try', () => proxy.accepted === 2);
    await until('the third try', () => proxy.accepted === 3);
    proxy.speak();
    await isRenewing();
    expect(seen.codes.slice(0, 2)).toEqual(['lease_renewal_failing', 'lease_renewal_recovered']);
  });
});

describe('the database is away', () => {
  it('F039 nothing exits: tried again and again with growing pauses, logged once, renewed at once when it is back', async () => {
    begin({ renewMs: 5_000 });
    await until('a frame', () => pipe.frames.length > 0);
    const downAt = performance.now();
    await proxy.goDown();
    await until('the failure is noticed', () => seen.of('failing').length > 0, 2_000);
    // Far from due by the interval, so what renews now is the loss itself.
    await proxy.comeUp();
    await until('the recovery', () => seen.of('recovered').length > 0, 4_000);
    expect(performance.now() - downAt).toBeLessThan(4_500);
    await until('a second frame', () => pipe.frames.length === 2);
    expect(seen.codes).toEqual(['lease_renewal_failing', 'lease_renewal_recovered']);
    expect(seen.of('recovered')[0]?.downMs).toBeGreaterThan(0);
  });

  it('a life may begin before the database is there', async () => {
    await proxy.goDown();
    begin();
    await until('the failure', () => seen.of('failing').length > 0);
    expect(seen.of('failing')[0]?.error).toMatch(/ECONNREFUSED/);
    await proxy.comeUp();
    await isRenewing();
  });

  it('F039 a backend that is terminated while it idles is replaced at once', async () => {
    begin({ renewMs: 5_000 });
    await isConnected();
    await session.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = 'capstan keeper'`,
    );
    await until('the next renewal, long before it is due', () => keeper.stats.renewals >= 2, 3_000);
  });

  it('an error of the statement is no reason to stop either', async () => {
    begin();
    await isRenewing();
    await session.query('alter table workers rename to elsewhere');
    await until('the failure', () => seen.of('failing').length > 0);
    await session.query('alter table elsewhere rename to workers');
    await isRenewing();
    expect(seen.of('over')).toEqual([]);
  });

  it('close() ends the thread in bounded time all the same', async () => {
    begin();
    await isConnected();
    proxy.goSilent();
    const closingAt = performance.now();
    await keeper.close();
    // A farewell that nobody answers would wait for as long as a statement may take, 5 s.
    expect(performance.now() - closingAt).toBeLessThan(4_000);
    expect(seen.of('failed')).toEqual([]);
  });

  async function isConnected(): Promise<void> {
    await until('the first renewal', () => keeper.stats.renewals > 0);
  }
});

describe('a server without TLS', () => {
  it('is talked to in plain when the URL only prefers TLS', async () => {
    begin({}, '?sslmode=prefer');
    await isRenewing();
    expect(seen.codes).toEqual([]);
  });

  it('is not talked to when the URL requires TLS', async () => {
    begin({}, '?sslmode=require');
    await until('two tries', () => proxy.accepted >= 2);
    expect(seen.of('failing')[0]?.error).toBe('The server does not support SSL connections');
    expect(keeper.stats.renewals).toBe(0);
  });
});

describe("what a janitor asks of its own process's keeper", () => {
  it('renewals count from zero while none gets through for longer than one and a half intervals, and behind it', async () => {
    begin(SOON);
    await until('two renewals', () => keeper.stats.renewalsSinceOutage >= 2);
    const { renewals } = keeper.stats;
    proxy.goSilent();
    await until('the outage', () => keeper.stats.renewalsSinceOutage === 0);
    // What got through before the silence was seen stays counted, and is no proof for the time behind it.
    const before = keeper.stats.renewals - renewals;
    proxy.speak();
    await until('two renewals since', () => keeper.stats.renewalsSinceOutage >= 2);
    expect(keeper.stats.renewalsSinceOutage).toBeLessThanOrEqual(keeper.stats.renewals - renewals - before);
  });

  it('a session that was ended and is there again at once is no outage: nobody lost more than one renewal by it', async () => {
    begin({ ...SOON, renewMs: 2_000 });
    await until('two renewals', () => keeper.stats.renewalsSinceOutage >= 2);
    await session.query(`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'capstan keeper'
                         and datname = current_database()`);
    await until('two more', () => keeper.stats.renewals >= 4, 15_000);
    expect(keeper.stats.renewalsSinceOutage).toBe(keeper.stats.renewals);
  });

  it("F009 the database's clock is seen against this thread's own, within one round trip", async () => {
    const before = performance.now();
    begin();
    const clock = await until('a look at the clock', () => keeper.clock);
    expect(clock.sentAtMs).toBeGreaterThan(before);
    expect(clock.receivedAtMs).toBeGreaterThanOrEqual(clock.sentAtMs);
    expect(clock.receivedAtMs).toBeLessThan(performance.now());
    // Same machine, so the database's clock is ours.
    const wallAtSending = Date.now() - (performance.now() - clock.sentAtMs);
    const wallAtReceipt = Date.now() - (performance.now() - clock.receivedAtMs);
    expect(clock.databaseAtMs).toBeGreaterThan(wallAtSending - 5);
    expect(clock.databaseAtMs).toBeLessThan(wallAtReceipt + 5);
    expect(keeper.stats.lastRenewalSentAtMs).toBeGreaterThanOrEqual(clock.sentAtMs - 0.001);
  });
});
