/**
 * 64 writers at three replicas that are killed again and again, and a database that restarts meanwhile: each chain stays
 * one unbroken line, every receipt that anybody was given holds, and nothing that was acknowledged lacks its entry.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { decodeId } from '../../src/kernel/ids.js';
import { readChain, recompute, type StoredChain } from '../audit/recompute.fixture.js';
import { until } from '../server.js';
import { prepareScenery, type Scenery, Writers } from './audit.fixture.js';
import { scaled } from './scale.js';
import { Stage } from './stage.fixture.js';

const NAMES = ['r1', 'r2', 'r3'];
const WRITERS = 64;
const LASTS_MS = scaled(25_000, 5 * 60_000);
const KILL_EVERY_MS = scaled(4_000, 30_000);
/** Of all receipts, so many are asked about over HTTP; the others are looked up in the rows. */
const ASKED = 100;

let stage: Stage;
let scenery: Scenery;
beforeAll(async () => {
  stage = await Stage.open([]);
  await Promise.all(NAMES.map((name) => stage.add(name, { env: { CAPSTAN_QUEUES: `default,${name}` } })));
  await stage.add('w1', { kind: 'worker', env: { CAPSTAN_QUEUES: 'w1' } });
  scenery = await prepareScenery(stage, NAMES);
});
afterAll(() => stage?.close());

const chainIds = async (): Promise<string[]> =>
  (await stage.db.query<{ id: string }>('select chain_id as id from audit_heads order by lock_key')).map(
    ({ id }) => id,
  );

/** What the rows say, read past every replica. */
function stored(chain: string): Promise<StoredChain> {
  const query = async (text: string, values: unknown[]) => ({ rows: await stage.db.query(text, values) });
  return readChain({ query } as never, chain);
}

it('S4-08 S4-103 a run that ends on a replica and one that ends on a process that only executes have one outcome each', async () => {
  const executors = ['r1', 'r2', 'w1'];
  const runs = await Promise.all(executors.map((queue) => stage.submit(['true'], { queue }, [stage.get('r3')])));
  await stage.untilEnded(60_000);
  const outcomes = await stage.db.query<{ run: string; by: string; payload: Record<string, unknown> }>(
    `select e.run_id::text as run, w.name as by, e.claim::jsonb -> 'payload' as payload
     from audit_entries e join runs r on r.id = e.run_id join workers w on w.id = r.worker_id
     where e.action = 'run.ended' order by w.name`,
  );
  expect(outcomes.map(({ run, by }) => [by, run])).toEqual(
    executors.map((name, i) => [name, decodeId('run', runs[i] ?? '')]),
  );
  for (const { by, payload } of outcomes) {
    expect(payload).toMatchObject({ state: 'succeeded', code: 'ok', principalName: by });
    expect(payload.principal, 'whoever executed it says how it ended').toBe(payload.worker);
  }
  expect(await stage.faults()).toEqual([]);
});

it('F136 S4-10 S4-56 S4x-01 S4x-02 under fire each chain stays one unbroken line that holds every receipt', async () => {
  const writers = Writers.start(stage, scenery, WRITERS);
  await fire();
  await writers.stop();
  await until('every replica is ready', isEveryoneReady, 60_000);
  await until('what somebody serves has ended', async () => (await liveRuns()) === 0, 60_000);

  const chains = new Map<string, StoredChain>();
  for (const id of await chainIds()) chains.set(id, await stored(id));
  for (const [id, chain] of chains) {
    expect(recompute(id, chain), `the second opinion on ${id}`).toBeUndefined();
    expect(chain.entries.map(({ seq }) => seq)).toEqual(chain.entries.map((_, i) => i + 1));
    const choice = id.startsWith('ins_') ? '?chain=installation' : '';
    const { body } = await stage.call(stage.get('r2'), 'GET', `/v1/audit/verify${choice}`);
    expect(body).toMatchObject({ ok: true, chain: id, entries: chain.entries.length });
  }
  await judge(writers, chains);
});

