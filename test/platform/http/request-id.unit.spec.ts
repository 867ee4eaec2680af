import { expect, it } from 'vitest';
import { requestIdOf, traceparentOf } from '../../../src/platform/http/request-id.js';

it('a request id of visible ASCII is kept, anything else is replaced by a new one', () => {
  expect(requestIdOf('~!a')).toBe('~!a');
  for (const given of [undefined, '', ' ', 'a b', 'é', 'x'.repeat(129), 'a\r\nb: c']) {
    expect(requestIdOf(given)).toMatch(/^req_[0-9a-z]{26}$/);
  }
  expect(requestIdOf(undefined)).not.toBe(requestIdOf(undefined));
});

const PARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

it.each([
  [PARENT, PARENT],
  [`${PARENT}-later`, null],
  [`cc${PARENT.slice(2)}-later`, `cc${PARENT.slice(2)}`],
  [`cc${PARENT.slice(2)}`, `cc${PARENT.slice(2)}`],
  [`ff${PARENT.slice(2)}`, null],
  [PARENT.replace(/4bf92f3577b34da6a3ce929d0e0e4736/, '0'.repeat(32)), null],
  [PARENT.replace(/00f067aa0ba902b7/, '0'.repeat(16)), null],
  [PARENT.toUpperCase(), null],
  [PARENT.slice(1), null],
  [`${PARENT}0`, null],
  ['', null],
  [undefined, null],
])('traceparent %s is kept as %s', (given, kept) => {
  expect(traceparentOf(given)).toBe(kept);
});
