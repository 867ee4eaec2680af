/**
 * Every statement against every state of a run and every set of guards: what the database does is what `decide()`
 * says, and where it refuses nothing at all is written.
 */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../src/kernel/ids.js';
import { RUN_STATES } from '../../src/kernel/run-words.js';
import { cancelIfLive } from '../../src/runs/cancel.sql.js';
import { claimIfLive, releaseIfHeld, startIfHeld } from '../../src/runs/claim.sql.js';
import { finishIfHeld } from '../../src/runs/finish.sql.js';
import { type Outcome } from '../../src/runs/run.js';
import { decide, type RunCommand, type RunGuard, type RunStanding } from '../../src/runs/run.machine.js';
import { settleIfOrphaned } from '../../src/runs/settle.sql.js';
import { submitIfNew } from '../../src/runs/submit.sql.js';
import { Ground, type Look } from './ground.fixture.js';

let ground: Ground;
beforeAll(async () => {
  ground = await Ground.open();
});
afterAll(() => ground.close());

const STANDINGS: readonly RunStanding[] = ['absent', ...RUN_STATES];
const LIVES = ['live', 'expired', 'draining', 'lost', 'stopped'] as const;
const HOLDS = ['current', 'old fence', 'another holder'] as const;

interface Situation {
  readonly life: (typeof LIVES)[number];
  readonly hold: (typeof HOLDS)[number];
  readonly flagged: boolean;
  readonly place: 'claimable' | 'not due' | 'another queue';
  readonly sameRequest: boolean;
}
const PLAIN: Situation = {
  life: 'live',
  hold: 'current',
  flagged: false,
  place: 'claimable',
  sameRequest: true,
};

interface Target {
  readonly runId: string;
  readonly worker: string;
  readonly fence: number;
  readonly queue: string;
}

interface Case {
  readonly name: string;
  /** Which commands of the table this statement carries out. */
  readonly commands: readonly RunCommand[];
  readonly vary: readonly (keyof Situation)[];
  readonly run: (target: Target, situation: Situation) => Promise<unknown[]>;
  /** The states it may end in, when the table leaves a choice. */
  readonly ends?: string;
}

function finish(name: string, commands: readonly RunCommand[], over: Partial<Outcome>): Case {
  return {
    name,
    commands,
    vary: ['life', 'hold', 'flagged'],
    run: ({ runId, worker, fence }) => finishIfHeld(ground.pool, worker, [ground.finish(runId, over, fence)]),
    ends: over.state,
  };
}

const CASES: readonly Case[] = [
  {
    name: 'submitIfNew',
    commands: ['submit'],
    vary: ['sameRequest'],
    run: ({ runId }, { sameRequest }) =>
      submitIfNew(ground.pool, [ground.newRun({ id: runId, ...(sameRequest ? {} : { specDigest: 'sha256:other' }) })]),
  },
  {
    name: 'claimIfLive',
    commands: ['claim'],
    vary: ['life', 'place'],
    run: ({ worker, queue }) => claimIfLive(ground.pool, worker, [queue], 10),
  },
  {
    name: 'startIfHeld',
    commands: ['start'],
    vary: ['life', 'hold', 'flagged'],
    run: ({ runId, worker, fence }) => startIfHeld(ground.pool, worker, [{ runId, fence }]),
  },
  {
    name: 'releaseIfHeld',
    commands: ['release'],
    vary: ['life', 'hold', 'flagged'],
    run: ({ runId, worker, fence }) => releaseIfHeld(ground.pool, worker, [ground.release(runId, worker, fence)]),
  },
  finish('finishIfHeld succeeded', ['tool_ended'], { state: 'succeeded', exitCode: 0 }),
  finish('finishIfHeld failed', ['tool_ended', 'refuse'], { state: 'failed', code: 'tool_failed', exitCode: 7 }),
  finish('finishIfHeld timed_out', ['tool_ended'], { state: 'timed_out', code: 'timeout', signal: 'SIGTERM' }),
  finish('finishIfHeld interrupted', ['tool_stopped', 'unknown_to_holder', 'drain_over'], {
    state: 'interrupted',
    code: 'worker_lost',
  }),
  finish('finishIfHeld canceled', ['cancel_done'], { state: 'canceled', code: 'canceled', kind: 'requested' }),
  {
    name: 'settleIfOrphaned',
    commands: ['settle'],
    vary: ['life', 'hold', 'flagged'],
    run: ({ runId, worker }) => settleIfOrphaned(ground.pool, [ground.settle(runId, worker)]),
  },
  {
    name: 'cancelIfLive',
    commands: ['cancel'],
    vary: ['flagged'],
    run: ({ runId }) => cancelIfLive(ground.pool, [ground.cancel(runId)]),
  },
];