/** Kills one replica after another, and starts it again; the database restarts once, in the middle. */
async function fire(): Promise<void> {
  const endsAt = Date.now() + LASTS_MS;
  let hasRestarted = false;
  for (let kills = 0; Date.now() < endsAt; kills += 1) {
    await new Promise((resolve) => setTimeout(resolve, KILL_EVERY_MS));
    const name = NAMES[kills % NAMES.length] ?? '';
    await stage.kill(name);
    if (!hasRestarted && Date.now() > endsAt - LASTS_MS / 2) {
      hasRestarted = true;
      await stage.db.restart('fast');
    }
    await stage.add(name, { env: { CAPSTAN_QUEUES: `default,${name}` } });
  }
  expect(hasRestarted).toBe(true);
}

async function isEveryoneReady(): Promise<boolean> {
  const answers = await Promise.all(
    NAMES.map((name) =>
      fetch(`${stage.get(name).url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      ),
    ),
  );
  return answers.every(Boolean);
}

async function liveRuns(): Promise<number> {
  const [row] = await stage.db.query<{ n: number }>(
    `select count(*)::integer as n from live_runs where queue = 'default'`,
  );
  return row?.n ?? 0;
}

interface Told {
  readonly action: string;
  readonly object: string;
  readonly code?: string;
  readonly suppressed?: number;
}

/** What the writers were told, against what the chains hold. */
async function judge(writers: Writers, chains: ReadonlyMap<string, StoredChain>): Promise<void> {
  const entries = new Map<string, Told>();
  for (const [id, chain] of chains) {
    for (const { seq, link, claim } of chain.entries) {
      entries.set(`${id}:${seq}:${link}`, (JSON.parse(claim) as { payload: Told }).payload);
    }
  }
  const { acknowledged, receipts, unexpected, statuses } = writers;
  expect(unexpected).toEqual([]);
  expect(acknowledged.length, JSON.stringify(statuses)).toBeGreaterThan(1_000);
  expect(
    [...receipts].filter((receipt) => !entries.has(receipt)),
    'receipts of entries that are gone',
  ).toEqual([]);
  const unproven = acknowledged.filter(({ receipt, object, actions }) => {
    const entry = entries.get(receipt ?? '');
    return !entry || entry.object !== object || !actions.includes(entry.action);
  });
  expect(unproven, 'changes that were acknowledged and have no entry').toEqual([]);

  const told = [...entries.values()];
  const refused = told.filter(({ action }) => action === 'access.refused');
  expect(new Set(refused.map(({ code }) => code))).toEqual(new Set(['unauthorized', 'forbidden']));
  expect(await mismatches(told)).toEqual({ runs: 0, drains: 0 });
  expect(await stage.faults()).toEqual([]);
  const asked = [...receipts].filter((_, i) => i % Math.ceil(receipts.size / ASKED) === 0);
  for (const receipt of asked) {
    const { body } = await stage.call(stage.get('r1'), 'GET', `/v1/audit/receipts/${receipt}`);
    expect(body).toMatchObject({ receipt, holds: true });
  }
}

/** Changes without their entry, or entries without their change; also of those that nobody got an answer about. */
async function mismatches(told: readonly Told[]): Promise<{ runs: number; drains: number }> {
  const count = (action: string, object?: string) =>
    told.filter((entry) => entry.action === action && (object === undefined || entry.object === object)).length;
  const [row] = await stage.db.query<{ runs: number; drains: number }>(
    `select (select count(*)::integer from runs) as runs,
            (select drains from workers where id = $1) as drains`,
    [decodeId('wrk', scenery.worker)],
  );
  const moves = count('worker.draining', scenery.worker) + count('worker.undrained', scenery.worker);
  return { runs: (row?.runs ?? 0) - count('run.submitted'), drains: (row?.drains ?? 0) - moves };
}
