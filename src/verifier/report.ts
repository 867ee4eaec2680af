/** A verdict for people: plain text. Invariant: nothing that a file holds is printed but through `shown`. */
import type { AnchorFacts } from './anchors.js';
import { shown } from './shown.js';
import type { Facts, Verdict } from './verdict.js';

/** Of a list that a file may make as long as it likes. */
const LISTED = 10;

export function report(verdict: Verdict, files: readonly string[]): string {
  const { ok, level, failed, facts, notes } = verdict;
  const pin = facts?.isPinned ? '' : '  (key not pinned)';
  const lines = [ok ? `VERIFIED  ${level}${pin}` : `NOT VERIFIED  ${failed ? failureLine(failed) : ''}`, ''];
  lines.push(...aligned([['file', files.map((file) => shown(file, 200))], ...(facts ? rowsOf(facts, ok) : [])]));
  if (!ok && facts) lines.push('', 'That is what the file says of itself; nothing of it is proven.');
  lines.push(
    ...section('Proven', verdict.proven),
    ...section('Not proven', verdict.notProven),
    ...section('Noted', notes),
  );
  return `${lines.join('\n')}\n`;
}

function failureLine({ stage, reason, seq }: NonNullable<Verdict['failed']>): string {
  return `${stage}: ${seq === undefined ? '' : `entry ${seq}: `}${reason}`;
}

type Row = readonly [name: string, values: readonly string[]];

function rowsOf(facts: Facts, ok: boolean): Row[] {
  const { producer, subject, claims, chain, anchors, spans, evidence } = facts;
  const { verified, referenced, missing } = evidence;
  const isAny = verified + referenced + missing > 0;
  const pin = facts.isPinned ? 'the pinned key' : 'not a pinned key';
  return [
    [ok ? 'signed by' : 'names key', [`${facts.fingerprint} (${pin})`]],
    ['producer', [`${shown(producer.product)} ${shown(producer.version)}, ${shown(producer.installId)}`]],
    ['subject', [`${subject.type} ${shown(subject.id)}`]],
    ['bundle', [`${shown(facts.bundleId)}, made ${facts.createdAt}`]],
    ['entries', [chain ? `${chain.from} to ${chain.to} (${claims.count})` : `${claims.count}, without a chain`]],
    ['times', [`${claims.firstAt} to ${claims.lastAt}`]],
    ['types', listed(claims.types.map((type) => shown(type)))],
    ['chain', chain ? [`${shown(chain.installId)}, ${chain.profile}${chain.isKeyed ? ', keyed' : ''}`] : []],
    ['head', chain ? [`${chain.head.seq}:${chain.head.link}${chain.headMatched ? '' : ' (declared only)'}`] : []],
    ['anchors', listed(anchors.map(anchorLine))],
    ['beats', spans ? [spans.coverage, ...listed(spans.gaps.map(gapLine))] : []],
    ['evidence', isAny ? [`${verified} verified, ${referenced} referenced, ${missing} missing or changed`] : []],
  ];
}

function anchorLine({ seq, type, ref, binds, timestamp }: AnchorFacts): string {
  const how = { proof: 'proof verified', reference: 'by reference', 'head only': 'of the declared head only' }[binds];
  const when = timestamp ? ` at ${timestamp.genTime} by ${shown(timestamp.signer)}` : '';
  return `entry ${seq}, ${type}, ${how}${when}; ${shown(ref)}`;
}

function gapLine({ seq, seconds, cadenceS }: NonNullable<Facts['spans']>['gaps'][number]): string {
  return `gap before entry ${seq}: ${seconds} s, announced were ${cadenceS} s`;
}

function listed(lines: readonly string[]): string[] {
  const more = lines.length - LISTED;
  return more > 0 ? [...lines.slice(0, LISTED), `and ${more} more`] : [...lines];
}

function aligned(rows: readonly Row[]): string[] {
  return rows.flatMap(([name, values]) =>
    values.map((value, index) => `  ${(index ? '' : name).padEnd(10)}  ${value}`),
  );
}

function section(title: string, sentences: readonly string[]): string[] {
  return sentences.length > 0 ? ['', title, ...sentences.map((sentence) => `  - ${sentence}`)] : [];
}
