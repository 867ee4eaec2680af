/** The verifier against bundles of our own making: those that hold, and one at least for every reason that none does. */
import { createPublicKey, verify } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson, sha256Hex } from '../../src/kernel/json.js';
import { canonical, parseJson } from '../../src/verifier/json.js';
import { verifyBundle } from '../../src/verifier/verify.js';
import {
  bundleOf,
  bytesOf,
  exampleBundle,
  exampleClaims,
  KEY,
  type Loose,
  linked,
  linkOf,
  messageOf,
  OTHER_KEY,
  plainClaims,
  sealed,
} from './bundles.fixture.js';
import { refusedCases, validCases } from './cases.fixture.js';

describe('the worked example of the format, byte for byte', () => {
  const LINKS = [
    '0a7cafb8610c333b0f44796dcbb8dbc623fb9e2ddc72765c0da1b6845f63e45f',
    '11c8c3571ab2d6df55bd5990402f334a31f38a082d42a4be1094c01deeadcf33',
    '9159ad3212881e6c378b8e3c66f6855ae1a8383c4029f4e537654cef9ec5e8ab',
  ];
  const bundle = exampleBundle();

  it('S4-104 has the links, the message and the signature that are published', () => {
    expect(bundle.claims.map(({ chain }: Loose) => chain.link)).toEqual(LINKS);
    expect(linkOf(exampleClaims()[0], 1, '').input).toHaveLength(153);
    const message = messageOf(bundle);
    expect(Buffer.byteLength(message)).toBe(1513);
    expect(sha256Hex(message)).toBe('624620ce8d1397d9cf6591a9561cbfd43bd7aea0665b1df716d863277faf278b');
    expect(sealed(bundle).signatures).toEqual([
      {
        key_id: 'sha256:65b60673d6ed884bf01c2c222d82ada0740f29ac3355d6a925c81f17f47a27b8',
        alg: 'ed25519',
        sig: 'FNc+XGgrvJuiwlge00DjUOJSuKT1VvveRGGNkhqzTy9q5JhR9VsXUOGZwu0M12HPfrfQBe4xyOLhk348CLamDg==',
      },
    ]);
  });

  it('S4-104 comes out of the verifier’s own canonical form too', () => {
    const pretty = Buffer.from(JSON.stringify({ ...bundle, signatures: [] }, undefined, 2));
    expect(canonical(parseJson(pretty))).toBe(messageOf(bundle));
    const claims = [132, 159, 240];
    for (const [index, claim] of exampleClaims().entries()) {
      const text = canonical(parseJson(Buffer.from(JSON.stringify(claim))));
      expect(Buffer.byteLength(text)).toBe(claims[index]);
      expect(text).toBe(canonicalJson(claim));
    }
  });

  it('verifies, and the verdict says who, what and which range', () => {
    expect(verifyBundle(bytesOf(sealed(bundle)))).toMatchObject({
      ok: true,
      level: 'signed, chained (full)',
      facts: {
        bundleId: 'lsb_demo',
        fingerprint: KEY.fingerprint,
        isPinned: false,
        producer: { product: 'acme', version: '1.0.0', installId: 'in_demo' },
        subject: { type: 'fleet', id: 'org_1' },
        claims: {
          count: 3,
          types: ['acme.audit/1'],
          firstAt: '2026-03-02T09:00:00Z',
          lastAt: '2026-03-02T09:00:02Z',
        },
        chain: { installId: 'in_demo', from: 1, to: 3, head: { seq: 3, link: LINKS[2] }, headMatched: true },
        evidence: { verified: 0, referenced: 1, missing: 0 },
      },
      notes: ['Types of entries outside the registry of LoomSeal: acme.audit/1.'],
    });
  });
});

describe('a bundle that holds', () => {
  for (const { name, bytes, level } of validCases()) {
    it(`S4-104 ${name}: ${level}`, () => {
      expect(verifyBundle(bytes)).toMatchObject({ ok: true, level });
    });
  }
});

