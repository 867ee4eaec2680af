/** A verdict in sentences: what somebody who trusts nobody knows now, and what is still to be asked. */
import type { AnchorFacts } from './anchors.js';
import { shown } from './shown.js';
import type { Facts } from './verdict.js';

export function proven({ fingerprint, chain, anchors, evidence }: Facts): string[] {
  const said = [`Who holds the key ${fingerprint} signed exactly this, and it was not changed since.`];
  if (chain && !chain.isKeyed) {
    const { from, to } = chain;
    const rest = to > from ? ' All of them are there, in order, and none was added between them.' : '';
    said.push(`${from === to ? 'Entry' : 'Entries'} ${range(from, to)}: each is as it was when it was linked.${rest}`);
  }
  for (const anchor of newest(anchors, 'proof')) {
    const { genTime, signer } = anchor.timestamp ?? {};
    said.push(
      `Entries up to ${anchor.seq} were there by ${genTime}, says the time-stamping signer ${shown(signer ?? '')}.`,
    );
  }
  if (evidence.verified > 0) {
    said.push(`${artifacts(evidence.verified, 'has', 'have')} the very content that the entries name.`);
  }
  return said;
}

export function notProven(facts: Facts): string[] {
  const { isPinned, evidence } = facts;
  const open: string[] = [];
  if (!isPinned) {
    open.push(
      'Whose key that is: it came with the file, and whoever made the file may have made the key (--fingerprint).',
    );
  }
  open.push(...openOfChain(facts), ...openOfTime(facts));
  if (evidence.referenced > 0)
    open.push(`${artifacts(evidence.referenced, 'is', 'are')} named and not given (--evidence).`);
  if (evidence.missing > 0)
    open.push(`${artifacts(evidence.missing, 'was', 'were')} not found by content: missing or changed.`);
  open.push('That the entries tell the truth: only that they are the ones that were recorded.');
  return open;
}

function openOfChain({ chain }: Facts): string[] {
  if (!chain) return ['Whether entries were left out, added or moved before it was signed: there is no chain.'];
  const { from, to, head, isKeyed, headMatched } = chain;
  const open: string[] = [];
  if (isKeyed)
    open.push('The links: they take a key of the producer, so only that they follow each other was checked.');
  if (chain.profile === 'switchtender-audit-v1') {
    open.push('By the links: anything but time, actor, method and path; the signature alone covers the rest.');
  }
  if (from > 1) open.push(`What came before entry ${from}: the link to it is taken as given.`);
  if (!headMatched)
    open.push(`What came after entry ${to}: the head ${head.seq} is declared, its link was not checked.`);
  else open.push(`That entry ${to} was the newest: ask for receipts or a later bundle to see that none was cut off.`);
  return open;
}

function openOfTime({ chain, anchors, createdAt }: Facts): string[] {
  if (!chain) return ['When it was: times are the word of the producer.'];
  const [proof] = newest(anchors, 'proof');
  const [reference] = newest(anchors, 'reference');
  const open: string[] = [];
  if (!proof && !reference) {
    open.push(
      `When it was: no anchor covers these entries; who holds the chain and the key could have made them all anew until ${createdAt}.`,
    );
  }
  if (proof) {
    open.push('That the time-stamping signer is to be trusted: no list of authorities and no revocation was asked.');
    if (proof.seq < chain.to) {
      open.push(`When it was, of what came after entry ${proof.seq}: the timestamp does not cover that.`);
    }
  }
  if (reference)
    open.push(`The anchors by reference: look up ${shown(reference.ref)} to see the link of entry ${reference.seq}.`);
  if (anchors.some(({ binds }) => binds === 'head only')) {
    open.push('The anchors of the declared head: it lies beyond the entries, so they say nothing about these.');
  }
  return open;
}

function range(from: number, to: number): string {
  return from === to ? `${from}` : `${from} to ${to}`;
}

function artifacts(count: number, one: string, more: string): string {
  return count === 1 ? `1 artifact ${one}` : `${count} artifacts ${more}`;
}

/** The anchor that covers most, if any. */
function newest(anchors: readonly AnchorFacts[], binds: AnchorFacts['binds']): AnchorFacts[] {
  return anchors
    .filter((anchor) => anchor.binds === binds)
    .sort((a, b) => b.seq - a.seq)
    .slice(0, 1);
}
