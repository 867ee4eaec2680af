/**
 * A replica that is lost in any way stops its own tools before anybody reads that their runs have ended, and whatever it
 * wants to write when it comes back changes nothing. All faults happen at once, to real processes, in one scene a round.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../server.js';
import { CLEAN } from './effects.fixture.js';
import {
  type Facts,
  LOST,
  MEMBERS,
  type Name,
  openScene,
  playRound,
  type Round,
  type Story,
} from './fencing.fixture.js';
import { isFull, scaled } from './scale.js';
import type { Stage } from './stage.fixture.js';

const ROUNDS = scaled(1, 10);
/** The supervisor looks at the clock every 250 ms; the rest is for a busy machine. */
const ONE_TICK_MS = 3_000;

let stage: Stage;
const rounds: Round[] = [];

beforeAll(async () => {
  stage = await openScene();
  for (let i = 0; i < ROUNDS; i += 1) rounds.push(await playRound(stage));
  if (isFull) process.stdout.write(figures());
}, ROUNDS * 300_000);

afterAll(() => stage.close());

const stories = (name: Name): Story[] =>
  rounds.map((round) => {
    const story = round.stories.get(name);
    if (!story) throw new Error(`${name} has no story`);
    return story;
  });

const of = (ids: readonly string[], facts: readonly Facts[]): Facts[] => facts.filter(({ id }) => ids.includes(id));

/** How an end reads that nothing may change any more. */
const lasting = (facts: readonly Facts[]) => facts.map(({ id, ...rest }) => [id, rest]);

describe.each([
  ['killed', 'worker_lost', 'S4-11'],
  ['stalled', 'worker_lost', 'F001 S4-18'],
  ['half-open', 'worker_lost', 'F009 F029 S0-29'],
  ['refused', 'worker_lost', 'F009 S0-29'],
  ['supervisor-stopped', 'supervisor_lost', 'S4-26'],
] as const)('%s', (name, code, rows) => {
  it(`${rows} the tools stop before their runs read interrupted, each having been started once`, async () => {
    for (const story of stories(name)) {
      const ends = of(story.lost, story.endsBefore);
      expect(ends).toHaveLength(story.lost.length);
      expect(ends.filter((end) => end.state !== 'interrupted' || end.code !== code || end.fence !== 1)).toEqual([]);
      expect(await stage.effects.judge(ends)).toEqual(CLEAN);
    }
  });

  it(`${rows} nothing of the old life changes what was settled, and the process begins another life and works`, () => {
    for (const { endsBefore, endsAfter, oldLife, fresh } of stories(name)) {
      expect(lasting(endsAfter)).toEqual(lasting(endsBefore));
      expect(oldLife.state).toBe(name === 'supervisor-stopped' ? 'stopped' : 'lost');
      expect(fresh).toMatchObject({ state: 'succeeded', worker: name, fence: 1 });
      expect(fresh.workerId).not.toBe(oldLife.id);
    }
  });
});

it.each(['stalled', 'half-open', 'refused', 'frozen'] as const)(
  'S4-18 F001 what the old life of a replica that was %s still wanted to write is refused and logged, run by run',
  async (name) => {
    for (const { lost, held, log } of stories(name)) {
      const unnamed = (runs: readonly string[], codes: readonly string[]) => {
        const named = new Set(log().flatMap(({ code, run }) => (codes.includes(String(code)) ? [run] : [])));
        return runs.filter((id) => !named.has(id));
      };
      const silent = () => [
        ...unnamed(lost, ['run_end_refused', 'run_end_withheld', 'run_end_not_written']),
        ...unnamed(held, ['run_start_refused', 'run_end_not_written']),
      ];
      // A statement that went into a dead connection is given up after some seconds.
      await until('all is logged', () => silent().length === 0).catch(() => undefined);
      expect(silent()).toEqual([]);
      expect(log().map(({ code }) => code)).toContain('lease_over');
    }
  },
);

it('F001 F009 a renewal, and whatever else went into a dead connection, arrives when the runs were settled, and changes nothing', () => {
  for (const { heardLate } of rounds) {
    // A renewal is sent each 2 s; of starts, output and reports, whatever was to be sent in that instant.
    expect(heardLate).toContain('capstan keeper: workers update');
    if (isFull) process.stdout.write(`heard late: ${heardLate.join(', ')}\n`);
  }
});

