/** What viewers of runs cost, and what they can't: memory, each other's time, the database. */
import { Writable } from 'node:stream';
import { Registry } from 'prom-client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { encodeId, newId } from '../../src/kernel/ids.js';
import type { RequestCaller } from '../../src/platform/http/caller.js';
import { OutputService } from '../../src/runs/output.service.js';
import { runDto } from '../../src/runs/run.dto.js';
import { RunMetrics } from '../../src/runs/run.metrics.js';
import { STREAM_LIMITS, type StreamLimits, StreamService } from '../../src/runs/stream.service.js';
import { type LocalSurface, openLocalSurface } from '../send.js';
import { until } from '../server.js';
import { Holder } from './holder.fixture.js';
import { StreamClient } from './stream.fixture.js';

let root: LocalSurface;
let surface: LocalSurface;
beforeAll(async () => {
  root = await openLocalSurface();
});
beforeEach(() => {
  surface = { ...root, queue: `q-${newId()}` };
});
afterEach(() => {
  vi.restoreAllMocks();
});
afterAll(() => root.close());

async function running(on = surface) {
  const json = { kind: 'noop', queue: on.queue };
  const { id } = (await on.send({ method: 'POST', path: '/v1/runs', json })).json;
  const holder = await Holder.register(on);
  const hold = await holder.start();
  const write = (data: string | Buffer) => holder.write(hold, 1, Buffer.from(data));
  return { id, runId: hold.runId, write, end: () => holder.finish(hold) };
}

const follow = async (id: string, lastEventId?: string, on = surface) =>
  StreamClient.open({ base: await on.base(), token: on.token, path: `/v1/runs/${id}/stream`, lastEventId });

async function openStreams(on = surface): Promise<number> {
  const metric = await on.platform.metrics.getSingleMetric('capstan_streams_open')?.get();
  return metric?.values[0]?.value ?? Number.NaN;
}

/** Statements that were sent for callers since this was called. */
function statements(): () => number {
  const { read, access, output } = surface.platform.pools;
  const spies = [vi.spyOn(read, 'run'), vi.spyOn(access, 'run'), vi.spyOn(output, 'run')];
  return () => spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0);
}

/** A service of its own with other limits, on the same database. */
function serviceWith(limits: Partial<StreamLimits>): StreamService {
  const { platform } = surface;
  const output = new OutputService(platform.pools.read, platform.config.outputLimitBytes);
  const metrics = new RunMetrics(new Registry());
  return new StreamService(platform, output, metrics, runDto, { ...STREAM_LIMITS, ...limits });
}

const callerNamed = (name: string): RequestCaller => ({
  organizationId: surface.organizationId,
  chain: encodeId('org', surface.organizationId),
  principal: { type: 'token', id: name, name },
  isInstallationAdmin: true,
});

/** A connection that takes what it is given only while it is let. */
class Connection extends Writable {
  readonly parts: Buffer[] = [];
  takes = true;
  private held: (() => void) | undefined;

  override _write(part: Buffer, _encoding: string, done: () => void): void {
    const take = () => {
      this.parts.push(part);
      done();
    };
    if (this.takes) take();
    else this.held = take;
  }

  goOn(): void {
    this.takes = true;
    this.held?.();
  }

  get text(): string {
    return Buffer.concat(this.parts).toString();
  }
}

describe('200 viewers of one run', () => {
  it('that open together cost what one costs, and each gets all of it', async () => {
    const { id, write, end } = await running();
    for (let i = 0; i < 40; i += 1) await write(Buffer.alloc(16 * 1024, 'x'));
    await end();
    const cost = async (viewers: number) => {
      const sent = statements();
      const clients = await Promise.all(Array.from({ length: viewers }, () => follow(id)));
      await Promise.all(clients.map(({ closed }) => closed));
      const count = sent();
      for (const client of clients) {
        expect(client.output()).toHaveLength(40 * 16 * 1024);
        expect(client.end.state).toBe('succeeded');
      }
      vi.restoreAllMocks();
      return count;
    };
    const one = await cost(1);
    // One may have come in while the first was looked up, and be looked up by itself.
    expect(await cost(200)).toBeLessThanOrEqual(one + 2);
  });

  it('share one poll while the run goes on, wherever they came in', async () => {
    const { id, write, end } = await running();
    const clients: StreamClient[] = [];
    for (let i = 0; i < 10; i += 1) {
      clients.push(...(await Promise.all(Array.from({ length: 20 }, () => follow(id)))));
      await write(`${i}\n`);
    }
    await until('all are caught up', () => clients.every((client) => client.of('output').length === 10));
    const sent = statements();
    const since = performance.now();
    for (let i = 10; i < 30; i += 1) {
      await write(`${i}\n`);
      await until('all have it', () => clients.every((client) => client.of('output').length === i + 1));
    }
    // Not more than a poll in 100 ms, which is a look at the run and one at its output.
    expect(sent()).toBeLessThanOrEqual(((performance.now() - since) / 100) * 2 + 4);
    await end();
    await Promise.all(clients.map(({ closed }) => closed));
    const all = Array.from({ length: 30 }, (_, i) => `${i}\n`).join('');
    for (const client of clients) expect(client.output().toString()).toBe(all);
  });
});

