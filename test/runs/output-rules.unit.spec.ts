import fc from 'fast-check';
import { expect, it } from 'vitest';
import { outputPart, outputPickOf } from '../../src/runs/output.rules.js';

it.each([
  [undefined, { pick: 'all' }],
  ['', { pick: 'all' }],
  ['bytes=0-', { pick: 'range', first: 0, last: undefined }],
  [' bytes=3-9 ', { pick: 'range', first: 3, last: 9 }],
  ['bytes=9-9', { pick: 'range', first: 9, last: 9 }],
  ['bytes=-5', { pick: 'suffix', bytes: 5 }],
  ['bytes=9-3', { pick: 'all' }],
  ['bytes=-', { pick: 'all' }],
  ['bytes=0-1,2-3', { pick: 'all' }],
  ['bytes=1e3-', { pick: 'all' }],
  ['items=0-1', { pick: 'all' }],
  [`bytes=${'9'.repeat(16)}-`, { pick: 'all' }],
])('Range %j means %j', (header, pick) => {
  expect(outputPickOf(header)).toEqual(pick);
});

it('a part lies within what there is and is what a slice would give', () => {
  const bytes = Array.from({ length: 40 }, (_, i) => i);
  fc.assert(
    fc.property(fc.nat(40), fc.nat(60), fc.option(fc.nat(60), { nil: undefined }), (total, first, more) => {
      const there = bytes.slice(0, total);
      const last = more === undefined ? undefined : first + more;
      const part = outputPart({ pick: 'range', first, last }, total);
      const expected = there.slice(first, last === undefined ? undefined : last + 1);
      expect(part ? there.slice(part.from, part.to) : []).toEqual(expected);
      expect(part === undefined).toBe(expected.length === 0);
    }),
  );
  fc.assert(
    fc.property(fc.nat(40), fc.nat(60), (total, count) => {
      const there = bytes.slice(0, total);
      const part = outputPart({ pick: 'suffix', bytes: count }, total);
      expect(part ? there.slice(part.from, part.to) : []).toEqual(count === 0 ? [] : there.slice(-count));
    }),
  );
});
