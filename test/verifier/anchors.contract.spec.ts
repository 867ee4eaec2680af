/** Anchors with timestamps of a real authority, made of `openssl ts`: what they prove of a bundle, and what sinks it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { timeStampRequest } from '../../src/audit/tsa.js';
import { verifyBundle } from '../../src/verifier/verify.js';
import { Authority, withTime } from '../audit/tsa.fixture.js';
import { bundleOf, bytesOf, exampleBundle, type Loose, linked, plainClaims, sealed } from './bundles.fixture.js';

const NONCE = Buffer.from('4011223344556677', 'hex');

let authority: Authority;
beforeAll(async () => {
  authority = await Authority.create();
});
afterAll(() => authority.remove());

const tokenOf = (link: string) => authority.token(timeStampRequest(link, NONCE));

function anchored(bundle: Loose, { seq, link }: Loose, proof: Buffer): Buffer {
  const anchor = { type: 'rfc3161', seq, link, at: '2026-03-02T11:00:00Z', ref: 'http://tsa.example/' };
  return bytesOf(sealed({ ...bundle, anchors: [{ ...anchor, proof: proof.toString('base64') }] }));
}

describe('a timestamp in a bundle', () => {
  const bundle = exampleBundle();
  const [, second, third] = bundle.claims.map(({ chain }: Loose) => chain);

  it('S4-104 S4x-02 earns the level, and the verdict says when and by whom', async () => {
    const verdict = verifyBundle(anchored(bundle, second, await tokenOf(second.link)));
    expect(verdict).toMatchObject({
      ok: true,
      level: 'signed, chained (full), anchored (proof verified)',
      facts: { anchors: [{ seq: 2, binds: 'proof', timestamp: { signer: 'O=Scratch, CN=rsa' } }] },
    });
    const genTime = verdict.facts?.anchors[0]?.timestamp?.genTime;
    expect(verdict.proven.join('\n')).toContain(`Entries up to 2 were there by ${genTime}`);
    expect(verdict.notProven.join('\n')).toContain('When it was, of what came after entry 2');
  });

  it('of another link sinks the bundle, and names the entry', async () => {
    const verdict = verifyBundle(anchored(bundle, third, await tokenOf(second.link)));
    expect(verdict).toMatchObject({ ok: false, failed: { stage: 'anchor', seq: 3 } });
    expect(verdict.failed?.reason).toContain('of another link');
  });

  it('of which a bit was flipped sinks the bundle', async () => {
    const token = await tokenOf(third.link);
    token[token.length - 5] = (token[token.length - 5] ?? 0) ^ 1;
    expect(verifyBundle(anchored(bundle, third, token))).toMatchObject({
      ok: false,
      failed: { stage: 'anchor', seq: 3 },
    });
  });

  it('may be five minutes older than its entry, by the other clock, and no more', async () => {
    const token = await tokenOf(third.link);
    const at = (time: string) => authority.sign(withTime(token, new Date(time)), 'rsa');
    const good = verifyBundle(anchored(bundle, third, await at('2026-03-02T08:55:02Z')));
    expect(good).toMatchObject({ ok: true, level: expect.stringContaining('proof verified') });
    const bad = verifyBundle(anchored(bundle, third, await at('2026-03-02T08:55:01Z')));
    expect(bad).toMatchObject({ ok: false, failed: { stage: 'anchor', seq: 3 } });
    expect(bad.failed?.reason).toContain('older than the entry');
  });
});

describe('a timestamp of a head that lies beyond the entries', () => {
  const claims = linked(plainClaims(6));
  const head = claims[5].chain;
  const window = bundleOf(claims.slice(0, 3));
  window.chain.head = { seq: head.seq, link: head.link };

  it('says nothing about them: it is told apart and earns no level', async () => {
    const verdict = verifyBundle(anchored(window, head, await tokenOf(head.link)));
    expect(verdict).toMatchObject({
      ok: true,
      level: 'signed, chained (full)',
      facts: { anchors: [{ seq: 6, binds: 'head only', timestamp: { genTime: expect.any(String) } }] },
    });
    expect(verdict.notProven.join('\n')).toContain('The anchors of the declared head');
  });

  it('sinks the bundle all the same when it does not hold', async () => {
    const verdict = verifyBundle(anchored(window, head, await tokenOf(claims[0].chain.link)));
    expect(verdict).toMatchObject({ ok: false, failed: { stage: 'anchor', seq: 6 } });
  });
});
