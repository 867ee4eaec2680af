/** The document that is signed, from stored text: byte for byte what the format says, and what our verifier reads. */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BundleContent, claimsOf, type StoredEntry, signBundle } from '../../src/audit/bundle.js';
import { chooseWindow } from '../../src/audit/bundle.rules.js';
import { canonicalJson, sha256Hex } from '../../src/kernel/json.js';
import { fingerprintOf, publicKeyIn, SigningKey } from '../../src/kernel/signing-key.js';
import { verifyBundle } from '../../src/verifier/verify.js';

const KEY = SigningKey.of(Uint8Array.from({ length: 32 }, (_, index) => index + 1));
const FINGERPRINT = 'sha256:65b60673d6ed884bf01c2c222d82ada0740f29ac3355d6a925c81f17f47a27b8';

/** Entries of these claims, linked as the format says. */
function linked(chain: string, claims: readonly string[], first = { seq: 1, prev: '' }): StoredEntry[] {
  let { seq, prev } = first;
  return claims.map((claim) => {
    const link = sha256Hex(
      canonicalJson({ claim: `sha256:${sha256Hex(claim)}`, domain: 'loomseal-chain-v1', install_id: chain, prev, seq }),
    );
    const entry = { seq, claim, prev, link };
    [seq, prev] = [seq + 1, link];
    return entry;
  });
}

function contentOf(entries: readonly StoredEntry[], more: Partial<BundleContent> = {}): BundleContent {
  const { seq, link } = entries.at(-1) ?? { seq: 0, link: '' };
  return {
    id: 'lsb_demo',
    createdAt: '2026-03-02T10:00:00Z',
    product: { name: 'acme', version: '1.0.0' },
    chain: 'in_demo',
    subject: 'org_1',
    head: { seq, link },
    claims: [claimsOf(entries)],
    anchors: [],
    ...more,
  };
}

const claimOf = (payload: unknown) =>
  canonicalJson({ at: '2026-03-02T09:00:00.000Z', payload, type: 'capstan.audit/1' });

describe('a bundle', () => {
  it('S4-104 the worked example of the format comes out byte for byte, signature included', async () => {
    const entries = linked('in_demo', [
      '{"at":"2026-03-02T09:00:00Z","payload":{"action":"project.create","actor":"usr_1","ok":true,"target":"prj_9"},"type":"acme.audit/1"}',
      canonicalJson({
        at: '2026-03-02T09:00:01.250Z',
        payload: { actor: 'usr_é', action: 'a<b&c', n: -5, none: null, note: 'tab\there "q" \\ \u2028 \u0001' },
        type: 'acme.audit/1',
      }),
      canonicalJson({
        at: '2026-03-02T09:00:02Z',
        evidence: [
          {
            digest: 'sha256:fe482b5e524c67728f4f2b4f430cd10d9a25659641f995ae537b282ccd181e0b',
            media_type: 'text/plain',
            role: 'artifact',
          },
        ],
        payload: { a: {}, b: [1, {}], '😀': 1, '\ufb33': 2 },
        type: 'acme.audit/1',
      }),
    ]);
    expect(entries.map(({ link }) => link)).toEqual([
      '0a7cafb8610c333b0f44796dcbb8dbc623fb9e2ddc72765c0da1b6845f63e45f',
      '11c8c3571ab2d6df55bd5990402f334a31f38a082d42a4be1094c01deeadcf33',
      '9159ad3212881e6c378b8e3c66f6855ae1a8383c4029f4e537654cef9ec5e8ab',
    ]);
    const claims = entries.map((entry) => claimsOf([entry]));
    const bytes = await signBundle(contentOf(entries, { claims }), KEY);
    const { signatures, ...rest } = JSON.parse(bytes.toString());
    const message = Buffer.from(canonicalJson({ ...rest, signatures: [] }));
    expect(message).toHaveLength(1_513);
    expect(createHash('sha256').update(message).digest('hex')).toBe(
      '624620ce8d1397d9cf6591a9561cbfd43bd7aea0665b1df716d863277faf278b',
    );
    expect(signatures).toEqual([
      {
        alg: 'ed25519',
        key_id: FINGERPRINT,
        sig: 'FNc+XGgrvJuiwlge00DjUOJSuKT1VvveRGGNkhqzTy9q5JhR9VsXUOGZwu0M12HPfrfQBe4xyOLhk348CLamDg==',
      },
    ]);
    expect(bytes.toString()).toBe(`${canonicalJson({ ...rest, signatures })}\n`);
    expect(verifyBundle(bytes, { fingerprint: FINGERPRINT })).toMatchObject({
      ok: true,
      level: 'signed, chained (full)',
    });
  });

  it('S4-104 F137 is canonical and verifies whatever strings and integers its entries hold', async () => {
    const awkward = fc.constantFrom(
      '"',
      '\\',
      '",',
      '"payload":{',
      '"chain":',
      '\u2028',
      '😀',
      'é',
      'e\u0301',
      '\u0001',
      '1e2',
    );
    const text = fc
      .array(fc.oneof(awkward, fc.string({ unit: 'grapheme' })))
      .map((parts) => parts.join('').toWellFormed());
    const key = fc
      .oneof(text, fc.constantFrom('\ufb33', '😀', 'a'.repeat(255), ''))
      .filter((name) => name !== '__proto__');
    const payload = fc.dictionary(key, fc.oneof(text, fc.maxSafeInteger(), fc.boolean(), fc.constant(null)));
    await fc.assert(
      fc.asyncProperty(fc.array(payload, { minLength: 1, maxLength: 5 }), async (payloads) => {
        const entries = linked(
          'in_demo',
          payloads.map((each) => claimOf({ ...each })),
        );
        const bytes = await signBundle(contentOf(entries), KEY);
        expect(bytes.toString()).toBe(`${canonicalJson(JSON.parse(bytes.toString()))}\n`);
        expect(verifyBundle(bytes, { fingerprint: FINGERPRINT }).failed).toBeUndefined();
      }),
      { numRuns: 200 },
    );
  });

  it('S4-104 flipping any byte of it is found', async () => {
    const bytes = await signBundle(
      contentOf(linked('in_demo', [claimOf({ action: 'a' }), claimOf({ action: 'b' })])),
      KEY,
    );
    for (let at = 0; at < bytes.length - 1; at += 1) {
      const flipped = Buffer.from(bytes);
      flipped[at] = (flipped[at] ?? 0) ^ 1;
      expect(verifyBundle(flipped, { fingerprint: FINGERPRINT }).ok, `byte ${at}`).toBe(false);
    }
  });

  it.each([
    ['a member out of its order', `{"at":"2026-03-02T09:00:00.000Z","type":"capstan.audit/1","payload":{}}`],
    ['a space', `{"at":"2026-03-02T09:00:00.000Z","payload": {},"type":"capstan.audit/1"}`],
    [
      'an escape that needn’t be',
      `{"at":"2026-03-02T09:00:00.000Z","payload":{"a":"\\u0041"},"type":"capstan.audit/1"}`,
    ],
    ['a number with a fraction', `{"at":"2026-03-02T09:00:00.000Z","payload":{"a":1.0},"type":"capstan.audit/1"}`],
    ['a name twice', `{"at":"2026-03-02T09:00:00.000Z","payload":{"a":1,"a":1},"type":"capstan.audit/1"}`],
    ['no text of ours at all', 'gone'],
  ])(
    'F137 made of an entry that holds %s, though its link is that text’s, it is refused by the verifier',
    async (_, claim) => {
      const bytes = await signBundle(contentOf(linked('in_demo', [claimOf({ action: 'a' }), claim])), KEY);
      expect(verifyBundle(bytes, { fingerprint: FINGERPRINT }).ok).toBe(false);
    },
  );

  it('a window tells the head of the whole chain', async () => {
    const entries = linked(
      'in_demo',
      Array.from({ length: 5 }, (_, n) => claimOf({ n })),
    );
    const head = { seq: 5, link: entries[4]?.link ?? '' };
    const { ok, facts } = verifyBundle(await signBundle(contentOf(entries.slice(1, 3), { head }), KEY));
    expect(ok).toBe(true);
    expect(facts?.chain).toMatchObject({ from: 2, to: 3, head, headMatched: false });
  });
});

