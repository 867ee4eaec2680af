/** A main thread that stands still for good, in a process of its own: the tools get their deadline, then it is killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { decodeExtension, type Extension, KEEPER_FRAME_BYTES } from '../../../src/execution/supervisor/keeper-frame.js';
import { compiledSource } from '../../compiled.js';
import { createDatabase, type TestDatabase } from '../../database.js';
import { NORMAL, until, Workers } from './keeper.fixture.js';

/** Runs a keeper whose far end is the test. Told how on standard input, it stands still for good. */
const PROCESS = (client: string, options: object, life: object) => `
  import { writeSync } from 'node:fs';
  import { startKeeper } from ${JSON.stringify(client)};
  const log = { info() {}, warn() {}, error() {} };
  const keeper = startKeeper({ ...${JSON.stringify(options)}, log });
  keeper.begin(${JSON.stringify(life)});
  process.stdin.on('data', (how) => {
    for (;;) if (String(how) === 'write') writeSync(2, 'x'.repeat(65536));
  });`;

const LIMITS = { ...NORMAL, tickMs: 100, stallLimitMs: 600, toolDeadlineMs: 1_200, graceMs: 300 };

let database: TestDatabase;
let workers: Workers;
let running: Stalling[] = [];

class Stalling {
  readonly frames: Extension[] = [];
  readonly exit: Promise<{ signal: string | null; at: bigint }>;
  stderr = '';

  private constructor(readonly child: ChildProcess) {
    this.exit = once(child, 'exit').then(([, signal]) => ({ signal, at: process.hrtime.bigint() }));
    child.stderr?.on('data', (text) => {
      this.stderr += text;
    });
    (child.stdio[3] as Readable).on('data', (bytes: Buffer) => {
      for (let at = 0; at < bytes.length; at += KEEPER_FRAME_BYTES) this.frames.push(decodeExtension(bytes, at));
    });
  }

  static async start(incarnation: string, limits: Partial<typeof LIMITS> = {}): Promise<Stalling> {
    const client = join(await compiledSource(), 'execution/keeper/keeper.client.js');
    const options = { databaseUrl: database.url, ...LIMITS, ...limits };
    const source = PROCESS(client, options, { incarnation, pipeFd: 3, supervisorPid: process.pid });
    const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
      stdio: ['pipe', 'ignore', 'pipe', 'pipe'],
    });
    const started = new Stalling(child);
    running.push(started);
    return started;
  }

  stall(how: 'compute' | 'write'): void {
    this.child.stdin?.write(how);
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  get lastSentAtNs(): bigint {
    return this.frames.at(-1)?.sentAtNs ?? 0n;
  }

  get isAlive(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }
}

beforeAll(async () => {
  database = await createDatabase();
  workers = await Workers.open(await database.session());
});
afterEach(async () => {
  for (const process of running) process.kill('SIGKILL');
  await Promise.all(running.map(({ exit }) => exit));
  running = [];
});
afterAll(() => database.drop());

describe('a main thread that stands still', () => {
  it('beyond the limit: no lease, no extension, and death once the deadline has stopped the tools', async () => {
    const incarnation = await workers.insert();
    const process = await Stalling.start(incarnation);
    await until('frames', () => process.frames.length >= 3);
    process.stall('compute');
    const { signal, at } = await process.exit;
    expect(signal).toBe('SIGKILL');
    const aliveMs = Number(at - process.lastSentAtNs) / 1e6;
    expect(aliveMs).toBeGreaterThan(LIMITS.toolDeadlineMs + LIMITS.graceMs);
    expect(aliveMs).toBeLessThan(LIMITS.toolDeadlineMs + LIMITS.graceMs + 1_500);
    // The keeper gave the lease up when it found the stall, well before the process was dead.
    expect(await workers.sinceRenewalMs(incarnation)).toBeGreaterThan(LIMITS.toolDeadlineMs);
    const lines = process.stderr.trim().split('\n');
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ level: 'fatal', code: 'main_thread_stalled' });
  });

  it('a renewal that was under way when it was found extends nothing, for the tools are being stopped', async () => {
    const incarnation = await workers.insert();
    const process = await Stalling.start(incarnation, { toolDeadlineMs: 2_500 });
    await until('a frame', () => process.frames.length > 0);
    const locker = await database.session();
    await locker.query('begin');
    await locker.query('select 1 from workers where id = $1 for update', [incarnation]);
    await until('a renewal waits for the row', () => workers.isWaitingForLock());
    const [frames, renewed] = [process.frames.length, await workers.renewalsOf(incarnation)];
    process.stall('compute');
    const stalledAt = performance.now();
    await until('the stall was found', () => performance.now() - stalledAt > LIMITS.stallLimitMs + 3 * LIMITS.tickMs);
    await locker.query('commit');
    await until('the renewal succeeds', async () => (await workers.renewalsOf(incarnation)) === renewed + 1);
    const { at } = await process.exit;
    expect(process.frames).toHaveLength(frames);
    expect(Number(at - process.lastSentAtNs) / 1e6).toBeGreaterThan(2_500 + LIMITS.graceMs);
  });

  it('because nobody reads its standard error, which is full, is killed all the same', async () => {
    const process = await Stalling.start(await workers.insert());
    await until('frames', () => process.frames.length >= 1);
    process.child.stderr?.pause();
    process.stall('write');
    expect((await process.exit).signal).toBe('SIGKILL');
  });

  it('because the whole process was stopped, beyond every limit, goes on as if nothing had been', async () => {
    const incarnation = await workers.insert();
    const process = await Stalling.start(incarnation);
    await until('frames', () => process.frames.length >= 1);
    process.kill('SIGSTOP');
    const stoppedAt = performance.now();
    await until('three times the stall limit', () => performance.now() - stoppedAt > 3 * LIMITS.stallLimitMs);
    const frames = process.frames.length;
    process.kill('SIGCONT');
    // Longer than the limit again, so that a stall that had been counted would show.
    await until('renewals after that', () => process.frames.length >= frames + 5);
    expect(process.isAlive).toBe(true);
    expect(process.stderr).toBe('');
  });
});
