/**
 * The laws of a run's life under every interleaving of two or three replicas, and that each guard is needed for them:
 * take one away, and the search answers with the shortest story of what goes wrong.
 */
import { describe, expect, it } from 'vitest';
import { FORGOTTEN } from './protocol.laws.js';
import { protocol } from './protocol.model.js';
import type { Setting, Weakness } from './protocol.state.js';
import { type Found, search } from './search.js';

const MAX_STATES = 400_000;
const CALM = {
  workers: 2,
  runs: 1,
  lost: 0,
  twice: 0,
  crash: 0,
  outage: 0,
  jump: 0,
  cancel: 0,
  drain: 0,
  service: 0,
  grace: 0,
} as const;

function story(found: Found): string {
  return found.law === undefined ? 'every law holds' : [`BROKEN: ${found.law}`, ...found.path].join('\n  ');
}

/** Each world with what must have been met in it; a world in which nothing comes too late proves little. */
const WORLDS: readonly [title: string, setting: Setting, met: readonly string[]][] = [
  [
    'S4-13 S4-14 S4-18 a crash, an outage longer than the lease, and a statement carried out twice, once much later',
    { ...CALM, crash: 1, outage: 1, twice: 1 },
    ['a start that comes too late', 'a settling that comes too late', 'a run taken back and started elsewhere'],
  ],
  [
    'S4-18 an answer lost after its commit, and an outage longer than the lease',
    { ...CALM, lost: 1, outage: 1 },
    ['a release that comes too late', 'an end that comes too late', 'an outage longer than the lease'],
  ],
  [
    'F009 a jump of the database clock, and an outage longer than the lease',
    { ...CALM, jump: 1, outage: 1, grace: 1 },
    ['a claim that comes too late', 'a run that ends interrupted'],
  ],
  [
    'S4-96 two cancels at any two moments, and an outage longer than the lease',
    { ...CALM, cancel: 2, outage: 1 },
    ['a run that ends canceled', 'a run that ends succeeded', 'a start that comes too late'],
  ],
  [
    'F006 a drain at any moment, and an answer lost',
    { ...CALM, drain: 1, lost: 1 },
    ['a claim that comes too late', 'a release that comes too late', 'a run taken back and started elsewhere'],
  ],
  [
    'F006 a person drains and undrains a worker at any moment, one that is told to stop among them',
    { ...CALM, service: 2, drain: 1 },
    ['a claim that comes too late', 'a start that comes too late', 'a run taken back and started elsewhere'],
  ],
  [
    'F006 a person drains and undrains a worker, beside an outage longer than the lease and tools that take their grace',
    { ...CALM, service: 1, outage: 1, grace: 1 },
    ['a run that ends interrupted', 'a start that comes too late', 'a run taken back and started elsewhere'],
  ],
  [
    'S4-60 three replicas, one of which crashes at any moment',
    { ...CALM, workers: 3, crash: 1 },
    ['a run taken back and started elsewhere', 'a run that ends interrupted'],
  ],
  [
    'S4-05 two replicas and two runs',
    { ...CALM, runs: 2 },
    ['a claim that comes too late', 'a run that ends succeeded'],
  ],
];

describe('every law holds and everything ends, whatever comes between', () => {
  it.each(WORLDS)('%s', { timeout: 120_000 }, (_, setting, met) => {
    const found = search(protocol(setting), MAX_STATES);
    expect(story(found)).toBe('every law holds');
    expect([...found.seen]).toEqual(expect.arrayContaining([...met]));
    expect(found.states).toBeGreaterThan(5_000);
  });
});