describe('a viewer that is slow', () => {
  it('F077 keeps one message in memory, and nobody else waits for it', async () => {
    const { runId, write, end } = await running();
    const streams = serviceWith({});
    const [slow, quick] = [new Connection(), new Connection()];
    slow.takes = false;
    const following = [slow, quick].map(async (out) =>
      (await streams.open(callerNamed('one'), runId, { from: 'beginning' }, undefined)).to(out),
    );
    let most = 0;
    for (let i = 0; i < 40; i += 1) {
      await write(Buffer.alloc(128 * 1024, String(i % 10)));
      most = Math.max(most, slow.writableLength);
    }
    await end();
    await following[1];
    expect(quick.text.match(/event: output/g)).toHaveLength(40);
    expect(quick.text).toMatch(/event: end\n.*\n\n$/s);
    expect(Math.max(most, slow.writableLength)).toBeLessThanOrEqual(128 * 1024);
    slow.goOn();
    await following[0];
    expect(slow.text).toBe(quick.text);
  });

  it('is cut off when it takes nothing for too long, and may go on later', async () => {
    const { id, runId, write, end } = await running();
    const streams = serviceWith({ stallMs: 100 });
    const out = new Connection();
    const following = (await streams.open(callerNamed('one'), runId, { from: 'beginning' }, undefined)).to(out);
    await write('first\n');
    await until('it was taken', () => out.text.includes('event: output'));
    out.takes = false;
    await write(Buffer.alloc(128 * 1024, 'x'));
    await following;
    expect(out.destroyed).toBe(true);
    await end();
    const lastId = [...out.text.matchAll(/id: (.*)/g)].at(-1)?.[1];
    const rest = await follow(id, lastId);
    await rest.closed;
    expect(rest.output()).toHaveLength(128 * 1024);
  });
});

it('F077 300 viewers that are gone with a reset leave no stream and no statement behind', async () => {
  const { id } = await running();
  const clients = await Promise.all(Array.from({ length: 300 }, () => follow(id)));
  expect(await openStreams()).toBe(300);
  for (const client of clients) client.reset();
  await until('no stream is open', async () => (await openStreams()) === 0);
  await until('nothing is in flight', () => surface.platform.pools.read.inFlight === 0);
  const sent = statements();
  // Longer than the longest pause between two polls.
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  expect(sent()).toBe(0);
});

describe('too many streams', () => {
  it('of one caller are refused with 429, others come in, and a place is free again once a stream is over', async () => {
    const { runId } = await running();
    const streams = serviceWith({ maxStreamsOfCaller: 2 });
    const outs = [new Connection(), new Connection()];
    const open = (who = 'one') => streams.open(callerNamed(who), runId, { from: 'beginning' }, undefined);
    const first = (await open()).to(outs[0]!);
    const second = (await open()).to(outs[1]!);
    await expect(open()).rejects.toMatchObject({ code: 'too_many_streams', status: 429, retryAfterSeconds: 5 });
    const other = new Connection();
    const third = (await open('two')).to(other);
    outs[0]!.destroy();
    await first;
    const fourth = new Connection();
    const last = (await open()).to(fourth);
    for (const out of [outs[1]!, other, fourth]) out.destroy();
    await Promise.all([second, third, last]);
  });

  it('in all are refused with 503; what was not found takes no place', async () => {
    const { runId } = await running();
    const streams = serviceWith({ maxStreams: 1 });
    const open = (id: string) => streams.open(callerNamed('one'), id, { from: 'beginning' }, undefined);
    for (let i = 0; i < 3; i += 1) await expect(open(newId())).rejects.toMatchObject({ code: 'not_found' });
    const out = new Connection();
    const following = (await open(runId)).to(out);
    await expect(open(runId)).rejects.toMatchObject({ code: 'unavailable', retryAfterSeconds: 5 });
    out.destroy();
    await following;
    const gone = new Connection();
    gone.destroy();
    await (await open(runId)).to(gone);
    await (await open(runId)).to(gone);
  });
});

it('a comment comes from time to time, and never in the middle of a message', async () => {
  const { runId, write, end } = await running();
  const streams = serviceWith({ heartbeatMs: 5 });
  const out = new Connection();
  const following = (await streams.open(callerNamed('one'), runId, { from: 'beginning' }, undefined)).to(out);
  await until('it beats', () => (out.text.match(/^: /gm)?.length ?? 0) > 2);
  out.takes = false;
  await write(Buffer.alloc(128 * 1024, 'x'));
  await until('a message is under way', () => out.writableLength > 60_000);
  await new Promise((resolve) => setTimeout(resolve, 50));
  out.goOn();
  await end();
  await following;
  const frames = out.text.split('\n\n').filter((frame) => frame.startsWith('event: output'));
  expect(frames).toHaveLength(1);
  expect(JSON.parse(frames[0]!.split('data: ')[1]!).data).toHaveLength(Math.ceil((128 * 1024) / 3) * 4);
});

it('a database that can’t answer keeps viewers waiting, and they miss nothing', { timeout: 40_000 }, async () => {
  const { id, write, end } = await running();
  const client = await follow(id);
  await write('before\n');
  await until('it is caught up', () => client.output().toString() === 'before\n');
  const session = await surface.session();
  const warned = vi.spyOn(surface.platform.log, 'warn');
  await session.query('begin; lock table run_events in access exclusive mode');
  await until('a look has failed', () => warned.mock.calls.some(([what]) => Object(what).code === 'stream_waits'));
  await session.query('commit');
  await write('after\n');
  await end();
  await client.closed;
  expect(client.output().toString()).toBe('before\nafter\n');
  expect(client.end.state).toBe('succeeded');
});

it('a replica that stops ends its streams in order, without an end, and they go on elsewhere', async () => {
  const other = await openLocalSurface();
  const { id, write } = await running(other);
  const clients = await Promise.all(Array.from({ length: 20 }, () => follow(id, undefined, other)));
  await write('one\n');
  await until('all have it', () => clients.every((client) => client.of('output').length === 1));
  const closing = other.app.close();
  await Promise.all(clients.map(({ closed }) => closed));
  for (const client of clients) {
    expect(client.answer.complete).toBe(true);
    expect(client.of('end')).toEqual([]);
  }
  await closing;
  await other.close();
});
