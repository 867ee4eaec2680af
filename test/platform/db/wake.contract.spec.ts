/** Replicas that wake each other through a real PostgreSQL, and what is left of it when connections are lost. */
import { setImmediate as turn } from 'node:timers/promises';
import type pg from 'pg';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Bell } from '../../../src/platform/bell.js';
import { Wake } from '../../../src/platform/db/wake.js';
import { systemTiming, type Timing } from '../../../src/platform/time.js';
import { createDatabase, type TestDatabase } from '../../database.js';
import { readExposition, valueIn } from '../../exposition.js';
import { until } from '../../server.js';
import { TcpProxy } from '../../tcp-proxy.js';

let db: TestDatabase;
let closing: (() => Promise<void>)[];

beforeEach(async () => {
  db = await createDatabase({ empty: true });
  closing = [];
});

afterEach(async () => {
  await Promise.all(closing.map((close) => close()));
  await db.drop();
});

/** One replica's bells with its wake-ups, once it listens. */
async function replica(url = db.url, timing: Timing = systemTiming) {
  const bells = { claimable: new Bell(), canceled: new Bell(), ended: new Bell<readonly string[]>() };
  const rings = { claimable: 0, canceled: 0 };
  bells.claimable.onRing(() => {
    rings.claimable += 1;
  });
  bells.canceled.onRing(() => {
    rings.canceled += 1;
  });
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line).code) });
  const metrics = new Registry();
  const wake = new Wake(url, { bells, log, metrics, timing });
  closing.push(() => wake.stop());
  wake.start();
  await until('it listens', () => rings.claimable === 1 && rings.canceled === 1);
  const value = async (name: string, labels?: Record<string, string>) =>
    valueIn(readExposition(await metrics.metrics()), name, labels);
  const reconnects = () => value('capstan_listen_reconnects_total');
  const told = async () => ({
    sent: await value('capstan_wakeups_sent_total', { bell: 'claimable' }),
    received: await value('capstan_wakeups_received_total', { bell: 'claimable' }),
  });
  return { bells, rings, lines, reconnects, told, stop: () => wake.stop() };
}

/** Everything that is said on the channel, as a stranger hears it. */
async function overheard(): Promise<{ what: string[] }[]> {
  const session = await db.session();
  const messages: { what: string[] }[] = [];
  session.on('notification', ({ payload = '' }) => messages.push(JSON.parse(payload)));
  await session.query('listen capstan');
  return messages;
}

async function listeners(session: pg.Client): Promise<number[]> {
  const { rows } = await session.query<{ pid: number }>(
    `select pid from pg_stat_activity where datname = current_database() and application_name = 'capstan listen'`,
  );
  return rows.map(({ pid }) => pid);
}

it('a ring on one replica rings the same bell on all others, once, and nobody passes it on', async () => {
  const heard = await overheard();
  const [a, b, c] = [await replica(), await replica(), await replica()];
  a.bells.claimable.ring();
  await until('the others hear it', () => b.rings.claimable === 2 && c.rings.claimable === 2);
  // Whatever a replica was about to say before this comes before it.
  for (const [i, said] of [b, c, a].entries()) {
    said.bells.canceled.ring();
    await until('all have heard it', () => [a, b, c].every(({ rings }) => rings.canceled === i + 2));
  }
  expect([a, b, c].map(({ rings }) => rings.claimable)).toEqual([2, 2, 2]);
  expect(heard.map(({ what }) => what)).toEqual([['claimable'], ['canceled'], ['canceled'], ['canceled']]);
  expect(await Promise.all([a, b, c].map(({ told }) => told()))).toEqual([
    { sent: 1, received: 0 },
    { sent: 0, received: 1 },
    { sent: 0, received: 1 },
  ]);
});

it('a burst of rings is told at once, and the rest of it together 20 ms later', async () => {
  const heard = await overheard();
  const asked: number[] = [];
  let pass: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    pass = resolve;
  });
  /** Lets nothing pass that is shorter than a check of the connection. */
  const delay: Timing['delay'] = (ms, signal) => {
    if (ms > 1_000) return systemTiming.delay(ms, signal);
    asked.push(ms);
    return held;
  };
  const a = await replica(db.url, { ...systemTiming, delay });
  a.bells.claimable.ring();
  await until('the first is told', () => heard.length === 1 && asked.length === 1);
  for (let i = 0; i < 100; i += 1) {
    a.bells.claimable.ring();
    a.bells.canceled.ring();
    await turn();
  }
  expect(asked).toEqual([20]);
  pass();
  await until('the rest is told', () => heard.length === 2);
  await a.stop();
  expect(heard.map(({ what }) => what)).toEqual([['claimable'], ['claimable', 'canceled']]);
});

it('F037 after its connection was lost a replica listens anew and rings all its bells, whatever was said', async () => {
  const a = await replica();
  const session = await db.session();
  for (let losses = 1; losses <= 3; losses += 1) {
    const [pid] = await listeners(session);
    await session.query('select pg_terminate_backend($1)', [pid]);
    await until('all bells ring', () => a.rings.claimable === losses + 1 && a.rings.canceled === losses + 1);
    expect(a.lines).toEqual(Array.from({ length: losses }, () => ['listen_lost', 'listen_restored']).flat());
    expect(await a.reconnects()).toBe(losses);
    expect(await listeners(session)).toHaveLength(1);
  }
  await session.query(`select pg_notify('capstan', '{"from":"b","what":["canceled"]}')`);
  await until('it hears', () => a.rings.canceled === 5);
});