function situations(vary: readonly (keyof Situation)[], standing: RunStanding): Situation[] {
  const held = standing === 'claimed' || standing === 'running';
  const values: { [K in keyof Situation]: readonly Situation[K][] } = {
    life: LIVES,
    hold: HOLDS,
    flagged: held ? [false, true] : [false],
    place: ['claimable', 'not due', 'another queue'],
    sameRequest: [true, false],
  };
  return vary.reduce<Situation[]>(
    (all, name) => all.flatMap((situation) => values[name].map((value) => ({ ...situation, [name]: value }))),
    [PLAIN],
  );
}

function holds(situation: Situation, guard: RunGuard): boolean {
  const { life, hold, flagged, place, sameRequest } = situation;
  const truth: Record<RunGuard, boolean> = {
    held: hold === 'current',
    worker_live: life === 'live',
    worker_alive: life === 'live' || life === 'draining',
    holder_gone: (life === 'lost' || life === 'stopped') && hold !== 'another holder',
    claimable: place === 'claimable',
    same_request: sameRequest,
    cancel_requested: flagged,
    no_cancel: !flagged,
  };
  return truth[guard];
}

async function put(standing: RunStanding, situation: Situation): Promise<Target> {
  const { life, hold, flagged, place } = situation;
  // Of two things that could keep it out only one is so: a life that drains or is over has a lease that still holds.
  const worker = await ground.worker({
    state: life === 'expired' ? 'live' : life,
    leaseMs: life === 'expired' ? -1_000 : 60_000,
  });
  const holder = hold === 'another holder' ? await ground.worker() : worker;
  const queue = `q-${newId()}`;
  const dated = standing === 'pending' || standing === 'held';
  const runId = await ground.runIn(standing, {
    holder,
    fence: 3,
    flagged,
    queue: place === 'another queue' ? 'elsewhere' : queue,
    ...(place === 'not due' && dated ? { notBefore: new Date(Date.now() + 3_600_000) } : {}),
  });
  return { runId, worker, fence: hold === 'old fence' ? 2 : 3, queue };
}

function describeChange(before: Look, after: Look): Record<string, unknown> {
  return {
    standing: after.standing,
    events: after.events.slice(before.events.length).map((event) => event.type),
    entries: after.entries.slice(before.entries.length),
  };
}

async function check(one: Case, standing: RunStanding, situation: Situation): Promise<void> {
  const target = await put(standing, situation);
  const before = await ground.look(target.runId);
  const answer = await one.run(target, situation);
  const after = await ground.look(target.runId);
  const decisions = one.commands.map((command) => decide(standing, command, (guard) => holds(situation, guard)));
  const applied = decisions.find((decision) => decision.outcome === 'apply');
  const label = `${one.name} on ${standing}, ${one.vary.map((name) => `${name}: ${situation[name]}`).join(', ')}`;
  if (!applied) {
    expect(after, `${label}: it must write nothing`).toEqual(before);
    expect(answer, `${label}: it must answer with nothing`).toEqual([]);
    return;
  }
  const { to, event, audited } = applied.transition;
  if (to === 'unchanged' && event === null) {
    expect(after, `${label}: it must leave everything as it is`).toEqual(before);
    return;
  }
  const states: readonly string[] = to === 'unchanged' ? [standing] : to;
  expect(describeChange(before, after), label).toEqual({
    standing: one.ends ?? states[0],
    events: event === null ? [] : [event],
    entries: audited ? [event] : [],
  });
  expect(states, label).toContain(after.standing);
  expect(answer, label).toHaveLength(1);
}

describe.each(CASES)('$name does exactly what the table says', (one) => {
  it.each(STANDINGS)('S4-18 S4-48 S4-62 to a run that is %s', async (standing) => {
    for (const situation of situations(one.vary, standing)) await check(one, standing, situation);
  });
});

