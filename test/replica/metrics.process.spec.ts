/** What a busy server tells who scrapes it: well formed, bounded, and nothing that is anybody's secret. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LAW_NAMES } from '../../src/doctor/laws.js';
import { newId } from '../../src/kernel/ids.js';
import { END_STATES, KINDS } from '../../src/kernel/run-words.js';
import { POOL_SIZES } from '../../src/platform/pools.js';
import { END_CODES } from '../../src/runs/run.js';
import { createDatabase, type TestDatabase } from '../database.js';
import { type Family, readExposition, valueIn } from '../exposition.js';
import { type ServerProcess, startServer, until } from '../server.js';
import { TcpProxy } from '../tcp-proxy.js';

const TOKEN = `cap_${newId()}`;
const SECRET = 'hunter2-and-more';
/** More queues than have a label. */
const QUEUES = 150;

let db: TestDatabase;
let proxy: TcpProxy;
let server: ServerProcess;
let scraped: string;
beforeAll(async () => {
  db = await createDatabase();
  proxy = await TcpProxy.start(db.url);
  const port = await freePort();
  scraped = `http://127.0.0.1:${port}/metrics`;
  server = await startServer({
    DATABASE_URL: proxy.through,
    CAPSTAN_BOOTSTRAP_TOKEN: TOKEN,
    CAPSTAN_METRICS_PORT: String(port),
  });
}, 120_000);
afterAll(async () => {
  server.child.kill('SIGKILL');
  await server.finished;
  await proxy.close();
  await db.drop();
});

async function freePort(): Promise<number> {
  const trial = createServer().listen(0, '127.0.0.1');
  await once(trial, 'listening');
  const address = trial.address();
  await new Promise((done) => trial.close(done));
  return typeof address === 'object' && address ? address.port : 0;
}

async function scrape(): Promise<{ readonly text: string; readonly families: ReadonlyMap<string, Family> }> {
  const answer = await fetch(scraped);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  const text = await answer.text();
  return { text, families: readExposition(text) };
}

const value = async (name: string, labels?: Record<string, string>) => valueIn((await scrape()).families, name, labels);