const WITHOUT: readonly [weakness: Weakness, faults: Partial<Setting>, law: string][] = [
  ['start without a look at the lease', { outage: 1 }, 'a run is taken and started only under a live worker'],
  ['claim on an unlocked look at the worker row', { outage: 1 }, 'a run is taken and started only under a live worker'],
  ['start on an unlocked look at the worker row', { outage: 1 }, 'a run is taken and started only under a live worker'],
  ['no fence', { lost: 1, twice: 1 }, 'only the current fence writes'],
  ['settle what find saw', { outage: 1, twice: 1 }, 'what a live holder runs is ended by nobody else'],
  ['settle requeues what runs', { crash: 1 }, 'the tool of a run starts at most once'],
  ['release what runs', { lost: 1 }, 'a tool runs only while its run reads running'],
  ['finish what is gone', { outage: 1 }, 'each audited change has exactly one entry'],
  ['each cancel writes', { cancel: 2 }, 'each audited change has exactly one entry'],
  ['reap without a look at the lease', {}, 'a tool runs only while its run reads running'],
  ['reap right after a jump of the clock', { jump: 1 }, 'a tool runs only while its run reads running'],
  ['spawn after the deadline', { outage: 1 }, 'a tool runs only while its run reads running'],
  ['spawn at each answer', { lost: 1, twice: 1 }, 'the tool of a run starts at most once'],
  ['deadline counted from the arrival', { outage: 1 }, 'a tool runs only while its run reads running'],
  ['deadline after the lease', { outage: 1 }, 'a tool runs only while its run reads running'],
  ['grace after the lease', { outage: 1, grace: 1 }, 'a tool runs only while its run reads running'],
  ['claim for who drains', { service: 1 }, 'a run is taken and started only under a live worker'],
  ['start for who drains', { service: 1 }, 'a run is taken and started only under a live worker'],
  ['claim on an unlocked look at the worker row', { service: 1 }, 'a run is taken and started only under a live'],
  ['start on an unlocked look at the worker row', { service: 1 }, 'a run is taken and started only under a live'],
  ['start until it is let', { service: 1 }, 'after faults stop, everything ends'],
  ['no settling', { crash: 1 }, 'after faults stop, everything ends'],
  ['no comparing', { lost: 1 }, 'after faults stop, everything ends'],
];

const WITHOUT_OF_A_ROW: readonly [weakness: Weakness, faults: Partial<Setting>, law: string][] = [
  ['drain of a life that is over', { service: 1, crash: 1 }, 'a life that is over never changes'],
  ['undrain of a life that is over', { crash: 1 }, 'a life that is over never changes'],
  ['undrain of a process that stops', { drain: 1 }, 'a process that is stopping is never put back into service'],
];

describe('a start whose answer is lost while its worker is taken out of service', () => {
  const setting: Setting = { ...CALM, lost: 1, service: 1, drain: 1 };

  it('F006 is confirmed when it is sent again, so the run is executed', { timeout: 120_000 }, () => {
    const found = search(protocol(setting), MAX_STATES);
    expect(story(found)).toBe('every law holds');
    expect(found.seen).not.toContain(FORGOTTEN);
    expect(found.seen).toContain('a release that comes too late');
  });

  it('is told apart from one that is refused: then the run would end, and nobody could say what it did', {
    timeout: 120_000,
  }, () => {
    const found = search(protocol({ ...setting, weakness: 'start confirmed to the live alone' }), MAX_STATES);
    expect(found.seen).toContain(FORGOTTEN);
  });
});

describe('each guard is needed: without it the search finds a broken law', () => {
  it.each(WITHOUT_OF_A_ROW)('%s', (weakness, faults, law) => {
    expect(search(protocol({ ...CALM, ...faults, weakness }), MAX_STATES).law).toContain(law);
  });

  it.each(WITHOUT)('%s', { timeout: 60_000 }, (weakness, faults, law) => {
    const found = search(protocol({ ...CALM, ...faults, weakness }), MAX_STATES);
    expect(found.law).toContain(law);
    expect(found.path.length).toBeGreaterThan(2);
    expect(found.path[0]).toBe('submit of run 0 is carried out');
  });

  it('the fence alone keeps strangers out, for no two holders ever have the same: the holder beside it is a second lock', {
    timeout: 60_000,
  }, () => {
    const found = search(protocol({ ...CALM, outage: 1, twice: 1, weakness: 'no holder' }), MAX_STATES);
    expect(story(found)).toBe('every law holds');
  });
});
