import { describe, expect, it } from 'vitest';
import { checkHead, checkNext, linkOf } from '../../src/audit/chain.rules.js';

const FIRST =
  '{"at":"2026-03-02T09:00:00Z","payload":{"action":"project.create","actor":"usr_1","ok":true,"target":"prj_9"},"type":"acme.audit/1"}';
const SECOND =
  '7b226174223a22323032362d30332d30325430393a30303a30312e3235305a222c227061796c6f6164223a7b22616374696f6e223a22613c62266322' +
  '2c226163746f72223a227573725fc3a9222c226e223a2d352c226e6f6e65223a6e756c6c2c226e6f7465223a227461625c7468657265205c22715c22' +
  '205c5c20e280a8205c7530303031227d2c2274797065223a2261636d652e61756469742f31227d';
const LINKS = [
  '0a7cafb8610c333b0f44796dcbb8dbc623fb9e2ddc72765c0da1b6845f63e45f',
  '11c8c3571ab2d6df55bd5990402f334a31f38a082d42a4be1094c01deeadcf33',
] as const;

describe('the link of an entry', () => {
  it('S4-104 is that of the worked example of the open format, awkward characters included', () => {
    expect(linkOf('in_demo', 1, '', FIRST)).toBe(LINKS[0]);
    expect(linkOf('in_demo', 2, LINKS[0], Buffer.from(SECOND, 'hex').toString('utf8'))).toBe(LINKS[1]);
  });
});

describe('a chain is broken', () => {
  const entry = (seq: number, prev: string, claim = 'x') => ({ seq, prev, claim, link: linkOf('c', seq, prev, claim) });
  const start = { seq: 0, link: '' };
  const first = entry(1, '');

  it('nowhere when each entry follows the one before', () => {
    expect(checkNext('c', start, first)).toBeUndefined();
    expect(checkNext('c', first, entry(2, first.link))).toBeUndefined();
    expect(checkHead(first, { seq: 1, link: first.link })).toBeUndefined();
  });

  it('S4-102 at the number that is missing', () => {
    expect(checkNext('c', first, entry(3, first.link))).toEqual({ brokenAt: 2, check: 'gap' });
    expect(checkHead(first, { seq: 2, link: first.link })).toEqual({ brokenAt: 2, check: 'gap' });
  });

  it('S4-102 at the entry that follows another than it says', () => {
    expect(checkNext('c', first, entry(2, 'ff'))).toEqual({ brokenAt: 2, check: 'prev' });
  });

  it('S4-102 at the entry whose content is not what was linked', () => {
    expect(checkNext('c', start, { ...first, claim: 'y' })).toEqual({ brokenAt: 1, check: 'link' });
    expect(checkNext('another', start, first)).toEqual({ brokenAt: 1, check: 'link' });
  });

  it('S4-102 at the head that says another link', () => {
    expect(checkHead(first, { seq: 1, link: 'ff' })).toEqual({ brokenAt: 1, check: 'head' });
  });
});
