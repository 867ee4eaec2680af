/** The keeper with a real supervisor: what the main thread learns of its silence, and of the keeper's own end. */
import { cp, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { KeeperClient } from '../../../src/execution/keeper/keeper.client.js';
import { SILENT_TICKS } from '../../../src/execution/keeper/keeper.rules.js';
import { type Supervisor, startSupervisor } from '../../../src/execution/supervisor/supervisor.client.js';
import { compiledSource } from '../../compiled.js';
import { createDatabase, type TestDatabase } from '../../database.js';
import { compiledKeeper, NORMAL, Recorder, type StartKeeper, until, Workers } from './keeper.fixture.js';

const TICK_MS = 50;

let database: TestDatabase;
let workers: Workers;
let supervisor: Supervisor;
let keeper: KeeperClient;
let seen: Recorder;
let incarnation: string;

beforeAll(async () => {
  database = await createDatabase();
  workers = await Workers.open(await database.session());
});
afterAll(() => database.drop());
beforeEach(async () => {
  seen = new Recorder();
  incarnation = await workers.insert();
  const entry = pathToFileURL(join(await compiledSource(), 'execution/supervisor/supervisor.main.js'));
  supervisor = await startSupervisor({ incarnation, graceMs: 1_000, deadlineMs: 15_000, entry });
});
afterEach(async () => {
  await keeper.close();
  supervisor.destroy();
  await supervisor.gone;
  supervisor.closeKeeperFd();
});

async function begin(startKeeper?: StartKeeper): Promise<void> {
  const start = startKeeper ?? (await compiledKeeper());
  keeper = start({ databaseUrl: database.url, ...NORMAL, tickMs: TICK_MS, log: seen.log });
  seen.watch(keeper);
  supervisor.onAck((seq) => keeper.acknowledge(incarnation, seq));
  keeper.begin(life());
}

const life = () => ({ incarnation, pipeFd: supervisor.keeperFd, supervisorPid: supervisor.pid ?? 0 });
const stopSupervisor = () => process.kill(supervisor.pid ?? 0, 'SIGSTOP');

async function moreRenewals(): Promise<void> {
  const { renewals } = keeper.stats;
  await until('three more renewals', () => keeper.stats.renewals >= renewals + 3);
}

describe('a supervisor', () => {
  it('that is stopped is silent after ten ticks, which is told once', async () => {
    await begin();
    await until('an acknowledgement', () => keeper.stats.acknowledgedSeq > 0);
    stopSupervisor();
    const stoppedAt = performance.now();
    await until('the event', () => seen.of('supervisorSilent').length > 0);
    expect(performance.now() - stoppedAt).toBeGreaterThan((SILENT_TICKS - 1) * TICK_MS);
    expect(seen.of('supervisorSilent')).toEqual([
      { type: 'supervisorSilent', incarnation, supervisorPid: supervisor.pid },
    ]);
    await moreRenewals();
    expect(seen.of('supervisorSilent')).toHaveLength(1);
  });

  it('that acknowledges is not silent, also not to a main thread that stood still for longer than ten ticks', async () => {
    await begin();
    await until('an acknowledgement', () => keeper.stats.acknowledgedSeq > 0);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * SILENT_TICKS * TICK_MS);
    expect(keeper.stats.extensionSeq).toBeGreaterThan(keeper.stats.acknowledgedSeq);
    await until('it caught up', () => keeper.stats.acknowledgedSeq >= keeper.stats.extensionSeq);
    await moreRenewals();
    expect(seen.of('supervisorSilent')).toEqual([]);
  });

  it('is not excused by acknowledgements of another life', async () => {
    stopSupervisor();
    await begin();
    keeper.acknowledge('another', 1_000);
    await until('the event', () => seen.of('supervisorSilent').length > 0);
    expect(keeper.stats.acknowledgedSeq).toBe(0);
  });
});

describe('the keeper itself', () => {
  it('that dies is reported once, and the pipe is left alone from then on', async () => {
    // The product's own files, but for a thread that ends in an error.
    const folder = await mkdtemp(join(tmpdir(), 'keeper-'));
    const dist = await compiledSource();
    await cp(join(dist, 'execution'), join(folder, 'execution'), { recursive: true });
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
    await symlink(join(dirname(dist), '../../..'), join(folder, 'node_modules'));
    await writeFile(join(folder, 'execution/keeper/keeper.thread.js'), `throw new Error('out of luck');`);
    const client = (await import(join(folder, 'execution/keeper/keeper.client.js'))) as { startKeeper: StartKeeper };
    await begin(client.startKeeper);
    await until('the event', () => seen.of('failed').length > 0);
    expect(seen.of('failed')[0]?.error.message).toBe('out of luck');
    keeper.end();
    keeper.begin(life());
    await keeper.close();
    expect(seen.codes).toEqual(['lease_keeper_failed']);
    await rm(folder, { recursive: true });
  });
});
