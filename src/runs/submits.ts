/**
 * Runs on their way in: what a checked request makes, and what becomes of those that go out together. Replays and clashes
 * are values until they meet HTTP.
 */

import { encodeId, newId } from '../kernel/ids.js';
import { canonicalJson, sha256Hex } from '../kernel/json.js';
import { Problem } from '../kernel/problems.js';
import { errorCode, type Pool } from '../platform/db/db.js';
import type { Bearing } from '../platform/http/bearing.js';
import type { RequestCaller } from '../platform/http/caller.js';
import type { RunRow } from './read.sql.js';
import type { Kind } from './run.js';
import {
  type EarlierKey,
  type EarlierRun,
  findKeys,
  findRuns,
  findSpent,
  keepKeys,
  type NewRun,
  submitIfNew,
  type WholeKey,
} from './submit.sql.js';

/** What an item weighs besides a run's spec. */
export const ITEM_BYTES = 1_000;

/** What is made, by a submit or by doing again what was. */
export interface RunInput {
  readonly kind: Kind;
  readonly name: string | null;
  readonly queue: string;
  readonly priority: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: Readonly<Record<string, unknown>>;
  readonly timeoutMs: number | null;
  readonly notBefore: Date | null;
}

/** A submit that was decoded and checked. */
export interface SubmitRequest extends RunInput, Bearing {
  /** A UUID that the caller chose. */
  readonly id: string | undefined;
}

/** A run on its way in, and how many bytes it has, roughly. */
export interface Incoming {
  readonly run: NewRun;
  readonly bytes: number;
}

export type Fate =
  | { readonly made: { readonly createdAt: Date; readonly receipt: string } }
  | { readonly replayOf: string }
  | Refused
  | { readonly again: true };

export type Refused = { readonly clash: 'key' | 'id' } | { readonly removed: string };

/** What became of each; or, when none was made, who has the key of the whole. */
export type Sent = { readonly fates: readonly Fate[] } | { readonly holding: EarlierKey | undefined };

/** Makes what is new of these. Equal keys and equal ids are folded: the first goes out, the others look up what it made. */
export async function sendSubmits(pool: Pool, runs: readonly NewRun[]): Promise<readonly Fate[]> {
  const leaders = foldSubmits(runs);
  return fatesOf(pool, runs, leaders, await submitIfNew(pool, leaders));
}

/** The same under one key for all of them, with which they are made, or not at all. */
export async function sendWhole(pool: Pool, runs: readonly NewRun[], whole: WholeKey): Promise<Sent> {
  const leaders = foldSubmits(runs);
  const made = await submitIfNew(pool, leaders, whole);
  if (made.length > 0) return { fates: await fatesOf(pool, runs, leaders, made) };
  const [holding] = await findKeys(pool, [whole]);
  return { holding };
}

/** What became of runs that were sent before, under these ids. */
export async function lookUpSubmits(pool: Pool, runs: readonly NewRun[]): Promise<readonly Fate[]> {
  const fates = await lookUp(pool, runs);
  return runs.map((run) => fates.get(run) ?? { again: true });
}

export function problemOf(refused: Refused): Problem {
  if ('removed' in refused) {
    return new Problem(
      'run_removed',
      `the run that this made, ${refused.removed}, was removed: use a new key, and a new id`,
    );
  }
  return refused.clash === 'key' ? keyReused() : new Problem('id_conflict', 'this run id is taken: choose another id');
}

export function keyReused(): Problem {
  return new Problem('idempotency_key_reused', 'this Idempotency-Key came with another request before: use a new key');
}

/** Somebody is making a run of one of these ids right now; the next try sees theirs. */
export function isTakenId(error: unknown): boolean {
  if (errorCode(error) !== '23505' || typeof error !== 'object' || error === null) return false;
  return 'constraint_name' in error && error.constraint_name === 'runs_pkey';
}

export function incomingRun(
  caller: RequestCaller,
  request: RunInput & Bearing & { readonly id?: string | undefined },
  rerunOf: string | null,
): Incoming {
  const id = request.id ?? newId();
  const text = canonicalJson({ kind: request.kind, spec: request.spec });
  const run: NewRun = {
    id,
    hasOwnId: request.id !== undefined,
    organizationId: caller.organizationId,
    chain: caller.chain,
    object: encodeId('run', id),
    kind: request.kind,
    name: request.name,
    queue: request.queue,
    priority: request.priority,
    labels: request.labels,
    spec: request.spec,
    specDigest: `sha256:${sha256Hex(text)}`,
    timeoutMs: request.timeoutMs,
    notBefore: request.notBefore?.toISOString() ?? null,
    origin: 'api',
    principal: caller.principal,
    rerunOf,
    traceparent: request.traceparent,
    key: request.key,
    requestDigest: request.requestDigest,
  };
  return { run, bytes: ITEM_BYTES + Buffer.byteLength(text) };
}

