/** The laws of a run's life under every interleaving of two or three replicas; and that each guard is needed for it. */
import { describe, expect, it } from 'vitest';
import { protocol, type Setting, type Weakness } from './protocol.model.js';
import { type Found, search } from './search.js';

const MAX_STATES = 3_000_000;
const CALM = { lost: 0, twice: 0, crash: 0, jump: 0, cancel: 0, drain: 0 } as const;

function look(setting: Setting): Found {
  return search(protocol(setting), MAX_STATES);
}

function story(found: Found): string {
  return found.law === undefined ? 'every law holds' : [`BROKEN: ${found.law}`, ...found.path].join('\n  ');
}

const WORLDS: Record<string, Setting> = {
  'two replicas, one run, an answer lost, a statement twice': { ...CALM, workers: 2, runs: 1, lost: 1, twice: 1 },
  'x crash': { ...CALM, workers: 2, runs: 1, lost: 1, crash: 1 },
  'x cancel': { ...CALM, workers: 2, runs: 1, cancel: 2, crash: 1 },
  'x drain': { ...CALM, workers: 2, runs: 1, drain: 1, lost: 1 },
  'x jump': { ...CALM, workers: 2, runs: 1, jump: 1 },
  'x 3': { ...CALM, workers: 3, runs: 1 },
  'x 2 runs': { ...CALM, workers: 2, runs: 2 },
};
describe('laws', () => {
  it.each(Object.entries(WORLDS))('%s', (_, setting) => {
    const t = performance.now();
    const found = look(setting);
    console.log(found.states, Math.round(performance.now() - t), 'ms', [...found.seen]);
    expect(story(found)).toBe('every law holds');
  }, 120_000);
});
