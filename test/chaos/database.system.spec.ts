/** One fault of the database after the other, under a steady load and under tools that must not notice any of them. */
import { writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../server.js';
import { Load } from './load.fixture.js';
import { scaled } from './scale.js';
import { Stage } from './stage.fixture.js';
import { Watch } from './watch.fixture.js';

/** The defaults, in place of the tests' quicker times: what is promised is promised for them. */
const DEFAULTS = { CAPSTAN_LEASE_TTL: '30s', CAPSTAN_LEASE_RENEW: '5s', CAPSTAN_KILL_GRACE: '10s' };
/** Promised are 3 s and 10 s; the watch looks every 100 ms, on a machine that is busy. */
const NOT_READY_WITHIN_MS = 4_000;
const READY_WITHIN_MS = 11_000;
/** A tool outlives this at the defaults; from the first moment in which the server takes nothing to the last. */
const PROMISED_MS = 10_000;
/** A server that was stopped answers so long after it was started again. */
const START_MS = 1_000;
/** Long enough to be noticed by everybody. */
const FAULT_MS = scaled(5_000, 10_000);

interface Fault {
  readonly name: string;
  readonly strike: (stage: Stage) => Promise<unknown>;
  /** The database is away for so long that every replica must say so. */
  readonly isSeen?: boolean;
}

const FAULTS: readonly Fault[] = [
  { name: 'F039 the server is restarted in order', strike: ({ db }) => db.restart('fast') },
  { name: 'F039 the server is restarted at once', strike: ({ db }) => db.restart('immediate') },
  { name: 'F039 a back end is killed', strike: ({ db }) => db.crash() },
  { name: 'F039 all sessions are ended', strike: ({ db }) => db.terminate() },
  { name: 'F034 the sessions that listen are ended', strike: ({ db }) => db.terminate('capstan listen') },
  { name: 'F042 all connections are reset', strike: reset },
  { name: 'F026 the server is away for as long as promised', isSeen: true, strike: outage },
  { name: 'F042 the server is demoted to a standby', isSeen: true, strike: demotion },
  { name: 'F042 the network is silent', isSeen: true, strike: silence },
  { name: 'F042 the network delivers everything late', isSeen: true, strike: lateness },
  { name: 'F042 connections are refused', isSeen: true, strike: refusal },
];

describe('the database fails, and comes back', () => {
  let stage: Stage;
  let watch: Watch;
  let load: Load;
  let patient: readonly string[] = [];

  beforeAll(async () => {
    stage = await Stage.open(['r1', 'r2', 'r3'], { env: DEFAULTS });
    watch = Watch.over(stage.all());
    patient = await Promise.all([1, 2, 3].map(() => stage.submit(patientTool(stage))));
    await stage.untilRunning(3);
    load = Load.start(stage, { perSecond: 5 });
  });
  afterAll(() => stage?.close());

  for (const { name, strike, isSeen } of FAULTS) {
    it(`${name}: every process lives on${isSeen ? ', says that it is not ready' : ''} and is ready again by itself`, async () => {
      const beganAtMs = Date.now();
      await strike(stage);
      const overAtMs = Date.now();
      const acknowledged = load.acknowledged.size;
      await until('runs are taken again', () => load.acknowledged.size > acknowledged, 30_000);
      await until('everybody is ready', () => watch.allReady(), 30_000);
      // What is promised is promised for one outage, not for the next on top of it.
      await until('every lease has been renewed', () => leasesHold(stage), 15_000);
      for (const { notReadyAfterMs, readyAfterMs } of watch.timesOf(beganAtMs, overAtMs)) {
        if (isSeen) expect(notReadyAfterMs).toBeLessThan(NOT_READY_WITHIN_MS);
        expect(readyAfterMs ?? 0).toBeLessThan(READY_WITHIN_MS);
      }
      expect(watch.faults()).toEqual([]);
      expect(load.unexpected).toEqual([]);
    });
  }

  it('F026 F042 the tools never noticed: one start, all output in its order; each acknowledged submit has its run', async () => {
    await load.stop();
    await writeFile(enough(stage), '');
    const ended = await stage.untilEnded(60_000);
    const notSucceeded = ended.filter(({ state }) => state !== 'succeeded');
    expect(notSucceeded).toEqual([]);
    for (const id of patient) expect(gapsIn(await stage.outputOf(id))).toEqual([]);
    expect(await load.faults()).toEqual([]);
    expect(await stage.faults()).toEqual([]);
    const lives = await stage.db.query('select state from workers');
    expect(lives).toEqual(Array(3).fill({ state: 'live' }));
    await watch.stop();
    expect(watch.faults()).toEqual([]);
  });
});

/** Counts until it is told that it is enough. */
function patientTool(stage: Stage): string[] {
  const script = 'i=0; while [ ! -e "$0" ]; do echo $((i++)); sleep 0.2; done; echo done';
  return ['bash', '-c', script, enough(stage)];
}

/** The file whose appearance ends the patient tools. */
function enough({ db }: Stage): string {
  return `${db.scratch}/enough`;
}

/** What is missing in, or strange about, the words of a patient tool. */
function gapsIn(output: string): string[] {
  const lines = output.trimEnd().split('\n');
  const counted = lines.slice(0, -1).filter((line, i) => line !== String(i));
  return [...counted, ...(lines.at(-1) === 'done' ? [] : ['no end'])];
}

/** All have been renewed within the last renewal interval and a little. */
async function leasesHold({ db }: Stage): Promise<boolean> {
  const late = await db.query(
    `select from workers where ended_at is null and lease_until < clock_timestamp() + interval '24 s'`,
  );
  return late.length === 0;
}

async function outage({ db }: Stage): Promise<void> {
  const backAt = Date.now() + PROMISED_MS - START_MS;
  await db.stop();
  await wait(backAt - Date.now());
  await db.start();
}

async function demotion({ db }: Stage): Promise<void> {
  const { back } = await db.switchToStandby();
  await wait(FAULT_MS / 2);
  await back();
}

async function reset(stage: Stage): Promise<void> {
  for (const { proxy } of stage.all()) proxy.reset();
}

/** What was sent meanwhile is carried out, long after nobody waits for it any more. */
async function lateness(stage: Stage): Promise<void> {
  for (const { proxy } of stage.all()) proxy.goSilent();
  await wait(FAULT_MS);
  for (const { proxy } of stage.all()) proxy.letGo();
}

async function silence(stage: Stage): Promise<void> {
  for (const { proxy } of stage.all()) proxy.goSilent();
  await wait(FAULT_MS);
  for (const { proxy } of stage.all()) proxy.speak();
}

async function refusal(stage: Stage): Promise<void> {
  for (const { proxy } of stage.all()) proxy.refuse();
  for (const { proxy } of stage.all()) proxy.reset();
  await wait(FAULT_MS);
  for (const { proxy } of stage.all()) await proxy.comeUp();
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
