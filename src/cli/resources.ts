/** The resources of the API as far as the client prints them or decides on them. Instants are RFC 3339 in UTC. */
import { booleanOf, type Fields, fieldsOf, isFields, listOf, numberOf, optional, textOf } from './decode.js';

export interface Run {
  readonly id: string;
  readonly kind: string;
  readonly name: string | null;
  readonly queue: string;
  readonly priority: number;
  readonly labels: Readonly<Record<string, string>>;
  /** Lists leave it out. */
  readonly spec: Fields;
  readonly timeout: string | null;
  readonly notBefore: string | null;
  readonly origin: string | null;
  /** Its name, and its id. */
  readonly principal: string | null;
  readonly parentId: string | null;
  readonly rerunOf: string | null;
  readonly state: string;
  readonly createdAt: string;
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  readonly fence: number;
  readonly worker: RunWorker | null;
  readonly cancelRequestedAt: string | null;
  /** What its tool reported last. */
  readonly progress: Fields | null;
  /** Any JSON value; lists leave it out. */
  readonly output: unknown;
  readonly end: RunEnd | null;
  readonly receipts: Readonly<Record<string, string>>;
}

export interface RunWorker {
  readonly id: string;
  readonly name: string | null;
}

export interface RunEnd {
  readonly code: string;
  readonly kind: string | null;
  readonly detail: string;
  readonly exitCode: number | null;
  readonly signal: string | null;
}

export function decodeRun(value: unknown): Run {
  const run = fieldsOf(value, 'the run');
  return {
    id: textOf(run, 'id'),
    kind: textOf(run, 'kind'),
    name: optional(run, 'name', textOf),
    queue: textOf(run, 'queue'),
    priority: numberOf(run, 'priority'),
    labels: textsOf(run.labels),
    spec: isFields(run.spec) ? run.spec : {},
    timeout: optional(run, 'timeout', textOf),
    notBefore: optional(run, 'notBefore', textOf),
    origin: optional(run, 'origin', textOf),
    principal: optional(run, 'principal', principalOf),
    parentId: optional(run, 'parentId', textOf),
    rerunOf: optional(run, 'rerunOf', textOf),
    state: textOf(run, 'state'),
    createdAt: textOf(run, 'createdAt'),
    startedAt: optional(run, 'startedAt', textOf),
    endedAt: optional(run, 'endedAt', textOf),
    fence: numberOf(run, 'fence'),
    worker: optional(run, 'worker', workerOf),
    cancelRequestedAt: optional(run, 'cancelRequestedAt', textOf),
    progress: isFields(run.progress) ? run.progress : null,
    output: run.output ?? null,
    end: optional(run, 'end', endOf),
    receipts: textsOf(run.receipts),
  };
}

function principalOf(run: Fields, name: string): string {
  const principal = fieldsOf(run[name], name);
  return `${optional(principal, 'name', textOf) ?? ''} (${textOf(principal, 'id')})`.trim();
}

function workerOf(run: Fields, name: string): RunWorker {
  const worker = fieldsOf(run[name], name);
  return { id: textOf(worker, 'id'), name: optional(worker, 'name', textOf) };
}

function endOf(run: Fields, name: string): RunEnd {
  const end = fieldsOf(run[name], name);
  return {
    code: textOf(end, 'code'),
    kind: optional(end, 'kind', textOf),
    detail: optional(end, 'detail', textOf) ?? '',
    exitCode: optional(end, 'exitCode', numberOf),
    signal: optional(end, 'signal', textOf),
  };
}

/** The members of an object that are texts. */
function textsOf(value: unknown): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const [key, text] of Object.entries(isFields(value) ? value : {})) {
    if (typeof text === 'string') texts[key] = text;
  }
  return texts;
}

/** A fact in a run's ordered stream; derived ones have no `seq`. */
export interface RunEvent {
  readonly seq: number | null;
  readonly type: string;
  readonly at: string;
  readonly data: unknown;
}

export function decodeRunEvent(value: unknown): RunEvent {
  const event = fieldsOf(value, 'the event');
  return {
    seq: optional(event, 'seq', numberOf),
    type: textOf(event, 'type'),
    at: textOf(event, 'at'),
    data: event.data ?? null,
  };
}

/** What stands between a run and a worker; no reasons: the next claim takes it. */
export interface Why {
  readonly id: string;
  readonly state: string;
  readonly queue: string;
  readonly reasons: readonly WhyReason[];
}

export interface WhyReason {
  readonly code: string;
  readonly detail: string;
  readonly remedy: string;
}

export function decodeWhy(value: unknown): Why {
  const why = fieldsOf(value, 'the answer');
  return {
    id: textOf(why, 'id'),
    state: textOf(why, 'state'),
    queue: textOf(why, 'queue'),
    reasons: listOf(why, 'reasons').map((each) => {
      const reason = fieldsOf(each, 'a reason');
      return { code: textOf(reason, 'code'), detail: textOf(reason, 'detail'), remedy: textOf(reason, 'remedy') };
    }),
  };
}

export interface Worker {
  readonly id: string;
  readonly name: string;
  readonly kind: string;
  readonly state: string;
  readonly connected: boolean;
  readonly running: number;
  readonly slots: number;
  readonly queues: readonly string[];
  readonly version: string;
  /** When it last renewed its lease. */
  readonly seenAt: string | null;
  readonly leaseUntil: string | null;
}

