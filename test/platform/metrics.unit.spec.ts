/** Labels whose number stays bounded, whatever callers write. */
import { expect, it } from 'vitest';
import { LabelNames, labelOf, OTHER } from '../../src/platform/metrics.js';

it('a value of a closed list is told by its own name, and any other by none', () => {
  expect(['GET', 'POST', 'get', 'BREW', ''].map((method) => labelOf(['GET', 'POST'], method))).toEqual([
    'GET',
    'POST',
    OTHER,
    OTHER,
    OTHER,
  ]);
});

it('the first names keep theirs, and the later ones share one', () => {
  const names = new LabelNames(3, ['default']);
  expect(['a', 'b', 'c', 'a', 'd', 'default'].map((name) => names.labelOf(name))).toEqual([
    'a',
    'b',
    OTHER,
    'a',
    OTHER,
    'default',
  ]);
  expect(names.names).toEqual(['default', 'a', 'b']);
});

it('a name that is no word of its own crowds out nobody', () => {
  const names = new LabelNames(1);
  expect(names.labelOf('a')).toBe('a');
  expect([OTHER, '__proto__', 'constructor', ''].map((name) => names.labelOf(name))).toEqual(Array(4).fill(OTHER));
});