it.each(LOST)(
  'S4-13 S4-62 runs that a replica had claimed and not started when it was %s run once, elsewhere',
  async (name) => {
    for (const { held, endsAfter } of stories(name)) {
      const ends = of(held, endsAfter);
      expect(ends).toHaveLength(held.length);
      expect(ends.filter((end) => end.state !== 'succeeded' || end.fence !== 2 || end.worker !== 'relief')).toEqual([]);
      expect(await stage.effects.judge(ends)).toEqual(CLEAN);
    }
  },
);

it('a replica and its supervisor that are stopped together get nothing in, and their tools stop with the first tick', () => {
  rounds.forEach(({ traces }, i) => {
    const story = stories('frozen')[i];
    const ends = of(story?.lost ?? [], story?.endsBefore ?? []);
    expect(ends.filter((end) => end.state !== 'interrupted' || end.code !== 'worker_lost' || end.fence !== 1)).toEqual(
      [],
    );
    expect(lasting(story?.endsAfter ?? [])).toEqual(lasting(story?.endsBefore ?? []));
    expect(story?.oldLife.state).toBe('lost');
    expect(story?.fresh).toMatchObject({ state: 'succeeded', worker: 'frozen' });
    for (const { id, endedAtMs } of ends) {
      const trace = traces.get(id);
      expect(trace?.pids.size).toBe(1);
      // The limit itself: nobody is left who could stop them.
      expect(trace?.lastAtMs).toBeGreaterThan(endedAtMs);
      expect((trace?.lastAtMs ?? 0) - (story?.healedAtMs ?? 0)).toBeLessThan(ONE_TICK_MS);
    }
  });
});

it('S4-41 F002 a main thread that stands still loses no lease: renewals go on, and all its runs succeed', async () => {
  for (const { lost, endsAfter, oldLife, fresh } of stories('blocked')) {
    expect(endsAfter.filter((end) => end.state !== 'succeeded' || end.fence !== 1)).toEqual([]);
    expect(endsAfter).toHaveLength(lost.length);
    expect(await stage.effects.judge(endsAfter)).toEqual(CLEAN);
    expect(oldLife.state).toBe('live');
    expect(fresh.workerId).toBe(oldLife.id);
  }
  for (const { leases } of rounds) {
    const moves = leases.filter((lease, i) => i > 0 && lease !== leases[i - 1]).length;
    // One each 2 s is due.
    expect(moves).toBeGreaterThan(leases.length / 8);
  }
});

it('F003 F157 runs longer than two leases, and one whose time came meanwhile, run once beside all that', async () => {
  for (const { steady, delayed, notBeforeMs } of rounds) {
    const all = [...steady, delayed];
    expect(all.filter((end) => end.state !== 'succeeded' || end.fence !== 1)).toEqual([]);
    expect(await stage.effects.judge(all)).toEqual(CLEAN);
    expect(delayed.startedAtMs).toBeGreaterThanOrEqual(notBeforeMs);
  }
});

it('every run has one end, and the chain that all lives appended to holds', async () => {
  expect(await stage.faults()).toEqual([]);
});

/** What was measured, for whoever runs it in full. */
function figures(): string {
  const lines = MEMBERS.filter((name) => name !== 'blocked').map((name) => {
    const takeovers: number[] = [];
    const afterEnd: number[] = [];
    stories(name).forEach(({ lost, endsBefore, faultAtMs }, i) => {
      for (const { id, endedAtMs } of of(lost, endsBefore)) {
        takeovers.push(endedAtMs - faultAtMs);
        afterEnd.push((rounds[i]?.traces.get(id)?.lastAtMs ?? 0) - endedAtMs);
      }
    });
    takeovers.sort((a, b) => a - b);
    const [min = 0, median = 0, max = 0] = [0, takeovers.length >> 1, takeovers.length - 1].map((i) => takeovers[i]);
    const seconds = [min, median, max].map((ms) => (ms / 1000).toFixed(1)).join(' / ');
    const latest = (Math.max(...afterEnd) / 1000).toFixed(2);
    return `${name.padEnd(20)} ${takeovers.length} runs, ended after ${seconds} s, last effect ${latest} s from the end\n`;
  });
  return `takeover min / median / max\n${lines.join('')}`;
}