describe('a bundle that does not hold', () => {
  for (const { name, bytes, stage, says, seq } of refusedCases()) {
    it(`S4-104 fails at ${stage}: ${name}`, () => {
      const verdict = verifyBundle(bytes);
      expect(verdict).toMatchObject({ ok: false, level: 'not verified', failed: { stage }, proven: [] });
      expect(verdict.failed?.reason).toContain(says);
      expect(verdict.failed?.seq).toBe(seq);
    });
  }
});

describe('a pinned fingerprint', () => {
  const bytes = bytesOf(sealed(exampleBundle()));

  it('that is the signer’s is told, and no word is left about whose key it is', () => {
    const pinned = verifyBundle(bytes, { fingerprint: KEY.fingerprint });
    expect(pinned).toMatchObject({ ok: true, facts: { isPinned: true } });
    expect(pinned.notProven.join()).not.toContain('Whose key');
    expect(verifyBundle(bytes).notProven.join()).toContain('Whose key');
  });

  it('that is another’s refuses the bundle', () => {
    expect(verifyBundle(bytes, { fingerprint: OTHER_KEY.fingerprint })).toMatchObject({
      ok: false,
      failed: { stage: 'signature', reason: expect.stringContaining('not by the pinned') },
    });
  });
});

describe('a key that has no secret', () => {
  const half = [
    '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03',
  ];
  const plain = [
    ['00', '00', '00'],
    ['01', '00', '00'],
    ['ec', 'ff', '7f'],
    ['ed', 'ff', '7f'],
    ['ee', 'ff', '7f'],
  ];
  const keys = [
    ...plain.map(([first, middle = '', last]) => `${first}${middle.repeat(30)}${last}`),
    `${half[0]}05`,
    `${half[1]}7a`,
  ].flatMap((hex) => [0, 0x80].map((sign) => signedBy(Buffer.from(hex, 'hex'), sign)));

  function signedBy(key: Buffer, sign: number): Buffer {
    key[31] = (key[31] ?? 0) | sign;
    return key;
  }

  /** A signature that somebody without a secret has made: for one message of eight, at least, it holds. */
  const forged = (bundle: Loose, key: Buffer): Loose | undefined => {
    const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), key]);
    const asKey = createPublicKey({ key: spki, format: 'der', type: 'spki' });
    for (const point of keys) {
      const sig = Buffer.concat([point, Buffer.alloc(32)]);
      if (verify(null, Buffer.from(messageOf(bundle)), asKey, sig)) return sig.toString('base64');
    }
    return undefined;
  };

  it('signs for anybody, and is refused whatever it has signed', () => {
    let forgeries = 0;
    for (const key of keys) {
      const bundle = exampleBundle();
      const key_id = `sha256:${sha256Hex(key)}`;
      Object.assign(bundle.producer, { public_key: key.toString('base64'), key_id });
      const sig = forged(bundle, key);
      if (sig) forgeries += 1;
      const bytes = bytesOf({
        ...bundle,
        signatures: [{ key_id, alg: 'ed25519', sig: sig ?? Buffer.alloc(64).toString('base64') }],
      });
      expect(verifyBundle(bytes)).toMatchObject({
        ok: false,
        failed: { stage: 'signature', reason: 'a key under which anybody can sign' },
      });
    }
    expect(forgeries).toBeGreaterThan(keys.length / 2);
  });
});

describe('evidence', () => {
  const bytes = bytesOf(sealed(exampleBundle()));
  const hello = new Set([`sha256:${sha256Hex('hello evidence\n')}`]);
  const other = new Set([`sha256:${sha256Hex('hello evidence')}`]);

  it('is referenced, verified or missing, and refuses nothing by itself', () => {
    const counts = (evidence?: ReadonlySet<string>) => verifyBundle(bytes, { evidence }).facts?.evidence;
    expect(counts()).toEqual({ verified: 0, referenced: 1, missing: 0 });
    expect(counts(hello)).toEqual({ verified: 1, referenced: 0, missing: 0 });
    expect(counts(other)).toEqual({ verified: 0, referenced: 0, missing: 1 });
    expect(verifyBundle(bytes, { evidence: other })).toMatchObject({ ok: true, level: 'signed, chained (full)' });
  });

  it('that is required and not there refuses the bundle', () => {
    expect(verifyBundle(bytes, { evidence: hello, requireEvidence: true }).ok).toBe(true);
    for (const evidence of [other, undefined]) {
      const verdict = verifyBundle(bytes, { evidence, requireEvidence: true });
      expect(verdict).toMatchObject({ ok: false, failed: { stage: 'evidence' } });
    }
  });
});

