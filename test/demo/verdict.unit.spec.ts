/** The demo's claims: each is found false when what it says is not so. */
import { expect, it } from 'vitest';

const { claimsOf, effectsOf, fatesOf } = await import(new URL('./verdict.mjs', import.meta.url).href);

const AT = Date.parse('2026-03-02T10:00:00.000Z');
const at = (seconds: number) => new Date(AT + seconds * 1000).toISOString();

interface Run {
  id: string;
  worker: { id: string; name: string } | null;
  state: string;
  end: { code: string } | null;
  fence: number;
  createdAt: string;
  startedAt: string;
  endedAt: string | null;
}

const ended = (id: string, on: string, life: string, state: string, from: number, to: number): Run => ({
  id,
  worker: { id: life, name: on },
  state,
  end: { code: state === 'succeeded' ? 'ok' : 'worker_lost' },
  fence: 1,
  createdAt: at(0),
  startedAt: at(from),
  endedAt: at(to),
});

/** r2 is killed at 10 s and r3 stopped at 12 s; each was running one run, and r2 had taken in one that waited. */
function history() {
  const runs = [
    ended('a', 'r2', 'wrk_2', 'interrupted', 9, 26),
    ended('b', 'r3', 'wrk_3', 'interrupted', 11, 28),
    ended('c', 'r1', 'wrk_1', 'succeeded', 13, 16),
    ended('d', 'r3', 'wrk_4', 'succeeded', 30, 33),
  ];
  const effects = ['a 1 9.1', 'b 2 11.5', 'b 2 24', 'c 3 13', 'c 3 14', 'd 4 30', 'd 4 31'];
  const silent = { d: ['r3'] } as Record<string, string[]>;
  return {
    runs,
    before: { runs: runs.slice(0, 3).map((run) => ({ ...run })) },
    effects,
    plans: new Map(runs.map(({ id }) => [`key ${id}`, { name: id, steps: 2 }])),
    submitted: new Map(
      runs.map(({ id }) => [`key ${id}`, { id, at: id === 'c' ? 'r2' : 'r1', silent: silent[id] ?? [] }]),
    ),
    faults: { r2: AT + 10_000, r3: AT + 12_000 },
    lateWrites: [{ code: 'run_end_withheld', run: 'b' }],
    newLife: 'wrk_4',
  };
}

/** The claims that don't hold when `change` had happened. */
function falseAfter(change: (told: ReturnType<typeof history>) => void): string[] {
  const told = history();
  change(told);
  const lines = told.effects.map((line) => line.split(' '));
  const text = lines.map(([run, pid, s]) => `${run} ${pid} ${AT + Number(s) * 1000}\n`).join('');
  const effects = effectsOf(text);
  const claims = claimsOf({ ...told, effects, fates: fatesOf({ ...told, effects }) });
  return claims.flatMap((one: { claim: string; holds: boolean }) => (one.holds ? [] : [one.claim]));
}

const run = (told: ReturnType<typeof history>, id: string) => told.runs.find((one) => one.id === id)!;

it('holds all claims when all went well', () => {
  expect(falseAfter(() => undefined)).toEqual([]);
});

it.each<[what: string, claim: string, change: (told: ReturnType<typeof history>) => void]>([
  [
    'a submit made two runs',
    'each submit is one run',
    (told) => told.runs.push(ended('e', 'r1', 'wrk_1', 'succeeded', 1, 2)),
  ],
  ['a run goes on', 'every run has ended', (told) => (run(told, 'c').endedAt = null)],
  ['two processes executed a run', 'nothing ran twice', (told) => told.effects.push('a 9 13')],
  ['a tool went on after its end', 'nothing happened after', (told) => told.effects.push('b 2 28.1')],
  ['a step of a good run is missing', 'what reads succeeded', (told) => told.effects.splice(4, 1)],
  [
    'a run elsewhere was interrupted',
    'what was running',
    (told) => (run(told, 'a').worker = { id: 'wrk_1', name: 'r1' }),
  ],
  ['a run failed', 'what was running', (told) => (run(told, 'd').state = 'failed')],
  ['nothing had waited', 'what waited', (told) => (run(told, 'c').startedAt = at(5))],
  ['a late write got in', 'late writes', (told) => (run(told, 'b').end = { code: 'ok' })],
  ['nothing was refused', 'late writes', (told) => (told.lateWrites = [])],
  ['r3 never worked again', 'r3 works again', (told) => (told.newLife = 'wrk_5')],
])('finds the claim false when %s', (_, claim, change) => {
  const broken = falseAfter(change);
  expect(
    broken.some((text) => text.startsWith(claim)),
    broken.join('; '),
  ).toBe(true);
});
