/** The transition table, exhaustively: every state, every command, every set of guards that can hold together. */

import { describe, expect, it } from 'vitest';
import { END_STATES, LIVE_STATES, RUN_STATES } from '../../src/kernel/run-words.js';
import {
  decide,
  isEnded,
  RUN_TRANSITIONS,
  type RunCommand,
  type RunGuard,
  type RunStanding,
  runDiagram,
} from '../../src/runs/run.machine.js';

const STANDINGS: readonly RunStanding[] = ['absent', ...RUN_STATES];
const COMMANDS = [...new Set(RUN_TRANSITIONS.map((row) => row.command))];
const GUARDS = [...new Set(RUN_TRANSITIONS.flatMap((row) => row.guard))];

/** The two flags say the same thing: one of them always holds, never both. */
function guardSets(): Set<RunGuard>[] {
  const free = GUARDS.filter((guard) => guard !== 'cancel_requested' && guard !== 'no_cancel');
  const subsets = Array.from({ length: 2 ** free.length }, (_, bits) => free.filter((_, i) => bits & (1 << i)));
  return subsets.flatMap((subset) => [
    new Set<RunGuard>([...subset, 'no_cancel']),
    new Set<RunGuard>([...subset, 'cancel_requested']),
  ]);
}

const cases = STANDINGS.flatMap((state) =>
  COMMANDS.flatMap((command) => guardSets().map((guards) => ({ state, command, guards }))),
);

/** What the product's table says, written out once more by hand: row, from, command, to, audited. */
const PRODUCT_TABLE = `
  1    absent                → submit            → pending                         ◆
  3    any                   → submit            → unchanged
  6    pending               → claim             → claimed
  7    claimed               → start             → running
  7    running               → start             → unchanged
  8    claimed               → settle            → pending                         ◆
  8    claimed               → settle            → canceled                        ◆
  9    claimed               → release           → pending
  9    claimed               → release           → canceled                        ◆
  10   running               → tool_ended        → succeeded failed timed_out      ◆
  10a  claimed               → refuse            → failed                          ◆
  11   running               → settle            → interrupted                     ◆
  11a  running               → tool_stopped      → interrupted                     ◆
  11b  running               → unknown_to_holder → interrupted                     ◆
  12   running               → drain_over        → interrupted                     ◆
  13   held pending parked   → cancel            → canceled                        ◆
  14   claimed running       → cancel            → unchanged                       ◆
  14   claimed running       → cancel            → unchanged
  15   claimed running       → cancel_done       → canceled                        ◆
  17   ended                 → rerun             → unchanged`;

describe('the transition table', () => {
  it("has exactly the product's rows", () => {
    const named = (states: readonly RunStanding[]) => {
      if (states.length === RUN_STATES.length) return 'any';
      return states.length === END_STATES.length ? 'ended' : states.join(' ');
    };
    const written = RUN_TRANSITIONS.map(({ row, from, command, to, audited }) =>
      [row, named(from), '→', command, '→', to === 'unchanged' ? to : to.join(' '), audited ? '◆' : '']
        .join(' ')
        .trim(),
    );
    expect(written).toEqual(
      PRODUCT_TABLE.trim()
        .split('\n')
        .map((line) => line.trim().replace(/\s+/g, ' ')),
    );
  });

  it(`gives one answer to each of ${cases.length} combinations of state, command and guards, and no two rows apply at once`, () => {
    expect(cases.length).toBeGreaterThan(5_000);
    for (const { state, command, guards } of cases) {
      const applying = RUN_TRANSITIONS.filter(
        (row) => row.command === command && row.from.includes(state) && row.guard.every((guard) => guards.has(guard)),
      );
      const label = `${command} on ${state} with ${[...guards].join(', ')}`;
      expect(applying.length, label).toBeLessThanOrEqual(1);
      const decision = decide(state, command, (guard) => guards.has(guard));
      if (applying.length === 1) expect(decision, label).toEqual({ outcome: 'apply', transition: applying[0] });
      else expect(decision.outcome, label).toBe('refuse');
    }
  });

  it('S4-16 nothing leads out of an ended state, and nothing is written there', () => {
    for (const { state, command, guards } of cases) {
      if (!isEnded(state)) continue;
      const decision = decide(state, command, (guard) => guards.has(guard));
      if (decision.outcome === 'refuse') continue;
      expect(decision.transition).toMatchObject({ to: 'unchanged', audited: false, event: null });
    }
  });

  it('S4-48 S4-61 a run that was started never goes back: no row leads from running to a state before it', () => {
    for (const row of RUN_TRANSITIONS) {
      if (!row.from.includes('running') || row.to === 'unchanged') continue;
      expect(row.to.filter((to) => !isEnded(to))).toEqual([]);
    }
  });

  it('S4-08 every row that ends a run is audited and writes the same event', () => {
    const ending = RUN_TRANSITIONS.filter((row) => row.to !== 'unchanged' && row.to.some(isEnded));
    expect(ending.length).toBeGreaterThan(8);
    for (const row of ending) expect(row).toMatchObject({ audited: true, event: 'run.ended' });
  });

  it('S4-18 every write of a holder demands holder and fence, and the move to running a live lease too', () => {
    const holders: readonly RunCommand[] = [
      'start',
      'release',
      'tool_ended',
      'refuse',
      'tool_stopped',
      'unknown_to_holder',
      'drain_over',
      'cancel_done',
    ];
    for (const row of RUN_TRANSITIONS.filter((row) => holders.includes(row.command))) {
      expect(row.guard).toContain('held');
      if (row.command !== 'start') continue;
      expect(row.guard).toContain(row.to === 'unchanged' ? 'worker_alive' : 'worker_live');
    }
  });

  it('every live state can be left, and every end but `rejected` can be reached', () => {
    const left = new Set(RUN_TRANSITIONS.flatMap((row) => (row.to === 'unchanged' ? [] : row.from)));
    expect(LIVE_STATES.filter((state) => !left.has(state))).toEqual([]);
    const reached = new Set(RUN_TRANSITIONS.flatMap((row) => (row.to === 'unchanged' ? [] : row.to)));
    expect(END_STATES.filter((state) => !reached.has(state))).toEqual(['rejected']);
  });

  it('the table cannot be changed at run time', () => {
    expect(Object.isFrozen(RUN_TRANSITIONS)).toBe(true);
    for (const row of RUN_TRANSITIONS) expect(Object.isFrozen(row)).toBe(true);
  });

  it('the diagram has an edge for each change', () => {
    const edges = RUN_TRANSITIONS.flatMap((row) => (row.to === 'unchanged' ? [] : row.from.flatMap(() => row.to)));
    expect(runDiagram().match(/: \S+ \S+/g)).toHaveLength(edges.length);
  });
});