describe('what is odd and refuses nothing', () => {
  const notesOf = (bundle: Loose) => verifyBundle(bytesOf(sealed(bundle))).notes.join('\n');

  it('is noted', () => {
    const orphan = bundleOf(linked(plainClaims(1), 4, ''));
    expect(notesOf(orphan)).toContain('Entry 4 is not the first of its chain, yet it names no entry before it.');
    const two = { ...exampleBundle(), producer: { ...exampleBundle().producer, install_id: 'in_other' } };
    expect(notesOf(two)).toContain('The chain is that of in_demo, the producer is in_other.');
    const chainless = exampleBundle();
    delete chainless.chain;
    expect(notesOf(chainless)).toContain('Entries have coordinates, and there is no chain.');
    const many = bundleOf(linked(plainClaims(9).map((claim, index) => ({ ...claim, type: `a.b/${index}` }))));
    expect(notesOf(many)).toContain('a.b/0, a.b/1, a.b/2, a.b/3, a.b/4 and 4 more');
  });
});

describe('what is not proven', () => {
  const openOf = (bundle: Loose) => verifyBundle(bytesOf(sealed(bundle))).notProven.join('\n');

  it('depends on the range, the head and the anchors', () => {
    const claims = linked(plainClaims(9));
    const window = bundleOf(claims.slice(3, 6));
    window.chain.head = { seq: 9, link: claims[8].chain.link };
    expect(openOf(window)).toContain('What came before entry 4');
    expect(openOf(window)).toContain('What came after entry 6: the head 9 is declared');
    expect(openOf(window)).toContain('made them all anew until 2026-03-02T10:00:00Z');
    const whole = bundleOf(claims);
    expect(openOf(whole)).not.toContain('What came');
    expect(openOf(whole)).toContain('That entry 9 was the newest');
    const anchor = { type: 'git', seq: 9, link: claims[8].chain.link, at: '2026-03-02T11:00:00Z', ref: 'https://x/1' };
    expect(openOf({ ...whole, anchors: [anchor] })).not.toContain('made them all anew');
    expect(openOf({ ...window, anchors: [anchor] })).toContain('made them all anew');
    expect(openOf({ ...window, anchors: [anchor] })).toContain('The anchors of the declared head');
  });
});

describe('whatever happens to a good bundle', () => {
  const good = bytesOf(sealed(exampleBundle()));
  const tree = canonical(parseJson(good));
  const isSame = (bytes: Buffer) => {
    try {
      return canonical(parseJson(bytes)) === tree;
    } catch {
      return false;
    }
  };
  const place = fc.nat({ max: good.length - 1 });
  const byte = fc.nat({ max: 255 });
  const part = (from: number, to?: number) => good.subarray(from, to);
  const damage: [string, fc.Arbitrary<Buffer>][] = [
    [
      'a flipped bit',
      fc.tuple(place, fc.nat({ max: 7 })).map(([at, bit]) => {
        const bytes = Buffer.from(good);
        bytes[at] = (bytes[at] ?? 0) ^ (1 << bit);
        return bytes;
      }),
    ],
    ['a deleted byte', place.map((at) => Buffer.concat([part(0, at), part(at + 1)]))],
    ['a doubled byte', place.map((at) => Buffer.concat([part(0, at + 1), part(at)]))],
    [
      'an inserted byte',
      fc.tuple(place, byte).map(([at, value]) => Buffer.concat([part(0, at), Buffer.from([value]), part(at)])),
    ],
    ['a lost end', place.map((at) => part(0, at))],
  ];

  it.each(damage)('S4-104 %s refuses it, or leaves what it says', (_, damaged) => {
    fc.assert(
      fc.property(damaged, (bytes) => {
        expect(verifyBundle(bytes).ok).toBe(isSame(bytes));
      }),
      { numRuns: 1_500 },
    );
  });

  it('S4-104 every single bit counts, or leaves what it says', () => {
    for (let at = 0; at < good.length; at += 1) {
      const bytes = Buffer.from(good);
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      expect(verifyBundle(bytes).ok, `byte ${at}`).toBe(isSame(bytes));
    }
  });
});