describe('what a transition writes', () => {
  it('S4-13 a claim raises the fence by one and names the holder; a requeue keeps the fence and clears the holder', async () => {
    const worker = await ground.worker();
    const [run] = await ground.submit({ queue: 'fences' });
    const id = run?.id ?? '';
    for (const fence of [1, 2]) {
      expect(await claimIfLive(ground.pool, worker, ['fences'], 1)).toMatchObject([{ runId: id, fence }]);
      expect((await ground.look(id)).live).toMatchObject({ holder: worker, fence, state: 'claimed' });
      await releaseIfHeld(ground.pool, worker, [ground.release(id, worker, fence)]);
      expect((await ground.look(id)).live).toMatchObject({ holder: null, fence, state: 'pending', claimed_at: null });
    }
  });

  it('S4-14 an end carries holder, fence and times into the record and leaves no live row', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('running', { holder: worker });
    await finishIfHeld(ground.pool, worker, [ground.finish(id, { state: 'failed', code: 'tool_failed', exitCode: 7 })]);
    const { run, live } = await ground.look(id);
    expect(live).toBeNull();
    expect(run).toMatchObject({ state: 'failed', end_code: 'tool_failed', exit_code: 7, fence: 3, worker_id: worker });
    expect(run?.started_at).not.toBeNull();
    expect(run?.claimed_at).not.toBeNull();
  });

  it('every instant of a run is cut to milliseconds, the claim too', async () => {
    const worker = await ground.worker();
    const queue = 'q-instants';
    for (let i = 0; i < 5; i += 1) await ground.submit({ queue });
    await claimIfLive(ground.pool, worker, [queue], 5);
    const { rows } = await ground.sql.query(
      `select count(*)::integer as n from live_runs
       where queue = $1 and claimed_at = date_trunc('milliseconds', claimed_at) and created_at = date_trunc('milliseconds', created_at)`,
      [queue],
    );
    expect(rows[0].n).toBe(5);
  });

  it('the words of an end are kept up to 2,000 characters, in the record and in the event', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('running', { holder: worker });
    const detail = 'é'.repeat(5_000);
    await finishIfHeld(ground.pool, worker, [ground.finish(id, { state: 'failed', code: 'internal', detail })]);
    const { run, events } = await ground.look(id);
    expect(run?.end_detail).toBe(detail.slice(0, 2_000));
    expect(events.at(-1)?.data.detail).toBe(detail.slice(0, 2_000));
  });

  it('S4-14 what a lost worker was running ends interrupted, with the code that says why', async () => {
    const worker = await ground.worker({ state: 'lost', leaseMs: -1 });
    const id = await ground.runIn('running', { holder: worker });
    expect(await settleIfOrphaned(ground.pool, [ground.settle(id, worker)])).toEqual([
      {
        runId: id,
        result: 'interrupted',
        ended: {
          state: 'interrupted',
          code: 'worker_lost',
          kind: 'noop',
          queue: 'default',
          ranSeconds: expect.any(Number),
        },
      },
    ]);
    expect((await ground.look(id)).run).toMatchObject({
      state: 'interrupted',
      end_code: 'worker_lost',
      worker_id: worker,
    });
  });

  it('S4-09 what another lost life holds by now is left to the next look, so that the entry names the right one', async () => {
    const first = await ground.worker({ state: 'lost', leaseMs: -1 });
    const second = await ground.worker({ state: 'lost', leaseMs: -1 });
    const id = await ground.runIn('running', { holder: second });
    const before = await ground.look(id);
    expect(await settleIfOrphaned(ground.pool, [ground.settle(id, first)])).toEqual([]);
    expect(await ground.look(id)).toEqual(before);
    expect(await settleIfOrphaned(ground.pool, [ground.settle(id, second)])).toHaveLength(1);
  });

  it('S4-96 a cancel keeps its kind through to the end, whoever writes the end', async () => {
    const lost = await ground.worker({ state: 'lost', leaseMs: -1 });
    const id = await ground.runIn('claimed', { holder: lost });
    await cancelIfLive(ground.pool, [ground.cancel(id, { kind: 'overrun', detail: 'too long' })]);
    expect(await settleIfOrphaned(ground.pool, [ground.settle(id, lost)])).toMatchObject([
      { runId: id, result: 'canceled' },
    ]);
    expect((await ground.look(id)).run).toMatchObject({
      state: 'canceled',
      end_kind: 'overrun',
      end_detail: 'too long',
    });
  });

  it('a run of another organization can not be canceled', async () => {
    const id = await ground.runIn('pending');
    expect(await cancelIfLive(ground.pool, [ground.cancel(id, { organizationId: newId() })])).toEqual([]);
    expect((await ground.look(id)).standing).toBe('pending');
  });
});

describe('a batch that names a run twice writes one change and one entry', () => {
  it.each([
    [
      'finish',
      'running',
      (id: string, w: string) => finishIfHeld(ground.pool, w, [ground.finish(id), ground.finish(id)]),
    ],
    [
      'release with a cancel',
      'claimed',
      (id: string, w: string) => releaseIfHeld(ground.pool, w, [ground.release(id, w), ground.release(id, w)]),
    ],
    ['cancel', 'running', (id: string) => cancelIfLive(ground.pool, [ground.cancel(id), ground.cancel(id)])],
    ['cancel', 'pending', (id: string) => cancelIfLive(ground.pool, [ground.cancel(id), ground.cancel(id)])],
    [
      'settle',
      'running',
      (id: string, w: string) => settleIfOrphaned(ground.pool, [ground.settle(id, w), ground.settle(id, w)]),
    ],
    [
      'settle',
      'claimed',
      (id: string, w: string) => settleIfOrphaned(ground.pool, [ground.settle(id, w), ground.settle(id, w)]),
    ],
  ] as const)('S4-08 %s of a %s run', async (what, standing, act) => {
    const worker = await ground.worker(what === 'settle' ? { state: 'lost', leaseMs: -1 } : {});
    const id = await ground.runIn(standing, { holder: worker, flagged: what.endsWith('a cancel') });
    expect(await act(id, worker)).toHaveLength(1);
    const { events, entries } = await ground.look(id);
    expect(events).toHaveLength(1);
    expect(entries).toHaveLength(1);
  });
});