describe('a signing key', () => {
  it('has the public half and the fingerprint of the worked example, and says nothing else', () => {
    expect(KEY).toMatchObject({ publicKey: 'ebVWLo/mVPlAeLES6KmLp5AfhTrmlb7X4OORC60ElmQ=', fingerprint: FINGERPRINT });
    const { fingerprint, publicKey } = KEY;
    expect(JSON.parse(JSON.stringify(KEY))).toEqual({ fingerprint, publicKey, key: {} });
    expect(fingerprintOf(publicKeyIn(publicKey) ?? Buffer.alloc(0))).toBe(fingerprint);
  });

  it.each(['', 'ebVWLo/mVPlAeLES6KmLp5AfhTrmlb7X4OORC60ElmQ', 'ebVWLo_mVPlAeLES6KmLp5AfhTrmlb7X4OORC60ElmQ=', 'AAAA'])(
    'a public key is spelled in one way: not %j',
    (text) => expect(publicKeyIn(text)).toBeUndefined(),
  );
});

describe('the window of a bundle', () => {
  it.each([
    ['the whole of a short chain', {}, 7, { from: 1 }],
    ['the newest of a long one, with room for the export', {}, 20_000, { from: 10_002 }],
    ['the whole while one more fits', {}, 9_999, { from: 1 }],
    ['no longer the whole', {}, 10_000, { from: 2 }],
    ['from a number to the head', { from: 3 }, 7, { from: 3 }],
    ['up to a number', { to: 5 }, 7, { from: 1, to: 5 }],
    ['up to the last there is', { from: 2, to: 7 }, 7, { from: 2, to: 7 }],
    ['up to beyond the head is to the head', { from: 2, to: 8 }, 7, { from: 2 }],
    ['nothing behind the head', { from: 8 }, 7, 'empty'],
    ['nothing between', { from: 5, to: 4 }, 7, 'empty'],
    ['nothing of an empty chain', {}, 0, 'empty'],
    ['as wide as it may be', { from: 2, to: 10_001 }, 20_000, { from: 2, to: 10_001 }],
    [
      'wider: adjacent windows',
      { from: 2, to: 20_002 },
      20_002,
      {
        windows: [
          { from: 2, to: 10_001 },
          { from: 10_002, to: 20_001 },
          { from: 20_002, to: 20_002 },
        ],
      },
    ],
    [
      'wider to the head',
      { from: 1 },
      10_001,
      {
        windows: [
          { from: 1, to: 10_000 },
          { from: 10_001, to: 10_001 },
        ],
      },
    ],
  ])('%s', (_, asked, head, choice) => {
    expect(chooseWindow(asked, head)).toEqual(choice);
  });
});
