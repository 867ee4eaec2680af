/**
 * Several bundles of one chain as one range. Each was verified by itself; here they must be of the same chain and key,
 * follow one another without a gap, and say the same wherever two of them speak of the same entry.
 */
import { checkEvidence, type EvidenceOptions } from './evidence.js';
import { Refusal } from './refusal.js';
import { shown } from './shown.js';
import { checkBeats } from './spans.js';
import type { ChainFacts, Facts, Verdict } from './verdict.js';
import { accepted, refused, type Window, withChecks } from './verify.js';

export interface Part {
  readonly file: string;
  readonly verdict: Verdict;
  /** Missing when the bundle did not verify. */
  readonly window?: Window;
}

interface Piece {
  readonly file: string;
  readonly facts: Facts;
  readonly chain: ChainFacts;
  readonly window: Window;
}

/** Of parts that all verified. Facts about the file itself, such as its id, are those of the newest. */
export function joinParts(parts: readonly Part[], options: EvidenceOptions): Verdict {
  const notes = [...new Set(parts.flatMap(({ verdict }) => verdict.notes))];
  try {
    const pieces = parts.map(pieceOf).sort((a, b) => a.chain.from - b.chain.from || a.chain.to - b.chain.to);
    return accepted(joinedFacts(pieces, joinedLinks(pieces), options), notes);
  } catch (error) {
    return refused(error, undefined, notes);
  }
}

function pieceOf({ file, verdict: { facts }, window }: Part): Piece {
  if (facts?.chain === undefined || window === undefined)
    return refuse(`${shown(file)} has no chain: nothing joins it`);
  return { file: shown(file), facts, chain: facts.chain, window };
}

/** In the order of the entries. A piece may overlap those before it, as long as it agrees with them. */
function joinedLinks(pieces: readonly Piece[]): readonly string[] {
  const [first] = pieces;
  if (first === undefined) return [];
  const { from } = first.chain;
  const links: string[] = [];
  for (const piece of pieces) {
    const { file, chain, window } = piece;
    checkSameChain(first, piece);
    const next = from + links.length;
    if (links.length > 0 && chain.from > next) {
      refuse(`entries ${next} to ${chain.from - 1} are in none of the files: ${file} begins behind them`, next);
    }
    const before = links[chain.from - from - 1] ?? first.window.prev;
    if (window.prev !== before) refuse(`${file} does not follow the entry before it: prev is another link`, chain.from);
    for (const [index, link] of window.links.entries()) {
      const known = links[chain.from - from + index];
      if (known === undefined) links.push(link);
      else if (known !== link) {
        refuse(
          `${file} holds another entry than a file that begins before it: the chain was made anew`,
          chain.from + index,
        );
      }
    }
  }
  checkHeads(pieces, from, links);
  return links;
}

function checkSameChain(a: Piece, b: Piece): void {
  const differs = (what: string) => refuse(`${a.file} and ${b.file} are of two chains: ${what} differs`);
  const isOtherKey = a.facts.fingerprint !== b.facts.fingerprint;
  if (a.chain.installId !== b.chain.installId) differs('the installation');
  if (a.facts.producer.installId !== b.facts.producer.installId) differs('the producer');
  if (a.chain.profile !== b.chain.profile || a.chain.isKeyed !== b.chain.isKeyed) differs('the profile');
  if (a.facts.subject.type !== b.facts.subject.type || a.facts.subject.id !== b.facts.subject.id)
    differs('the subject');
  if (isOtherKey) refuse(`${a.file} and ${b.file} are signed under two keys: verify those of each key by themselves`);
}

/** A head that one file only declares may be an entry, or the head, of another. */
function checkHeads(pieces: readonly Piece[], from: number, links: readonly string[]): void {
  const declared = new Map<number, string>();
  for (const { file, chain } of pieces) {
    const { seq, link } = chain.head;
    const known = links[seq - from] ?? declared.get(seq) ?? link;
    if (known !== link) refuse(`${file} declares a head that another file contradicts`, seq);
    declared.set(seq, link);
  }
}

function joinedFacts(pieces: readonly Piece[], links: readonly string[], options: EvidenceOptions): Facts {
  const oldest = pieces.reduce((a, b) => (b.chain.from < a.chain.from ? b : a));
  const newest = pieces.reduce((a, b) => (b.chain.to > a.chain.to ? b : a));
  const { head } = pieces.map(({ chain }) => chain).reduce((a, b) => (b.head.seq > a.head.seq ? b : a));
  const { from } = oldest.chain;
  const to = from + links.length - 1;
  const all = pieces.map(({ facts }) => facts);
  const beats = new Map(pieces.flatMap(({ window }) => window.beats.map((beat) => [beat.seq, beat] as const)));
  const anchors = new Map(
    all.flatMap((facts) => facts.anchors.map((anchor) => [JSON.stringify(anchor), anchor] as const)),
  );
  const facts: Facts = {
    ...newest.facts,
    claims: {
      count: links.length,
      types: [...new Set(all.flatMap(({ claims }) => claims.types))].sort(),
      firstAt: oldest.facts.claims.firstAt,
      lastAt: newest.facts.claims.lastAt,
    },
    chain: { ...newest.chain, from, to, head, headMatched: head.seq === to },
  };
  return withChecks(facts, {
    anchors: [...anchors.values()],
    spans: checkBeats([...beats.values()]),
    evidence: checkEvidence(new Set(pieces.flatMap(({ window }) => [...window.digests])), options),
  });
}

function refuse(reason: string, seq?: number): never {
  throw new Refusal('chain', reason, seq);
}
