import { describe, expect, it, vi } from 'vitest';
import type { ChainStand } from '../../src/audit/chain.js';
import { breakOf, firstBreak } from '../../src/audit/chain.rules.js';
import { ChainKnowledge } from '../../src/audit/chain-knowledge.js';
import { ChainLine, type Recompute } from '../../src/audit/chain-line.js';
import { entryOf, receiptIn } from '../../src/audit/entry.js';
import { entryCursorOf, entryPlaceOf } from '../../src/audit/entry-cursor.rules.js';
import { FIRST, LINKS, SECOND } from './chain.fixture.js';
import { linkOf } from './recompute.fixture.js';

it('S4-104 the link by hand is that of the worked example', () => {
  expect(linkOf('in_demo', { seq: 1, prev: '', claim: FIRST })).toBe(LINKS[0]);
  expect(linkOf('in_demo', { seq: 2, prev: LINKS[0], claim: SECOND })).toBe(LINKS[1]);
});

describe('a look at a chain', () => {
  const whole: ChainStand = {
    chain: 'c',
    seq: 5,
    link: 'e5',
    lastSeq: 5,
    linkAtHead: 'e5',
    linkAtSeen: null,
    anchors: 1,
    strayAnchor: null,
  };

  it('finds nothing wrong with a head that leads to its entry, nor with an empty chain', () => {
    expect(breakOf(whole, undefined)).toBeUndefined();
    expect(breakOf({ ...whole, linkAtSeen: 'e3' }, { seq: 3, link: 'e3', anchors: 0 })).toBeUndefined();
    expect(breakOf({ ...whole, seq: 0, link: '', lastSeq: 0, linkAtHead: null }, undefined)).toBeUndefined();
  });

  it.each<[string, Partial<ChainStand>, object]>([
    ['a head without its entry', { linkAtHead: null }, { brokenAt: 5, check: 'gap' }],
    ['another head', { link: 'ff' }, { brokenAt: 5, check: 'head' }],
    ['entries that the head doesn’t know', { lastSeq: 7 }, { brokenAt: 6, check: 'behind' }],
    ['an anchor of another entry', { strayAnchor: 4 }, { brokenAt: 4, check: 'anchor' }],
    ['an anchor of an entry that is gone', { strayAnchor: 9 }, { brokenAt: 9, check: 'anchor' }],
  ])('S4-102 finds %s', (_, change, broken) => {
    expect(breakOf({ ...whole, ...change }, undefined)).toEqual(broken);
  });

  it('S4-102 finds that a chain no longer leads to a head that was seen', () => {
    expect(breakOf(whole, { seq: 8, link: 'e8', anchors: 0 })).toEqual({ brokenAt: 6, check: 'behind' });
    expect(breakOf({ ...whole, linkAtSeen: 'other' }, { seq: 3, link: 'e3', anchors: 0 })).toEqual({
      brokenAt: 3,
      check: 'behind',
    });
  });

  it('S4-102 S4x-02 finds that a timestamp is gone that was there', () => {
    const seen = { seq: 4, link: 'e4', anchors: 2 };
    expect(breakOf({ ...whole, linkAtSeen: 'e4' }, seen)).toEqual({ brokenAt: 4, check: 'anchor' });
    expect(breakOf({ ...whole, linkAtSeen: 'e4', anchors: 2 }, seen)).toBeUndefined();
  });

  it('names the first of several breaks', () => {
    expect(breakOf({ ...whole, link: 'ff', strayAnchor: 2 }, undefined)).toEqual({ brokenAt: 2, check: 'anchor' });
    const [gap, head] = [{ brokenAt: 5, check: 'gap' } as const, { brokenAt: 5, check: 'head' } as const];
    expect(firstBreak(undefined, gap, head)).toBe(gap);
    expect(firstBreak(undefined, undefined)).toBeUndefined();
  });
});