describe('entries altered by the holder of the key, who signs again', () => {
  const claims = linked(plainClaims(12));
  const index = fc.nat({ max: 11 });
  const verdictOf = (some: readonly Loose[]) => verifyBundle(bytesOf(sealed(bundleOf(some))));
  const refuses = (some: readonly Loose[], seq: number) =>
    expect(verdictOf(some)).toMatchObject({ ok: false, failed: { stage: 'chain', seq } });

  it('swapped are refused at the first that is out of its place', () => {
    fc.assert(
      fc.property(fc.uniqueArray(index, { minLength: 2, maxLength: 2 }), (pair) => {
        const [a = 0, b = 0] = pair.toSorted((x, y) => x - y);
        const swapped = claims.with(a, claims[b]).with(b, claims[a]);
        // A range that begins with a later entry is a window; the one behind that does not follow then.
        refuses(swapped, a === 0 ? swapped[1].chain.seq : b + 1);
      }),
    );
  });

  it('dropped are refused at the one behind the gap', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10 }), (at) => {
        refuses(claims.toSpliced(at, 1), at + 2);
      }),
    );
  });

  it('doubled are refused at the second', () => {
    fc.assert(
      fc.property(index, (at) => {
        refuses(claims.toSpliced(at, 0, claims[at]), at + 1);
      }),
    );
  });

  it('changed are refused, whichever it is and however little', () => {
    fc.assert(
      fc.property(index, fc.string({ minLength: 1 }), (at, text) => {
        const claim = claims[at];
        const object = `${claim.payload.object}${text.toWellFormed()}`;
        refuses(claims.with(at, { ...claim, payload: { ...claim.payload, object } }), at + 1);
      }),
    );
  });
});

describe('hostile input', () => {
  it('of any bytes gets a verdict', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(verifyBundle(bytes).ok).toBe(false);
      }),
      { numRuns: 2_000 },
    );
  });

  it('of any JSON in any place of a bundle gets a verdict', () => {
    const places = placesIn(sealed(exampleBundle()));
    fc.assert(
      fc.property(fc.constantFrom(...places), fc.jsonValue({ maxDepth: 3 }), fc.boolean(), (path, value, isSigned) => {
        const bundle = sealed(exampleBundle());
        let holder = bundle;
        for (const name of path.slice(0, -1)) holder = holder[name];
        holder[path.at(-1) ?? ''] = value;
        const text = JSON.stringify(bundle);
        const bytes = isSigned && isSealable(bundle) ? bytesOf(sealed(bundle)) : Buffer.from(text);
        const { ok, failed } = verifyBundle(bytes);
        expect(ok || (failed?.reason ?? '').length > 0).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  it('of JSON is read as JSON.parse reads it, wherever that is allowed at all', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value, undefined, 1);
        let read: string;
        try {
          read = canonical(parseJson(Buffer.from(text)));
        } catch (error) {
          expect(String(error)).toMatch(/fraction|beyond 2\^53/);
          return;
        }
        expect(read).toBe(canonicalJson(JSON.parse(text)));
      }),
      { numRuns: 2_000 },
    );
  });

  it('of a hundred megabytes is refused like any other', () => {
    for (const text of ['['.repeat(1e8), `["${'a'.repeat(1e7)}`, '9'.repeat(1e7), ' '.repeat(1e8)]) {
      expect(verifyBundle(Buffer.from(text))).toMatchObject({ ok: false, failed: { stage: 'parse' } });
    }
  });
});

function placesIn(value: Loose): string[][] {
  if (value === null || typeof value !== 'object') return [[]];
  return Object.keys(value).flatMap((name) => [[name], ...placesIn(value[name]).map((path) => [name, ...path])]);
}

function isSealable(bundle: Loose): boolean {
  try {
    return canonicalJson(bundle) !== '';
  } catch {
    return false;
  }
}
