/** The strict reader: one way to write a value, and no way beyond the end. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DerReader, integerHex, oidText, TAG } from '../../src/verifier/der.js';
import { Refusal } from '../../src/verifier/refusal.js';

const reader = (hex: string) => new DerReader(Buffer.from(hex, 'hex'), 'it');
const value = (tag: number, hex: string) => {
  const content = Buffer.from(hex, 'hex');
  return { tag, content, whole: content };
};

describe('lengths', () => {
  it('in their shortest form are read, to the last byte', () => {
    expect(reader('0400').take(TAG.octets).content).toHaveLength(0);
    expect(reader(`047f${'00'.repeat(127)}`).take(TAG.octets).content).toHaveLength(127);
    expect(reader(`048180${'00'.repeat(128)}`).take(TAG.octets).content).toHaveLength(128);
    expect(reader(`04820100${'00'.repeat(256)}`).take(TAG.octets).content).toHaveLength(256);
  });

  it.each([
    ['0480', 'no definite length'],
    ['0480aabb0000', 'no definite length'],
    ['04817f', 'shortest form'],
    ['0482007f', 'shortest form'],
    ['048200ff', 'shortest form'],
    ['04850000000001', 'ends too early'],
    ['04ff', 'ends too early'],
    ['04', 'ends too early'],
    ['0481', 'ends too early'],
    ['0402aa', 'ends too early'],
    ['0484ffffffff', 'ends too early'],
    ['1f8100', 'tag of more than one byte'],
    ['', 'ends too early'],
  ])('%s is refused', (hex, reason) => {
    expect(() => reader(hex).takeAny()).toThrow(`anchor: it ${reason === 'ends too early' ? reason : ''}`);
    expect(() => reader(hex).takeAny()).toThrow(reason);
  });
});

it('a value has the tag that is asked for, and nothing is left over', () => {
  const file = reader('0201050401aa');
  expect(file.takeIf(TAG.octets)).toBeUndefined();
  expect(integerHex(file.take(TAG.integer))).toBe('05');
  expect(() => file.take(TAG.integer)).toThrow('holds something else');
  expect(() => file.end()).toThrow('holds more than it should');
  expect(file.take(TAG.octets).whole).toEqual(Buffer.from('0401aa', 'hex'));
  expect(() => file.end()).not.toThrow();
});

it('numbers are told as hex, of any size, in their shortest form only', () => {
  const told = (hex: string) => integerHex(value(TAG.integer, hex));
  expect(['00', '05', '7f', '0080', 'ff', '0100', `00${'ff'.repeat(20)}`].map(told)).toEqual([
    '00',
    '05',
    '7f',
    '80',
    'ff',
    '0100',
    'ff'.repeat(20),
  ]);
  for (const hex of ['', '0000', '0005', '007f', 'ff80', 'ffff']) expect(() => told(hex)).toThrow('shortest form');
});

it('object identifiers are told in dots', () => {
  const told = (hex: string) => oidText(value(TAG.oid, hex));
  expect(told('2a864886f70d0109100104')).toBe('1.2.840.113549.1.9.16.1.4');
  expect(told('608648016503040201')).toBe('2.16.840.1.101.3.4.2.1');
  expect(told('883703')).toBe('2.999.3');
  expect(told('00')).toBe('0.0');
  expect(told('4f')).toBe('1.39');
  expect(told('50')).toBe('2.0');
  for (const hex of ['', '2a80', '2a8001', '8001', '2a86', '01'.repeat(65)])
    expect(() => told(hex)).toThrow('malformed');
});

it('whatever the bytes, reading ends or refuses, and stays inside', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      const file = new DerReader(bytes, 'it');
      let total = 0;
      try {
        while (!file.isAtEnd) total += file.takeAny().whole.length;
        expect(total).toBe(bytes.length);
      } catch (error) {
        expect(error).toBeInstanceOf(Refusal);
      }
    }),
    { numRuns: 5_000 },
  );
});