describe('what a process knows of chains', () => {
  const broken = { brokenAt: 3, check: 'link' } as const;

  it('a break is told once, another one again, and that it holds again', () => {
    const log = { error: vi.fn(), info: vi.fn() };
    const knowledge = new ChainKnowledge(log);
    knowledge.noteHeld('c', { seq: 9, link: 'x', anchors: 0 }, undefined);
    expect(knowledge.heldSeq('c')).toBe(9);
    knowledge.noteBroken('c', broken);
    knowledge.noteBroken('c', { ...broken });
    expect(log.error.mock.calls).toEqual([
      [{ code: 'audit_chain_broken', chain: 'c', seq: 3, check: 'link' }, expect.any(String)],
    ]);
    expect(knowledge.heldSeq('c'), 'it held once, which counts no more').toBeUndefined();
    expect([knowledge.chainsBroken.length, knowledge.verifiedSeq]).toEqual([1, 2]);
    knowledge.noteBroken('c', { brokenAt: 2, check: 'gap' });
    expect(log.error).toHaveBeenCalledTimes(2);
    knowledge.noteHeld('c', { seq: 9, link: 'x', anchors: 0 }, knowledge.broken('c'));
    expect(log.info.mock.calls).toEqual([[{ code: 'audit_chain_holds', chain: 'c', seq: 9 }, expect.any(String)]]);
    expect([knowledge.chainsBroken.length, knowledge.verifiedSeq, knowledge.broken('c')]).toEqual([0, 9, undefined]);
  });

  it('a verification that began before a break was found doesn’t take it back', () => {
    const knowledge = new ChainKnowledge();
    const before = knowledge.broken('c');
    knowledge.noteBroken('c', broken);
    knowledge.noteHeld('c', { seq: 9, link: 'x', anchors: 0 }, before);
    expect(knowledge.broken('c')).toEqual(broken);
    expect(knowledge.seen('c')).toBeUndefined();
    expect(knowledge.heldSeq('c')).toBeUndefined();
  });

  it('adds up what was verified over all chains, and never forgets a head', () => {
    const knowledge = new ChainKnowledge();
    knowledge.noteVerified('a', 10);
    knowledge.noteVerified('a', 4);
    knowledge.noteHeld('b', { seq: 5, link: 'x', anchors: 0 }, undefined);
    expect(knowledge.verifiedSeq).toBe(15);
    knowledge.noteHeld('b', { seq: 4, link: 'y', anchors: 0 }, undefined);
    expect(knowledge.seen('b')).toEqual({ seq: 5, link: 'x', anchors: 0 });
    knowledge.noteHeld('b', { seq: 5, link: 'x', anchors: 2 }, undefined);
    knowledge.noteHeld('b', { seq: 5, link: 'x', anchors: 1 }, undefined);
    expect(knowledge.seen('b')?.anchors, 'nor a timestamp').toBe(2);
    knowledge.noteHeld('empty', { seq: 0, link: '', anchors: 0 }, undefined);
    expect(knowledge.chainsSeen).toEqual(['b']);
  });
});

describe('the recomputations of a chain', () => {
  /** Begins what it is told to, and lets the test end each. */
  function lineUnderWay() {
    const begun: {
      range: object;
      signal: AbortSignal;
      end: () => void;
      tell: (progress: { verified: number; of: number }) => void;
    }[] = [];
    const recompute: Recompute = (range, tell, signal) =>
      new Promise((resolve, reject) => {
        const verification = { ok: true, chain: 'c', entries: begun.length, head: { seq: 0, link: '' }, anchors: 0 };
        begun.push({ range, signal, tell, end: () => resolve({ ...verification, tookMs: 0 }) });
        signal.addEventListener('abort', () => reject(new Error('nobody waits')));
      });
    return { line: new ChainLine(recompute), begun };
  }

  it('go one at a time, and who asks for the same meanwhile shares the one that has not begun', async () => {
    const { line, begun } = lineUnderWay();
    const first = line.ask({}, {});
    const shared = [line.ask({}, {}), line.ask({}, {})];
    const window = line.ask({ from: 2, to: 3 }, {});
    await vi.waitFor(() => expect(begun).toHaveLength(1));
    begun[0]?.end();
    expect(await first).toMatchObject({ entries: 0 });
    await vi.waitFor(() => expect(begun).toHaveLength(2));
    begun[1]?.end();
    const [a, b] = await Promise.all(shared);
    expect(a).toBe(b);
    await vi.waitFor(() => expect(begun).toHaveLength(3));
    expect(begun[2]?.range).toEqual({ from: 2, to: 3 });
    expect(line.isEmpty).toBe(false);
    begun[2]?.end();
    await window;
    expect(line.isEmpty).toBe(true);
  });

  it('end when the last who asked has gone, and not before', async () => {
    const { line, begun } = lineUnderWay();
    const running = line.ask({}, {});
    const [one, other] = [new AbortController(), new AbortController()];
    const tolds = [vi.fn(), vi.fn()] as const;
    const asked = [
      line.ask({}, { signal: one.signal, onProgress: tolds[0] }),
      line.ask({}, { signal: other.signal, onProgress: tolds[1] }),
    ] as const;
    await vi.waitFor(() => expect(begun).toHaveLength(1));
    begun[0]?.end();
    await running;
    await vi.waitFor(() => expect(begun).toHaveLength(2));
    one.abort();
    begun[1]?.tell({ verified: 1, of: 2 });
    expect(begun[1]?.signal.aborted).toBe(false);
    expect(tolds[0]).not.toHaveBeenCalled();
    expect(tolds[1]).toHaveBeenCalledWith({ verified: 1, of: 2 });
    const outcomes = Promise.allSettled(asked);
    other.abort();
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(line.isEmpty).toBe(true);
  });

  it('a place that everybody has left before its turn is never begun, and nobody joins it', async () => {
    const { line, begun } = lineUnderWay();
    const running = line.ask({}, {});
    const gone = new AbortController();
    const left = expect(line.ask({}, { signal: gone.signal })).rejects.toMatchObject({ name: 'AbortError' });
    gone.abort();
    const joining = line.ask({}, {});
    await vi.waitFor(() => expect(begun).toHaveLength(1));
    begun[0]?.end();
    await running;
    await left;
    await vi.waitFor(() => expect(begun).toHaveLength(2));
    begun[1]?.end();
    expect(await joining).toMatchObject({ entries: 1 });
    await expect(line.ask({}, { signal: gone.signal })).rejects.toMatchObject({ name: 'AbortError' });
  });
});