/** What an ended run was made of, as it was accepted then; when it was to start is over. */
export function inputOf(ended: Omit<RunInput, 'spec' | 'notBefore'> & Pick<RunRow, 'spec'>): RunInput {
  const { kind, name, queue, priority, labels, spec, timeoutMs } = ended;
  return { kind, name, queue, priority, labels, spec: spec ?? {}, timeoutMs, notBefore: null };
}

/** A run that was just made, without reading it back. Member by member: to spread it first took 70 µs, measured. */
export function rowOfNew(run: NewRun, createdAt: Date, receipt: string): RunRow {
  return {
    id: run.id,
    organizationId: run.organizationId,
    kind: run.kind,
    name: run.name,
    queue: run.queue,
    priority: run.priority,
    labels: run.labels,
    spec: run.spec,
    timeoutMs: run.timeoutMs,
    notBefore: run.notBefore === null ? null : new Date(run.notBefore),
    state: 'pending',
    origin: run.origin,
    principal: run.principal,
    parentId: null,
    rootId: run.id,
    rerunOf: run.rerunOf,
    createdAt,
    claimedAt: null,
    startedAt: null,
    endedAt: null,
    fence: 0,
    workerId: null,
    workerName: null,
    leaseUntil: null,
    cancelRequestedAt: null,
    progress: null,
    output: null,
    endCode: null,
    endKind: null,
    endDetail: null,
    exitCode: null,
    signal: null,
    endBy: null,
    submittedReceipt: receipt,
    cancelReceipt: null,
    endedReceipt: null,
  };
}

function foldSubmits(runs: readonly NewRun[]): NewRun[] {
  const seen = new Set<string>();
  return runs.filter((run) => {
    const names = [run.id, ...(run.key === null ? [] : [keyOf(run.organizationId, run.key)])];
    if (names.some((name) => seen.has(name))) return false;
    for (const name of names) seen.add(name);
    return true;
  });
}

/** What became of `runs`, of which the `leaders` were sent and these made. */
async function fatesOf(
  pool: Pool,
  runs: readonly NewRun[],
  leaders: readonly NewRun[],
  rows: Awaited<ReturnType<typeof submitIfNew>>,
): Promise<Fate[]> {
  const made = new Map(rows.map((row) => [row.id, row]));
  const leading = new Set(leaders);
  const others = runs.filter((run) => !(leading.has(run) && made.has(run.id)));
  const fates = others.length === 0 ? new Map<NewRun, Fate>() : await lookUp(pool, others);
  return runs.map((run) => {
    const row = leading.has(run) ? made.get(run.id) : undefined;
    return row ? { made: row } : (fates.get(run) ?? { again: true });
  });
}

async function lookUp(pool: Pool, runs: readonly NewRun[]): Promise<Map<NewRun, Fate>> {
  const keyed = runs.flatMap((run) => (run.key === null ? [] : [{ organizationId: run.organizationId, key: run.key }]));
  const keys = new Map(
    (keyed.length === 0 ? [] : await findKeys(pool, keyed)).map((row) => [keyOf(row.organizationId, row.key), row]),
  );
  const ids = [...new Set([...runs.map((run) => run.id), ...[...keys.values()].map((row) => row.runId)])];
  const known = new Map((await findRuns(pool, ids)).map((row) => [row.id, row]));
  const unseen = runs.filter((run) => run.hasOwnId && !known.has(run.id) && !keys.has(nameOfKey(run)));
  const spent = unseen.length === 0 ? new Map<string, boolean>() : await findSpent(pool, unseen);
  const fates = new Map(runs.map((run) => [run, fateOf(run, keys, known, spent)]));
  // A key that came with an id known before is a key that was answered: it is kept like any other.
  const answered = runs.filter((run) => isReplay(fates.get(run)) && run.key !== null && !keys.has(nameOfKey(run)));
  if (answered.length > 0) await keepKeys(pool, answered);
  return fates;
}

function fateOf(
  run: NewRun,
  keys: ReadonlyMap<string, EarlierKey>,
  known: ReadonlyMap<string, EarlierRun>,
  spent: ReadonlyMap<string, boolean>,
): Fate {
  const key = run.key === null ? undefined : keys.get(keyOf(run.organizationId, run.key));
  if (key) {
    if (key.digest !== run.requestDigest) return { clash: 'key' };
    return known.has(key.runId) ? { replayOf: key.runId } : { removed: encodeId('run', key.runId) };
  }
  const earlier = known.get(run.id);
  if (!earlier && spent.has(run.id)) return spent.get(run.id) ? { removed: run.object } : { clash: 'id' };
  if (!earlier) return { again: true };
  const same = earlier.organizationId === run.organizationId && earlier.specDigest === run.specDigest;
  return same ? { replayOf: run.id } : { clash: 'id' };
}

function isReplay(fate: Fate | undefined): boolean {
  return fate !== undefined && 'replayOf' in fate;
}

function nameOfKey(run: NewRun): string {
  return keyOf(run.organizationId, run.key ?? '');
}

function keyOf(organizationId: string, key: string): string {
  return `${organizationId} ${key}`;
}
