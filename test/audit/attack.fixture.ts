/**
 * Attacks on a chain as pure changes of what is stored, each with the number and the check that it must be found by. The
 * attacker has all rights: nothing that a table would refuse holds him up.
 */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { canonicalJson } from '../../src/kernel/json.js';
import { type Break, type Columns, linkOf, type StoredChain, type StoredEntry } from './recompute.fixture.js';

/** What the attacker chooses: numbers to take places from, and a text. */
export interface Choice {
  readonly place: number;
  readonly other: number;
  readonly text: string;
}

export interface Scene extends StoredChain {
  readonly chain: string;
  /** A place in the chain, and another one. */
  readonly at: StoredEntry;
  readonly other: StoredEntry;
  readonly last: StoredEntry;
  readonly text: string;
}

export type Attack = (scene: Scene) => StoredChain & { readonly found: Break };

export const texts = fc.array(fc.string({ unit: 'grapheme' }).filter(isStorable), { minLength: 2, maxLength: 9 });
export const choice: fc.Arbitrary<Choice> = fc.record({
  place: fc.nat(),
  other: fc.nat(),
  text: fc.string({ unit: 'grapheme', minLength: 1 }).filter(isStorable),
});

function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** What an attacker sees who chose these places; the chain has at least two entries. */
export function sceneOf(chain: string, stored: StoredChain, { place, other, text }: Choice): Scene {
  const { entries } = stored;
  const index = place % entries.length;
  const [at, last] = [entries[index], entries.at(-1)];
  const another = entries[(index + 1 + (other % (entries.length - 1))) % entries.length];
  if (!at || !last || !another) throw new Error('the chain has no two entries');
  return { ...stored, chain, at, last, other: another, text };
}

function replaced(entries: readonly StoredEntry[], entry: StoredEntry): StoredEntry[] {
  return entries.map((old) => (old.seq === entry.seq ? entry : old));
}

/** Another claim in the place of one, its links left as they are. */
function reclaimed(rewrite: (claim: Claim, scene: Scene) => unknown): Attack {
  return (scene) => {
    const { entries, head, at } = scene;
    const claim = canonicalJson(rewrite(JSON.parse(at.claim) as Claim, scene) as never);
    return { entries: replaced(entries, { ...at, claim }), head, found: { brokenAt: at.seq, check: 'link' } };
  };
}

interface Claim {
  readonly at: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly type: string;
}

/** These entries from number `from` on, linked anew onto what is before them. */
export function relinked(chain: string, entries: readonly StoredEntry[], from: number): StoredEntry[] {
  let link = entries.find(({ seq }) => seq === from - 1)?.link ?? '';
  return entries.map((entry) => {
    if (entry.seq < from) return entry;
    const made = { ...entry, prev: link };
    link = linkOf(chain, made);
    return { ...made, link };
  });
}

function appended({ entries }: Scene, forged: StoredEntry, check: Break['check']): StoredChain & { found: Break } {
  return { entries: [...entries, forged], head: forged, found: { brokenAt: forged.seq, check } };
}

function flipped(hex: string, n: number): string {
  if (hex === '') return '00';
  const place = n % hex.length;
  const digit = (Number.parseInt(hex[place] ?? '0', 16) ^ 1).toString(16);
  return hex.slice(0, place) + digit + hex.slice(place + 1);
}

/** The same entry with other words beside it. */
function misled(beside: (entry: StoredEntry, scene: Scene) => Partial<Columns>): Attack {
  return (scene) => {
    const { entries, head, at } = scene;
    const entry = { ...at, beside: { ...at.beside, ...beside(at, scene) } };
    return { entries: replaced(entries, entry), head, found: { brokenAt: at.seq, check: 'column' } };
  };
}

const EMPTY = { seq: 0, link: '' };

const FORGED = canonicalJson({
  at: '2026-01-01T00:00:00.000Z',
  payload: { action: 'forged' },
  type: 'capstan.audit/1',
});
/** An entry with that content, and the columns that belong to it. */
export const FORGERY = { claim: FORGED, beside: { action: 'forged', at: '2026-01-01T00:00:00.000Z', runId: null } };

