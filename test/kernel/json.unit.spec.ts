import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson, digestOf, findUnstorable, sha256Hex } from '../../src/kernel/json.js';

describe('canonical JSON', () => {
  it('sorts members by UTF-16 code units at every depth and writes no space', () => {
    expect(canonicalJson({ b: [1, { d: 2, c: 3 }], a: 'x', '\ufb33': 1, '\u{1f600}': 2 })).toBe(
      '{"a":"x","b":[1,{"c":3,"d":2}],"\u{1f600}":2,"\ufb33":1}',
    );
  });

  it('the order in which members were written does not matter to the digest', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (object) => {
        const reversed = Object.fromEntries(Object.entries(object).reverse());
        return digestOf(object) === digestOf(reversed);
      }),
    );
  });

  it('escapes exactly what RFC 8785 says and leaves the rest as it is', () => {
    expect(canonicalJson('"\\\b\f\n\r\t\u0001\u007f/é\u2028😀')).toBe(
      '"\\"\\\\\\b\\f\\n\\r\\t\\u0001\u007f/é\u2028😀"',
    );
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, undefined, '\ud800'])('refuses what JSON cannot say: %j', (value) => {
    expect(() => canonicalJson(value)).toThrow();
  });

  it('a digest is that of the UTF-8 bytes, with its algorithm in front', () => {
    expect(sha256Hex('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
    expect(sha256Hex('é')).toBe(sha256Hex(Buffer.from([0xc3, 0xa9])));
    expect(digestOf({})).toBe(`sha256:${sha256Hex('{}')}`);
  });
});

describe('findUnstorable', () => {
  it('F081 names the place of NUL, of a lone surrogate and of a number out of range', () => {
    expect(findUnstorable({ a: [{ 'x/y~': 'b\0' }] })).toEqual({
      pointer: '/a/0/x~1y~0',
      message: 'must not contain the character NUL',
    });
    expect(findUnstorable({ a: '\udc00' })?.pointer).toBe('/a');
    expect(findUnstorable({ 'k\0': 1 })).toEqual({
      pointer: '/k\\u0000',
      message: 'member name: must not contain the character NUL',
    });
    expect(findUnstorable([1, Number.POSITIVE_INFINITY])?.pointer).toBe('/1');
  });

  it('F081 takes everything else', () => {
    expect(findUnstorable({ a: ['\u0001', '😀', -0, 1e308, null, true, {}], '': '' })).toBeUndefined();
  });
});