it('what could not be told while the database was away is told afterwards, and the loss is one warning', async () => {
  const proxy = await TcpProxy.start(db.url);
  closing.push(() => proxy.close());
  const [a, b] = [await replica(proxy.through), await replica()];
  await proxy.goDown();
  await until('it has lost its session', () => a.lines.includes('listen_lost'));
  a.bells.claimable.ring();
  // Some tries fail.
  await new Promise((resolve) => setTimeout(resolve, 500));
  await proxy.comeUp();
  await until('the other hears it', () => b.rings.claimable === 2);
  expect(a.lines).toEqual(['listen_lost', 'listen_restored']);
});

it('a connection that went silent is found without anything being said, and is left behind', async () => {
  const proxy = await TcpProxy.start(db.url);
  closing.push(() => proxy.close());
  const quick: Timing = { ...systemTiming, delay: (ms, signal) => systemTiming.delay(Math.min(ms, 200), signal) };
  const a = await replica(proxy.through, quick);
  proxy.goSilent();
  await until('it notices', () => a.lines.includes('listen_lost'));
  proxy.speak();
  await until('it listens again', () => a.lines.includes('listen_restored'));
  expect(a.rings).toEqual({ claimable: 2, canceled: 2 });
});

it('what was said on a connection that went silent is said again on the next', async () => {
  const proxy = await TcpProxy.start(db.url);
  closing.push(() => proxy.close());
  const [a, b] = [await replica(proxy.through), await replica()];
  proxy.goSilent();
  a.bells.claimable.ring();
  await until('it notices', () => a.lines.includes('listen_lost'));
  proxy.speak();
  await until('the other hears it', () => b.rings.claimable === 2);
  expect(b.rings.canceled).toBe(1);
});

it('a session that does not last is followed by the next ever more slowly, since all bells ring with each', async () => {
  const pauses: number[] = [];
  /** A second takes a tenth of it. */
  const delay: Timing['delay'] = (ms, signal) => {
    if (ms > 20 && ms < 15_000) pauses.push(ms);
    return systemTiming.delay(ms < 15_000 ? ms / 10 : ms, signal);
  };
  const a = await replica(db.url, { ...systemTiming, delay, random: () => 0.999_999 });
  const session = await db.session();
  for (let losses = 1; losses <= 6; losses += 1) {
    await session.query('select pg_terminate_backend(pid) from unnest($1::int[]) pid', [await listeners(session)]);
    await until('it listens anew', () => a.rings.claimable === losses + 1);
  }
  expect(pauses.map((ms) => Math.round(ms))).toEqual([100, 200, 400, 800, 1_000, 1_000]);
});

it('a server that takes no writes any more is left, and not listened to until it does', async () => {
  const session = await db.session();
  const { rows } = await session.query('select current_database() as name');
  // Found before the function of the system, this one lets the test say what the server is.
  await session.query(`create table server as select false as demoted`);
  await session.query(
    `create function public.pg_is_in_recovery() returns boolean language sql as 'select demoted from public.server'`,
  );
  await session.query(`alter database ${rows[0].name} set search_path = public, pg_catalog`);
  const quick: Timing = { ...systemTiming, delay: (ms, signal) => systemTiming.delay(Math.min(ms, 100), signal) };
  const a = await replica(db.url, quick);
  await session.query('update server set demoted = true');
  await until('it notices', () => a.lines.includes('listen_lost'));
  await session.query(`select pg_notify('capstan', '{"from":"b","what":["canceled"]}')`);
  // Some tries.
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(a.rings).toEqual({ claimable: 1, canceled: 1 });
  await session.query('update server set demoted = false');
  await until('it listens again', () => a.rings.canceled === 2);
  expect(a.lines).toEqual(['listen_lost', 'listen_restored']);
});

it('a listener that throws does not keep a replica from telling the others', async () => {
  const [a, b] = [await replica(), await replica()];
  const session = await db.session();
  const off = a.bells.claimable.onRing(() => {
    throw new Error('a fault of a listener');
  });
  await session.query('select pg_terminate_backend(pid) from unnest($1::int[]) pid', [await listeners(session)]);
  await until('it throws', () => a.lines.filter((code) => code === 'listen_lost').length > 0 && a.rings.claimable > 2);
  off();
  await until('both listen', () => a.lines.includes('listen_restored') && b.lines.includes('listen_restored'));
  const before = b.rings.canceled;
  a.bells.canceled.ring();
  await until('the other hears it', () => b.rings.canceled > before);
});

it('what rings in the last moment is told before a replica stops', async () => {
  const [a, b] = [await replica(), await replica()];
  a.bells.claimable.ring();
  await a.stop();
  await until('the other hears it', () => b.rings.claimable === 2);
});

it('strangers on the channel are not listened to and do no harm', async () => {
  const a = await replica();
  const session = await db.session();
  for (const payload of [
    '',
    'wake up',
    '{"from":"x","what":"claimable"}',
    '['.repeat(7_000),
    '{"from":"x","what":["canceled"]}',
  ]) {
    await session.query(`select pg_notify('capstan', $1)`, [payload]);
  }
  await until('it hears the one that is meant for it', () => a.rings.canceled === 2);
  expect(a.rings.claimable).toBe(1);
  expect(a.lines).toEqual([]);
});

it('a replica that stops says farewell to the database, and tells and hears nothing more', async () => {
  const heard = await overheard();
  const [a, b] = [await replica(), await replica()];
  await a.stop();
  a.bells.claimable.ring();
  b.bells.canceled.ring();
  await until('the other is heard', () => heard.length > 0);
  expect(heard.map(({ what }) => what)).toEqual([['canceled']]);
  expect(a.rings.canceled).toBe(1);
  expect(a.lines).toEqual([]);
  expect(await listeners(await db.session())).toHaveLength(1);
});