export function decodeWorker(value: unknown): Worker {
  const worker = fieldsOf(value, 'the worker');
  return {
    id: textOf(worker, 'id'),
    name: textOf(worker, 'name'),
    kind: textOf(worker, 'kind'),
    state: textOf(worker, 'state'),
    connected: booleanOf(worker, 'connected'),
    running: numberOf(worker, 'running'),
    slots: numberOf(worker, 'slots'),
    queues: listOf(worker, 'queues').map(String),
    version: textOf(worker, 'version'),
    seenAt: optional(worker, 'seenAt', textOf),
    leaseUntil: optional(worker, 'leaseUntil', textOf),
  };
}

export interface Queue {
  readonly name: string;
  readonly paused: { readonly at: string; readonly byName: string; readonly reason: string } | null;
  /** Null for who may not know, as are the next two. */
  readonly depth: number | null;
  readonly depthIsEstimate: boolean;
  readonly oldestPendingAt: string | null;
  readonly running: number | null;
  readonly workers: number;
}

export function decodeQueue(value: unknown): Queue {
  const queue = fieldsOf(value, 'the queue');
  return {
    name: textOf(queue, 'name'),
    paused: optional(queue, 'paused', pauseOf),
    depth: optional(queue, 'depth', numberOf),
    depthIsEstimate: booleanOf(queue, 'depthIsEstimate'),
    oldestPendingAt: optional(queue, 'oldestPendingAt', textOf),
    running: optional(queue, 'running', numberOf),
    workers: numberOf(queue, 'workers'),
  };
}

function pauseOf(queue: Fields, name: string): Queue['paused'] {
  const pause = fieldsOf(queue[name], name);
  return { at: textOf(pause, 'at'), byName: textOf(pause, 'byName'), reason: textOf(pause, 'reason') };
}

export interface Retention {
  readonly retention: string;
  readonly isDefault: boolean;
}

export function decodeRetention(value: unknown): Retention {
  const retention = fieldsOf(value, 'the retention');
  return { retention: textOf(retention, 'retention'), isDefault: booleanOf(retention, 'isDefault') };
}

export interface AuditEntry {
  readonly seq: number;
  readonly at: string | null;
  readonly action: string | null;
  readonly principal: string | null;
  /** What the principal was called then. */
  readonly principalName: string | null;
  readonly object: string | null;
}

export function decodeAuditEntry(value: unknown): AuditEntry {
  const entry = fieldsOf(value, 'the entry');
  return {
    seq: numberOf(entry, 'seq'),
    at: optional(entry, 'at', textOf),
    action: optional(entry, 'action', textOf),
    principal: optional(entry, 'principal', textOf),
    principalName: optional(entry, 'principalName', textOf),
    object: optional(entry, 'object', textOf),
  };
}

export interface ChainVerification {
  readonly ok: boolean;
  readonly chain: string;
  readonly entries: number;
  readonly head: { readonly seq: number; readonly link: string };
  readonly anchors: number;
  readonly brokenAt: number | null;
  readonly check: string | null;
  readonly tookMs: number;
}

export function decodeVerification(value: unknown): ChainVerification {
  const answer = fieldsOf(value, 'the verification');
  const head = fieldsOf(answer.head, 'head');
  return {
    ok: booleanOf(answer, 'ok'),
    chain: textOf(answer, 'chain'),
    entries: numberOf(answer, 'entries'),
    head: { seq: numberOf(head, 'seq'), link: textOf(head, 'link') },
    anchors: numberOf(answer, 'anchors'),
    brokenAt: optional(answer, 'brokenAt', numberOf),
    check: optional(answer, 'check', textOf),
    tookMs: numberOf(answer, 'tookMs'),
  };
}

export interface ReceiptCheck {
  readonly receipt: string;
  readonly holds: boolean;
  readonly reason: string | null;
  /** What stands at its place now, if it may be seen. */
  readonly entry: AuditEntry | null;
}

export function decodeReceiptCheck(value: unknown): ReceiptCheck {
  const answer = fieldsOf(value, 'the receipt');
  return {
    receipt: textOf(answer, 'receipt'),
    holds: booleanOf(answer, 'holds'),
    reason: optional(answer, 'reason', textOf),
    entry: optional(answer, 'entry', (fields, name) => decodeAuditEntry(fields[name])),
  };
}

export interface RecordedKey {
  readonly fingerprint: string;
  readonly publicKey: string;
  readonly recordedAt: string;
  readonly receipt: string;
}

export interface SigningKeys {
  /** Null while none was recorded. */
  readonly current: RecordedKey | null;
  /** Newest first. */
  readonly past: readonly RecordedKey[];
  /** Whether the replica that answered holds the current one. */
  readonly signs: boolean;
}

export function decodeSigningKeys(value: unknown): SigningKeys {
  const answer = fieldsOf(value, 'the signing key');
  return {
    current: optional(answer, 'fingerprint', textOf) === null ? null : decodeRecordedKey(answer),
    past: listOf(answer, 'past').map(decodeRecordedKey),
    signs: booleanOf(answer, 'signs'),
  };
}

function decodeRecordedKey(value: unknown): RecordedKey {
  const key = fieldsOf(value, 'a recorded key');
  return {
    fingerprint: textOf(key, 'fingerprint'),
    publicKey: textOf(key, 'publicKey'),
    recordedAt: textOf(key, 'recordedAt'),
    receipt: textOf(key, 'receipt'),
  };
}

export interface Page {
  readonly items: readonly unknown[];
  readonly next: string | null;
}

export function decodePage(value: unknown): Page {
  const page = fieldsOf(value, 'the list');
  return { items: listOf(page, 'items'), next: optional(page, 'next', textOf) };
}