async function send(method: string, path: string, json?: object, headers: Record<string, string> = {}) {
  const answer = await fetch(`${server.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, ...(json ? { 'content-type': 'application/json' } : {}), ...headers },
    ...(json ? { body: JSON.stringify(json) } : {}),
  });
  await answer.text();
  return answer.status;
}

/** A request whose first line is whatever it is. */
async function say(line: string): Promise<void> {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  socket.end(`${line}\r\nHost: x\r\nConnection: close\r\n\r\n`);
  socket.resume();
  await once(socket, 'close');
}

async function each(n: number, act: (i: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const line = async () => {
    for (let i = next++; i < n; i = next++) await act(i);
  };
  await Promise.all(Array.from({ length: 16 }, line));
}

/** Whatever a caller may write where a label could be made of it. */
async function beHostile(round: string, requests: number, queues: number): Promise<void> {
  await each(requests, async (i) => {
    await send('GET', `/api/v1/x${round}${i}`);
    await send('GET', `/v1/runs/run_${round}${i}`);
    await send('GET', `/v1/runs?x${i}=${SECRET}`);
    await send('POST', '/v1/runs', { kind: `kind-${round}${i}` });
    await send('POST', '/v1/runs', { kind: 'noop' }, { authorization: `Bearer ${SECRET}${round}${i}` });
    if (i % 20 === 0) for (const method of ['PROPFIND', 'BREW', 'PUT']) await say(`${method} /${round}${i} HTTP/1.1`);
  });
  await each(queues, (i) => send('POST', '/v1/runs', { kind: 'noop', queue: `${round}-${i}`, name: `${SECRET}${i}` }));
}

describe('from the start on', () => {
  it('every family of a closed list is there, at 0', async () => {
    const { families } = await scrape();
    const zero = (name: string, label: string, values: readonly string[], more: Record<string, string> = {}) => {
      for (const each of values) expect(valueIn(families, name, { [label]: each, ...more }), `${name} ${each}`).toBe(0);
    };
    zero('capstan_lost_races_total', 'write', ['start', 'finish', 'release']);
    zero('capstan_runs_settled_total', 'result', ['requeued', 'interrupted', 'canceled']);
    zero('capstan_drains_total', 'reason', ['asked', 'stopping']);
    zero('capstan_lives_over_total', 'reason', ['lease_over', 'supervisor_gone', 'keeper_gone']);
    zero('capstan_flush_seconds_count', 'lane', ['submit', 'cancel', 'start', 'finish']);
    zero('capstan_wakeups_received_total', 'bell', ['claimable', 'canceled']);
    for (const pool of Object.keys(POOL_SIZES))
      zero('capstan_db_errors_total', 'kind', ['timeout', 'overloaded'], { pool });
    for (const name of ['capstan_workers_reaped_total', 'capstan_listen_reconnects_total', 'capstan_audit_broken']) {
      expect(valueIn(families, name), name).toBe(0);
    }
  });

  it('each loop has its last success, and the process says what it is', async () => {
    await until('its lease was renewed', async () => (await value('capstan_lease_age_seconds')) !== undefined);
    const { families } = await scrape();
    const now = Date.now() / 1_000;
    for (const loop of ['work', 'janitor', 'housekeeping', 'recheck']) {
      const at = valueIn(families, 'capstan_loop_last_success_timestamp_seconds', { loop }) ?? 0;
      expect(Math.abs(now - at), loop).toBeLessThan(300);
    }
    const info = families.get('capstan_info')?.samples;
    expect(info).toEqual([
      { name: 'capstan_info', labels: { version: expect.any(String), node: process.versions.node }, value: 1 },
    ]);
    expect(valueIn(families, 'capstan_db_up')).toBe(1);
    expect(valueIn(families, 'capstan_lease_renewals_total', { result: 'renewed' })).toBeGreaterThan(0);
    expect(valueIn(families, 'capstan_lease_age_seconds')).toBeLessThan(15);
  });
});

describe('under load', () => {
  beforeAll(async () => {
    const env = { PASSWORD: SECRET };
    await each(12, () => send('POST', '/v1/runs', { kind: 'noop', name: SECRET }));
    await send('POST', '/v1/runs', { kind: 'command', spec: { argv: ['sh', '-c', `echo ${SECRET}`], env } });
    await send('POST', '/v1/runs', { kind: 'script', spec: { interpreter: 'sh', content: 'exit 3', env } });
    await send('POST', '/v1/runs', { kind: 'http', spec: { url: `http://127.0.0.1:1/${SECRET}` } });
    await beHostile('first', 40, QUEUES);
    await until('all that is served has ended', async () => {
      const { families } = await scrape();
      const ended = families.get('capstan_runs_ended_total')?.samples ?? [];
      return ended.reduce((sum, { value }) => sum + value, 0) === 15;
    });
  }, 120_000);

  it('each family has a name and a help by the rules of the field', async () => {
    const { families } = await scrape();
    const ours = [...families.values()].filter(({ name }) => name.startsWith('capstan_'));
    expect(ours.length).toBeGreaterThan(40);
    for (const { name, help, type, samples } of ours) {
      expect(name).toMatch(/^capstan(_[a-z]+)+$/);
      expect(name.endsWith('_total'), `${name} is a ${type}`).toBe(type === 'counter');
      if (type === 'histogram') expect(name).toMatch(/_(seconds|bytes|items)$/);
      expect(name, 'a base unit').not.toMatch(/_(ms|millis|minutes|hours|kb|mb)(_|$)/);
      expect(help, name).toMatch(/^[A-Z0-9"'].{20,}\.$/);
      for (const { labels } of samples) expect(Object.keys(labels).length, name).toBeLessThanOrEqual(5);
    }
  });

  it('F127 each label is one of a list, and the only words of callers are the first names of queues', async () => {
    const { families } = await scrape();
    const paths = JSON.parse(await readFile(resolve(import.meta.dirname, '../../src/openapi.json'), 'utf8')).paths;
    const routes = Object.keys(paths).map((path) => path.replace(/\{(\w+)\}/g, ':$1'));
    const allowed: Record<string, readonly string[] | RegExp> = {
      kind: [...KINDS, ...'overloaded timeout no_room lock conflict read_only data connection other'.split(' ')],
      state: END_STATES,
      code: END_CODES,
      lane: ['submit', 'cancel', 'start', 'finish'],
      pool: Object.keys(POOL_SIZES),
      loop: /^[a-z]+$/,
      result: ['idle', 'more', 'failed', 'renewed', 'requeued', 'interrupted', 'canceled'],
      write: ['start', 'finish', 'release'],
      reason: ['lease_over', 'supervisor_gone', 'keeper_gone', 'asked', 'stopping'],
      bell: ['claimable', 'canceled'],
      queue: /^(default|first-\d{1,3}|\(other\))$/,
      method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', '(other)'],
      route: [...routes, '/', '/metrics', '/healthz', '/readyz', '(none)'],
      status: /^[1-5]\d\d$/,
      le: /^(\+Inf|\d+(\.\d+)?)$/,
      law: LAW_NAMES,
      what: ['runs', 'events', 'output_chunks', 'output_bytes'],
      table: ['run_events', 'run_output'],
      version: /^\d+\.\d+\.\d+$/,
      node: [process.versions.node],
    };
    for (const { name, samples } of families.values()) {
      if (!name.startsWith('capstan_')) continue;
      for (const [label, text] of samples.flatMap(({ labels }) => Object.entries(labels))) {
        const list = allowed[label];
        expect(list, `${name} has a label ${label}`).toBeDefined();
        expect(list instanceof RegExp ? list.test(text) : list?.includes(text), `${name} ${label}="${text}"`).toBe(
          true,
        );
      }
    }
    const queues = new Set([...families.values()].flatMap(({ samples }) => samples.map(({ labels }) => labels.queue)));
    queues.delete(undefined);
    expect(queues.size).toBeLessThanOrEqual(101);
  });

  it('nothing in it is an id, a token, a secret, an address or a text of an error', async () => {
    const { text } = await scrape();
    expect(text).not.toMatch(/[a-z]{3}_[0-9a-hjkmnp-tv-z]{26}/);
    expect(text).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-/);
    for (const secret of [
      SECRET,
      TOKEN,
      'cap_',
      'Bearer',
      'postgres:',
      '127.0.0.1',
      'ECONNREFUSED',
      'kind-',
      'PROPFIND',
    ]) {
      expect(text).not.toContain(secret);
    }
  });

  it('F127 a thousand more of unknown paths, methods, kinds, tokens and queues add not one series', async () => {
    const seriesOf = (families: ReadonlyMap<string, Family>) =>
      [...families.values()]
        .filter(({ name }) => name.startsWith('capstan_'))
        .flatMap(({ samples }) => samples)
        // A machine that is too busy answers 503 now and then, on any route.
        .filter(({ labels }) => labels.status !== '503')
        .map(({ name, labels }) => `${name} ${JSON.stringify(labels)}`)
        .sort();
    const whole = async () => {
      const { families } = await scrape();
      return (families.get('capstan_queue_depth')?.samples.length ?? 0) >= 99 ? families : undefined;
    };
    const before = await until('what waits is told', whole);
    await beHostile('second', 250, 1_000);
    const after = await until('what waits is told', whole);
    expect(seriesOf(after)).toEqual(seriesOf(before));
    const other = { kind: 'noop', queue: '(other)' };
    const count = (families: ReadonlyMap<string, Family>) =>
      valueIn(families, 'capstan_runs_submitted_total', other) ?? 0;
    expect(count(after) - count(before)).toBe(1_000);
    expect(valueIn(after, 'capstan_queues_untold')).toBeGreaterThan(900);
  }, 120_000);

  it('F013 a queue that nobody serves shows, as long as it has a label', async () => {
    await until('it is told', async () => (await value('capstan_queue_depth', { queue: 'first-0' })) === 1);
    expect(await value('capstan_queue_depth', { queue: 'default' })).toBe(0);
    expect(await value('capstan_queue_oldest_pending_seconds', { queue: 'first-0' })).toBeGreaterThan(0);
    expect(await value('capstan_queue_paused', { queue: 'first-0' })).toBe(0);
  });
});

describe('with the database away', () => {
  it('F129 a scrape is answered all the same, says so, and leaves out what it can not know', async () => {
    const before = await value('capstan_lease_renewals_total', { result: 'failed' });
    proxy.goSilent();
    await until('it is noticed', async () => (await value('capstan_db_up')) === 0, 30_000);
    await until(
      'no answer is shared any more',
      async () => {
        const { families } = await scrape();
        return families.get('capstan_queue_depth')?.samples.length === 0;
      },
      30_000,
    );
    await until(
      'renewals fail',
      async () => {
        return ((await value('capstan_lease_renewals_total', { result: 'failed' })) ?? 0) > (before ?? 0);
      },
      30_000,
    );
    expect(await value('process_resident_memory_bytes')).toBeGreaterThan(0);
    proxy.speak();
    await until('it is up again', async () => (await value('capstan_db_up')) === 1, 30_000);
    await until(
      'what waits is told again',
      async () => (await value('capstan_queue_depth', { queue: 'default' })) === 0,
      30_000,
    );
  }, 120_000);
});
