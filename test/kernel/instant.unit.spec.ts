import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseInstant } from '../../src/kernel/instant.js';

it('every instant from 1970 to 9999 that JavaScript writes is read as itself', () => {
  const instants = fc.date({ min: new Date(0), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true });
  fc.assert(
    fc.property(instants, (at) => {
      expect(parseInstant(at.toISOString())).toEqual(at);
    }),
  );
});

it.each([
  ['2027-01-31T08:00:00Z', '2027-01-31T08:00:00.000Z'],
  ['2027-01-31t08:00:00z', '2027-01-31T08:00:00.000Z'],
  ['2027-01-31T08:00:00.1Z', '2027-01-31T08:00:00.100Z'],
  ['2027-01-31T08:00:00.123999999Z', '2027-01-31T08:00:00.123Z'],
  ['2027-01-31T08:00:00+05:30', '2027-01-31T02:30:00.000Z'],
  ['2027-01-01T00:00:00-00:30', '2027-01-01T00:30:00.000Z'],
  ['2028-02-29T00:00:00Z', '2028-02-29T00:00:00.000Z'],
])('%s is %s', (text, instant) => {
  expect(parseInstant(text)?.toISOString()).toBe(instant);
});

it.each([
  '2027-01-31',
  '2027-01-31T08:00:00',
  '2027-01-31 08:00:00Z',
  '2027-01-31T08:00Z',
  '2027-02-29T00:00:00Z',
  '2027-04-31T00:00:00Z',
  '2027-00-10T00:00:00Z',
  '2027-13-10T00:00:00Z',
  '2027-01-00T00:00:00Z',
  '2027-01-01T24:00:00Z',
  '2027-01-01T23:60:00Z',
  '2027-01-01T23:59:60Z',
  '2027-01-01T00:00:00+24:00',
  '2027-01-01T00:00:00+01:60',
  '1969-12-31T23:59:59Z',
  '1970-01-01T00:00:00+00:01',
  '9999-12-31T23:59:59-00:01',
  '0000-01-01T00:00:00Z',
  '+012027-01-01T00:00:00Z',
  '2027-01-01T00:00:00.Z',
  '',
])('%j is none', (text) => {
  expect(parseInstant(text)).toBeUndefined();
});