describe('the line of a chain', () => {
  /** Waits for ever, or until who asked has gone. */
  const endless: Recompute = (_range, _tell, signal) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

  it('lets sixteen wait, and tells others to ask again; who leaves makes room, and who shares needs none', async () => {
    const line = new ChainLine(endless);
    const gone = new AbortController();
    const asked = Array.from({ length: 17 }, (_, n) => ({ from: n + 1, to: n + 1, leaves: new AbortController() })).map(
      ({ from, to, leaves }) => ({ leaves, answer: line.ask({ from, to }, { signal: leaves.signal }) }),
    );
    const ends = Promise.allSettled(asked.map(({ answer }) => answer));
    const late = { from: 99, to: 99 };
    await expect(line.ask(late, {})).rejects.toMatchObject({ code: 'unavailable', retryAfterSeconds: 5 });
    const sharing = line.ask({ from: 2, to: 2 }, { signal: gone.signal });
    // In the middle of the line, while the first is under way.
    asked[5]?.leaves.abort();
    await expect(asked[5]?.answer).rejects.toMatchObject({ name: 'AbortError' });
    const taken = line.ask(late, { signal: gone.signal });
    const others = Promise.allSettled([sharing, taken]);
    await expect(line.ask({ from: 98, to: 98 }, {})).rejects.toMatchObject({ code: 'unavailable' });
    gone.abort();
    for (const { leaves } of asked) leaves.abort();
    for (const { status } of [...(await ends), ...(await others)]) expect(status).toBe('rejected');
    expect(line.isEmpty).toBe(true);
  });
});

describe('an entry as callers see it', () => {
  const row = { chain: 'org_x', seq: 7, link: 'ab' };

  it.each(['', '{', '7', 'null', '[]', '"text"', '{"payload":[1],"at":5}', '{"payload":"x"}'])(
    'S4-102 whose stored text was tampered with until it is %j is shown without members',
    (claim) => {
      expect(entryOf({ ...row, claim })).toEqual({
        seq: 7,
        at: null,
        action: null,
        principal: null,
        principalName: null,
        object: null,
        run: null,
        payload: null,
        receipt: 'org_x:7:ab',
      });
    },
  );

  it('says what its text says, and null for what is of another type', () => {
    const claim = '{"at":"2026-03-02T09:00:00.000Z","payload":{"action":"a.b","object":5},"type":"capstan.audit/1"}';
    expect(entryOf({ ...row, claim })).toMatchObject({
      at: '2026-03-02T09:00:00.000Z',
      action: 'a.b',
      object: null,
      run: null,
      payload: { action: 'a.b', object: 5 },
    });
    for (const [object, run] of [
      ['tok_1', null],
      ['run_1', 'run_1'],
    ]) {
      expect(entryOf({ ...row, claim: JSON.stringify({ payload: { object } }) })).toMatchObject({ object, run });
    }
  });
});

describe('a receipt', () => {
  const link = 'a'.repeat(64);

  it('names chain, number and link', () => {
    expect(receiptIn(`org_1.x-y:42:${link}`)).toEqual({ chain: 'org_1.x-y', seq: 42, link });
  });

  it.each([
    '',
    'org_1',
    `org_1:0:${link}`,
    `org_1:01:${link}`,
    `org_1:-1:${link}`,
    `org_1:1:${link}0`,
    `org_1:1:${link.toUpperCase()}`,
    `org_1:1:${link}\n`,
    `org:1:1:${link}`,
    `org_1:9999999999999999:${link}`,
    `${'o'.repeat(65)}:1:${link}`,
  ])('is not %j', (text) => {
    expect(receiptIn(text)).toBeUndefined();
  });
});

describe('the cursor of a list of entries', () => {
  it('leads back to its place', () => {
    const place = { chain: 'org_x', below: 51 };
    expect(entryPlaceOf(entryCursorOf(place))).toEqual(place);
  });

  it.each([
    undefined,
    5,
    '',
    'b3JnX3gg',
    Buffer.from('org_x 0').toString('base64url'),
    Buffer.from('org_x 05').toString('base64url'),
    Buffer.from('org_x 5 ').toString('base64url'),
    Buffer.from('org x 5').toString('base64url'),
    `${Buffer.from('org_x 5').toString('base64url')}=`,
    'A'.repeat(300),
  ])('is not %j', (cursor) => {
    expect(entryPlaceOf(cursor)).toBeUndefined();
  });
});
