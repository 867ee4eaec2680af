import { describe, expect, it } from 'vitest';
import { decideIn, diagramOf, type Transition } from '../../src/kernel/machine.js';

type Row = Transition<'none' | 'open' | 'shut', 'make' | 'close' | 'knock', 'key' | 'calm'>;
const TABLE: readonly Row[] = [
  { row: '1', command: 'make', from: ['none'], guard: [], to: ['open'], audited: true, event: 'made' },
  { row: '2', command: 'close', from: ['open'], guard: ['key', 'calm'], to: ['shut'], audited: true, event: 'shut' },
  { row: '3', command: 'knock', from: ['open', 'shut'], guard: ['calm'], to: 'unchanged', audited: false, event: null },
];

describe('decideIn', () => {
  it('applies the row whose guards all hold', () => {
    expect(decideIn(TABLE, 'open', 'close', () => true)).toEqual({ outcome: 'apply', transition: TABLE[1] });
  });

  it('refuses for the guard when one of several does not hold', () => {
    expect(decideIn(TABLE, 'open', 'close', (guard) => guard === 'key')).toEqual({
      outcome: 'refuse',
      because: 'guard',
    });
  });

  it('refuses for the state when no row starts there', () => {
    expect(decideIn(TABLE, 'shut', 'close', () => true)).toEqual({ outcome: 'refuse', because: 'state' });
  });
});

it('the diagram shows every change with its row, marks what is audited, and ends where nothing leads on', () => {
  expect(diagramOf(TABLE, 'none', (state) => state === 'shut')).toBe(
    ['stateDiagram-v2', '  [*] --> open: 1 make ◆', '  open --> shut: 2 close ◆', '  shut --> [*]'].join('\n'),
  );
});
