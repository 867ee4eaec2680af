import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Problem } from '../../../src/kernel/problems.js';
import { MAX_DEPTH, readJsonObject } from '../../../src/platform/http/json-body.js';

const read = (text: string) => readJsonObject(Buffer.from(text));

function refusalOf(bytes: string | Uint8Array): Problem {
  try {
    readJsonObject(typeof bytes === 'string' ? Buffer.from(bytes) : bytes);
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
  throw new Error('it was taken');
}

it('every object that JSON can say comes out as it went in, unless a rule names its fault', () => {
  fc.assert(
    fc.property(fc.object({ key: fc.string({ unit: 'binary' }), maxDepth: 5, withNullPrototype: false }), (value) => {
      const text = JSON.stringify(value);
      const plain = JSON.parse(text) as object;
      try {
        expect(read(text)).toEqual(plain);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        expect(text, error.message).toMatch(/\\u0000|\\ud[89a-f]|__proto__|constructor/);
      }
    }),
    { numRuns: 500 },
  );
});

it('whatever the bytes are, the answer is an object or a problem of the caller’s', () => {
  const jsonLike = fc.string({ unit: fc.constantFrom(...'{}[]",:\\u0dA1eE+-. \0\ud800') });
  fc.assert(
    fc.property(
      fc.oneof(
        fc.uint8Array({ maxLength: 60 }),
        jsonLike.map((text) => Buffer.from(text)),
      ),
      (bytes) => {
        try {
          expect(typeof readJsonObject(bytes)).toBe('object');
        } catch (error) {
          if (!(error instanceof Problem)) throw error;
          expect([400, 422]).toContain(error.status);
        }
      },
    ),
    { numRuns: 2_000 },
  );
});

describe('depth', () => {
  const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
  it('is bounded exactly', () => {
    expect(read(nested(MAX_DEPTH))).toBeTypeOf('object');
    expect(refusalOf(nested(MAX_DEPTH + 1)).code).toBe('malformed_request');
  });

  it('counts no bracket inside a text, escaped quotes or not', () => {
    for (const text of ['['.repeat(1_000), `\\"${'{'.repeat(1_000)}`, `\\\\\\"${'['.repeat(1_000)}`]) {
      expect(read(`{"a":"${text}"}`)).toBeTypeOf('object');
    }
  });

  it('counts brackets behind a text that ends in a backslash', () => {
    expect(refusalOf(`{"a\\\\":${'['.repeat(100)}`).detail).toContain('deeper');
  });
});

describe('what reaches for a prototype', () => {
  it.each([
    '{"__proto__":1}',
    '{"a":[{"__proto__":null}]}',
    '{"\\u005f\\u005fproto\\u005f\\u005f":1}',
    '{"constructor":{"prototype":{}}}',
  ])('%s is refused', (text) => {
    expect(refusalOf(text).code).toBe('malformed_request');
  });

  it('a member that is only called so is taken', () => {
    expect(read('{"constructor":1,"prototype":{"constructor":{}}}')).toBeTypeOf('object');
  });
});

it('what is refused for its bytes is quoted nowhere', () => {
  for (const text of ['{"password":"hunter2"', '["hunter2"]', '"hunter2"']) {
    expect(JSON.stringify(refusalOf(text))).not.toContain('hunter2');
  }
});