export const ATTACKS: Readonly<Record<string, Attack>> = {
  'another payload': reclaimed((claim, { text }) => ({ ...claim, payload: { ...claim.payload, text: `${text}!` } })),
  'a member more': reclaimed((claim, { text }) => ({ ...claim, payload: { ...claim.payload, more: text } })),
  'another time': reclaimed((claim) => ({ ...claim, at: new Date(Date.parse(claim.at) - 1).toISOString() })),
  'another type': reclaimed((claim) => ({ ...claim, type: 'capstan.audit/2' })),
  'the claim of another entry': reclaimed((_, { other }) => JSON.parse(other.claim)),
  'the same claim, written differently': ({ entries, head, at }) => ({
    entries: replaced(entries, { ...at, claim: `${at.claim} ` }),
    head,
    found: { brokenAt: at.seq, check: 'link' },
  }),
  'another action beside it': misled((_, { text }) => ({ action: `test.made${text}` })),
  'an action beside it that goes on into what follows': misled(({ claim }) => ({
    action: claim.slice(claim.indexOf('test.made'), claim.lastIndexOf('"')),
  })),
  'another time beside it': misled(({ beside: { at } }, { text }) => ({
    at: new Date(Date.parse(at) + text.length).toISOString(),
  })),
  'a run beside it, or none': misled(({ beside: { runId } }) => ({ runId: runId === null ? randomUUID() : null })),
  'a bit of a link': ({ entries, head, at, text }) => ({
    entries: replaced(entries, { ...at, link: flipped(at.link, text.length) }),
    head,
    found: { brokenAt: at.seq, check: 'link' },
  }),
  'a bit of a previous link': ({ entries, head, last, text }) => ({
    entries: replaced(entries, { ...last, prev: flipped(last.prev, text.length) }),
    head,
    found: { brokenAt: last.seq, check: 'prev' },
  }),
  'a previous link cut off': ({ entries, head, last }) => ({
    entries: replaced(entries, { ...last, prev: '' }),
    head,
    found: { brokenAt: last.seq, check: 'prev' },
  }),
  'a rewritten entry that links, with what follows left': ({ chain, entries, head, at, last }) => {
    const forged = { ...at, ...FORGERY };
    return {
      entries: replaced(entries, { ...forged, link: linkOf(chain, forged) }),
      head,
      found: at.seq === last.seq ? { brokenAt: at.seq, check: 'head' } : { brokenAt: at.seq + 1, check: 'prev' },
    };
  },
  'everything from a rewritten entry on, the head left': ({ chain, entries, head, at, last }) => ({
    entries: relinked(chain, replaced(entries, { ...at, ...FORGERY }), at.seq),
    head,
    found: { brokenAt: last.seq, check: 'head' },
  }),
  'an entry taken out': ({ entries, head, at }) => ({
    entries: entries.filter(({ seq }) => seq !== at.seq),
    head,
    found: { brokenAt: at.seq, check: 'gap' },
  }),
  'an entry taken out and the numbers closed': ({ entries, at, other }) => {
    // Not the last: that is a tail cut off, which the chain alone does not show.
    const gone = Math.min(at.seq, other.seq);
    const moved = entries.filter(({ seq }) => seq !== gone).map((e) => (e.seq > gone ? { ...e, seq: e.seq - 1 } : e));
    return { entries: moved, head: moved.at(-1) ?? EMPTY, found: { brokenAt: gone, check: 'prev' } };
  },
  'two entries that changed places': ({ entries, head, at, other }) => ({
    entries: entries.map((entry) => {
      if (entry.seq === at.seq) return { ...other, seq: at.seq };
      return entry.seq === other.seq ? { ...at, seq: other.seq } : entry;
    }),
    // A last one that changed places leaves its head, but the places before it are found first.
    head,
    found: { brokenAt: Math.min(at.seq, other.seq), check: 'prev' },
  }),
  'the tail cut off, the head left': ({ entries, head, at }) => ({
    entries: entries.filter(({ seq }) => seq < at.seq),
    head,
    found: { brokenAt: at.seq, check: 'gap' },
  }),
  'the head moved back, the tail left': ({ entries, at }) => ({
    entries,
    head: entries.find(({ seq }) => seq === at.seq - 1) ?? EMPTY,
    found: { brokenAt: at.seq, check: 'behind' },
  }),
  'the head of another place': ({ entries, head, other, at }) => ({
    entries,
    head: { seq: head.seq, link: (other.seq === head.seq ? at : other).link },
    found: { brokenAt: head.seq, check: 'head' },
  }),
  'a head that goes further': ({ entries, head }) => ({
    entries,
    head: { ...head, seq: head.seq + 1 },
    found: { brokenAt: head.seq + 1, check: 'gap' },
  }),
  'an entry once more, under the next number': (scene) =>
    appended(scene, { ...scene.at, seq: scene.last.seq + 1 }, 'prev'),
  'a forged entry behind another than the last': (scene) => {
    const { chain, other, at, last } = scene;
    const before = other.seq === last.seq ? at : other;
    const forged = { seq: last.seq + 1, ...FORGERY, prev: before.link };
    return appended(scene, { ...forged, link: linkOf(chain, forged) }, 'prev');
  },
  'a forged entry that begins the chain anew': (scene) => {
    const forged = { seq: scene.last.seq + 1, ...FORGERY, prev: '' };
    return appended(scene, { ...forged, link: linkOf(scene.chain, forged) }, 'prev');
  },
  'a forged entry linked for another chain': (scene) => {
    const forged = { seq: scene.last.seq + 1, ...FORGERY, prev: scene.last.link };
    return appended(scene, { ...forged, link: linkOf('in_another', forged) }, 'link');
  },
  'a forged entry linked for another number': (scene) => {
    const forged = { seq: scene.last.seq + 1, ...FORGERY, prev: scene.last.link };
    return appended(scene, { ...forged, link: linkOf(scene.chain, { ...forged, seq: scene.at.seq }) }, 'link');
  },
  'a forged entry that leaves a number out': (scene) => {
    const forged = { seq: scene.last.seq + 2, ...FORGERY, prev: scene.last.link };
    const { entries, head, found } = appended(scene, { ...forged, link: linkOf(scene.chain, forged) }, 'gap');
    return { entries, head, found: { ...found, brokenAt: scene.last.seq + 1 } };
  },
};
