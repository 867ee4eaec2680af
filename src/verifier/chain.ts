/**
 * The chain: every entry carries the link of the one before it, and its own link is a hash over both. So nothing within
 * the range can have been changed, left out, added or moved unless all later links were made anew.
 */
import { hash } from 'node:crypto';
import type { Bundle, Claim } from './bundle.js';
import { canonical, type Json } from './json.js';
import { Refusal } from './refusal.js';

type Chain = NonNullable<Bundle['chain']>;

/** The links in order, which are the chain of this bundle; `undefined` where it has none. */
export function checkChain({ chain, claims }: Bundle): readonly string[] | undefined {
  if (chain === undefined) return undefined;
  const linkOf = rulesOf(chain);
  const links: string[] = [];
  let last: { readonly seq: number; readonly link: string } | undefined;
  for (const claim of claims) {
    const { seq, link, prev = '' } = claim.chain ?? refuse('an entry without coordinates', (last?.seq ?? 0) + 1);
    // The difference, not the sum: 2^53 + 1 is 2^53 again.
    if (last && seq - last.seq !== 1) refuse(`entry ${last.seq} is followed by entry ${seq}`, seq);
    if (last && prev !== last.link) refuse('it does not follow the entry before it: prev is another link', seq);
    if (seq === 1 && prev !== '') refuse('the first entry of a chain follows none: prev must be empty', seq);
    if (linkOf && link !== linkOf(claim, seq, prev)) refuse('it was changed: its link is not that of its content', seq);
    links.push(link);
    last = { seq, link };
  }
  if (last) checkHead(chain, last);
  return links;
}

/** The head may lie beyond the last entry, and proves nothing then; it never lies before it. */
function checkHead({ head }: Chain, last: { readonly seq: number; readonly link: string }): void {
  if (head.seq < last.seq) refuse(`the declared head is entry ${head.seq}, which lies before the last one`, last.seq);
  if (head.seq === last.seq && head.link !== last.link) refuse('the declared head has another link', last.seq);
}

/** How links are computed, if that takes no secret. */
function rulesOf({ profile, keyed, params }: Chain): ((claim: Claim, seq: number, prev: string) => string) | undefined {
  if (profile === 'switchtender-audit-v1') {
    return keyed ? refuse('switchtender-audit-v1 knows no key') : switchtenderLink;
  }
  if (keyed) return undefined;
  const installId = params?.get('install_id') || refuse('chain.params.install_id is missing');
  return (claim, seq, prev) => loomsealLink(installId, claim, seq, prev);
}

/** Covers all of the claim except its coordinates. */
function loomsealLink(installId: string, { tree }: Claim, seq: number, prev: string): string {
  const content = new Map(tree);
  content.delete('chain');
  const members: [string, Json][] = [
    ['claim', `sha256:${hash('sha256', canonical(content))}`],
    ['domain', 'loomseal-chain-v1'],
    ['install_id', installId],
    ['prev', prev],
    ['seq', seq],
  ];
  return hash('sha256', canonical(new Map(members)));
}

/** Covers the time and three members of the payload, nothing else. */
function switchtenderLink({ at, payload }: Claim, seq: number, prev: string): string {
  const [actor, method, path] = ['actor', 'method', 'path'].map((name) => {
    const value = payload.get(name) ?? '';
    return typeof value === 'string' ? value : refuse(`payload.${name} is no text`, seq);
  });
  return hash('sha256', JSON.stringify([String(seq), at, actor, method, path, prev]));
}

function refuse(reason: string, seq?: number): never {
  throw new Refusal('chain', reason, seq);
}
