/** What a caller may do with runs: submit, look, cancel, run again. Replays and clashes are values until they meet HTTP. */

import { encodeId, newId } from '../kernel/ids.js';
import { canonicalJson, sha256Hex } from '../kernel/json.js';
import { Problem } from '../kernel/problems.js';
import { errorCode } from '../platform/db/db.js';
import { Lane } from '../platform/db/lane.js';
import type { RequestCaller } from '../platform/http/caller.js';
import type { PagePlace } from '../platform/http/page.js';
import type { Platform } from '../platform/platform.js';
import { type Cancel, type Canceled, cancelIfLive } from './cancel.sql.js';
import { endOf } from './end.rules.js';
import { listRuns, type Part, type RunFilter } from './list.sql.js';
import { findRun, type RunRow } from './read.sql.js';
import type { Kind } from './run.js';
import { isEnded } from './run.machine.js';
import type { RunMetrics } from './run.metrics.js';
import {
  type EarlierKey,
  type EarlierRun,
  findKeys,
  findRuns,
  keepKeys,
  type NewRun,
  submitIfNew,
} from './submit.sql.js';

const LANE_ITEMS = 200;
/** Longer than a statement may take, so that a flush which took too long is tried in halves. */
const RETRY_FOR_MS = 8_000;
/** A flush of this much takes some 100 ms; what waits beyond is answered 503. */
const LOAD = { maxFlushBytes: 4 * 1024 * 1024, maxWaitingItems: 10_000, maxWaitingBytes: 64 * 1024 * 1024 } as const;
/** What an item weighs besides a run's spec. */
const ITEM_BYTES = 1_000;

/** What a request that makes something bears besides its input. */
interface Bearing {
  readonly traceparent: string | null;
  /** The `Idempotency-Key`, and the digest of the request that bears it. */
  readonly key: string | null;
  readonly requestDigest: string;
}

/** A submit that was decoded and checked. */
export interface SubmitRequest extends Bearing {
  /** A UUID that the caller chose. */
  readonly id: string | undefined;
  readonly kind: Kind;
  readonly name: string | null;
  readonly queue: string;
  readonly priority: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: Readonly<Record<string, unknown>>;
  readonly timeoutMs: number | null;
  readonly notBefore: Date | null;
}

export interface SubmitAnswer {
  readonly run: RunRow;
  readonly replayed: boolean;
  readonly receipt: string | null;
}

export interface CancelAnswer {
  readonly run: RunRow;
  /** True while the holder still has to stop the tool. */
  readonly stopping: boolean;
  readonly receipt: string | null;
}

/** A run on its way in, and how many bytes it has, roughly. */
interface Incoming {
  readonly run: NewRun;
  readonly bytes: number;
}

type Fate =
  | { readonly made: { readonly createdAt: Date; readonly receipt: string } }
  | { readonly replayOf: string }
  | { readonly clash: 'key' | 'id' }
  | { readonly removed: string }
  | { readonly again: true };

export class RunsService {
  private readonly submits: Lane<Incoming, Fate>;
  private readonly cancels: Lane<Cancel, Canceled | undefined>;

  constructor(
    private readonly platform: Platform,
    private readonly metrics: RunMetrics,
  ) {
    const lane = { maxItems: LANE_ITEMS, retryForMs: RETRY_FOR_MS, timing: platform.timing };
    this.submits = new Lane({
      ...lane,
      load: { ...LOAD, bytesOf: ({ bytes }) => bytes },
      flush: (incoming) => this.flushSubmits(incoming.map(({ run }) => run)),
      onFlush: (n, tookMs) => metrics.countFlush('submit', n, tookMs),
    });
    this.cancels = new Lane({
      ...lane,
      load: { ...LOAD, bytesOf: () => ITEM_BYTES },
      flush: (cancels) => this.flushCancels(cancels),
      onFlush: (n, tookMs) => metrics.countFlush('cancel', n, tookMs),
    });
  }

  /** Makes a run, or answers with the one that the same key or id made before. */
  submit(caller: RequestCaller, request: SubmitRequest): Promise<SubmitAnswer> {
    return this.make(caller, request, null);
  }

  /**
   * Makes a run that does again what an ended one did, or answers with the one that the same key made before. The spec is
   * taken as it was accepted then. Throws `not_found`, or `run_not_ended` with the state.
   */
  async rerun(caller: RequestCaller, id: string, request: Bearing): Promise<SubmitAnswer> {
    const earlier = await this.get(caller, id);
    if (!isEnded(earlier.state)) throw notEnded(earlier);
    const { kind, name, queue, priority, labels, spec, timeoutMs } = earlier;
    const same = { kind, name, queue, priority, labels, spec: spec ?? {}, timeoutMs };
    return this.make(caller, { ...request, ...same, id: undefined, notBefore: null }, earlier.id);
  }

  private async make(caller: RequestCaller, request: SubmitRequest, rerunOf: string | null): Promise<SubmitAnswer> {
    const incoming = incomingRun(caller, request, rerunOf);
    const { run } = incoming;
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      const fate = await this.submits.push(incoming).catch((error: unknown) => {
        // Somebody is making a run of this id right now; the next try sees theirs.
        if (isTakenId(error)) return { again: true } as const;
        throw error;
      });
      if ('again' in fate) continue;
      if ('made' in fate) {
        this.metrics.countSubmitted(run);
        this.platform.bells.claimable.ring();
        return {
          run: rowOfNew(run, fate.made.createdAt, fate.made.receipt),
          replayed: false,
          receipt: fate.made.receipt,
        };
      }
      if ('replayOf' in fate) return this.replay(caller, run, fate.replayOf, request.id === undefined);
      if ('removed' in fate) {
        throw new Problem('run_removed', `the run that this Idempotency-Key made, ${fate.removed}, was removed`);
      }
      throw fate.clash === 'key'
        ? new Problem('idempotency_key_reused', 'this Idempotency-Key came with another request before: use a new key')
        : new Problem('id_conflict', 'this run id is taken: choose another id');
    }
    throw new Problem('unavailable', 'the submit kept colliding with others: send it again', { retryAfterSeconds: 1 });
  }

  /** The caller's run of this id. Throws `not_found`. */
  async get(caller: RequestCaller, id: string): Promise<RunRow> {
    const run = await findRun(this.platform.pools.read, caller.organizationId, id);
    if (!run) throw new Problem('not_found', 'there is no such run');
    return run;
  }

  /** A page of the caller's runs, newest first, and where the next one begins. It may be short of `limit`. */
  list(
    { organizationId }: RequestCaller,
    filter: RunFilter,
    after: PagePlace | undefined,
    limit: number,
  ): Promise<Part<RunRow>> {
    return listRuns(this.platform.pools.read, { organizationId, filter, after, limit });
  }

  /** Cancels a run in place, or asks its holder to stop it. Throws `not_found`, or `run_ended` with the end. */
  async cancel(caller: RequestCaller, id: string): Promise<CancelAnswer> {
    const canceled = await this.cancels.push({
      runId: id,
      organizationId: caller.organizationId,
      chain: caller.chain,
      object: encodeId('run', id),
      kind: 'requested',
      detail: `canceled by ${caller.principal.name}`,
      by: caller.principal.id,
      byName: caller.principal.name,
    });
    if (canceled?.result === 'ended') this.platform.bells.ended.ring([id]);
    if (canceled?.result === 'requested') this.platform.bells.canceled.ring();
    const run = await this.get(caller, id);
    if (isEnded(run.state) && run.state !== 'canceled') {
      throw new Problem(
        'run_ended',
        `the run has ended ${run.state}: nothing is left to cancel; submit it anew if needed`,
        // A request that was written before the run ended otherwise stands in the chain.
        { members: { end: endOf(run) }, ...(canceled?.receipt ? { receipt: canceled.receipt } : {}) },
      );
    }
    return {
      run,
      stopping: !isEnded(run.state),
      receipt: canceled?.receipt ?? run.cancelReceipt ?? run.endedReceipt,
    };
  }

  private async replay(caller: RequestCaller, run: NewRun, id: string, serverChoseId: boolean): Promise<SubmitAnswer> {
    const row = await this.get(caller, id);
    // Our own id under a server-chosen name: an earlier try of this very submit whose answer was lost.
    return { run: row, replayed: !(serverChoseId && id === run.id), receipt: row.submittedReceipt };
  }

  /** Equal keys and equal ids are folded: the first goes out, the others look up what it made. */
  private async flushSubmits(runs: readonly NewRun[]): Promise<Fate[]> {
    const seen = new Set<string>();
    const leaders = runs.filter((run) => {
      const names = [run.id, ...(run.key === null ? [] : [keyOf(run.organizationId, run.key)])];
      if (names.some((name) => seen.has(name))) return false;
      for (const name of names) seen.add(name);
      return true;
    });
    const { submit } = this.platform.pools;
    const made = new Map((await submitIfNew(submit, leaders)).map((row) => [row.id, row]));
    const leading = new Set(leaders);
    const others = runs.filter((run) => !(leading.has(run) && made.has(run.id)));
    const fates = others.length === 0 ? new Map<NewRun, Fate>() : await this.lookUp(others);
    return runs.map((run) => {
      const row = leading.has(run) ? made.get(run.id) : undefined;
      return row ? { made: row } : (fates.get(run) ?? { again: true });
    });
  }

  private async lookUp(runs: readonly NewRun[]): Promise<Map<NewRun, Fate>> {
    const { submit } = this.platform.pools;
    const keyed = runs.flatMap((run) =>
      run.key === null ? [] : [{ organizationId: run.organizationId, key: run.key }],
    );
    const keys = new Map(
      (keyed.length === 0 ? [] : await findKeys(submit, keyed)).map((row) => [keyOf(row.organizationId, row.key), row]),
    );
    const ids = [...new Set([...runs.map((run) => run.id), ...[...keys.values()].map((row) => row.runId)])];
    const known = new Map((await findRuns(submit, ids)).map((row) => [row.id, row]));
    const fates = new Map(runs.map((run) => [run, fateOf(run, keys, known)]));
    // A key that came with an id known before is a key that was answered: it is kept like any other.
    const answered = runs.filter((run) => isReplay(fates.get(run)) && run.key !== null && !keys.has(nameOfKey(run)));
    if (answered.length > 0) await keepKeys(submit, answered);
    return fates;
  }

  /** Equal cancels are folded; one of another organization is none of them, though it names the same run. */
  private async flushCancels(cancels: readonly Cancel[]): Promise<(Canceled | undefined)[]> {
    const once = [...new Map(cancels.map((cancel) => [nameOf(cancel), cancel])).values()];
    const rows = await cancelIfLive(this.platform.pools.submit, once);
    for (const { ended } of rows) if (ended) this.metrics.countEnded(ended);
    const byName = new Map(rows.map((row) => [nameOf(row), row]));
    return cancels.map((cancel) => byName.get(nameOf(cancel)));
  }
}

function fateOf(run: NewRun, keys: ReadonlyMap<string, EarlierKey>, known: ReadonlyMap<string, EarlierRun>): Fate {
  const key = run.key === null ? undefined : keys.get(keyOf(run.organizationId, run.key));
  if (key) {
    if (key.digest !== run.requestDigest) return { clash: 'key' };
    return known.has(key.runId) ? { replayOf: key.runId } : { removed: encodeId('run', key.runId) };
  }
  const earlier = known.get(run.id);
  if (!earlier) return { again: true };
  const same = earlier.organizationId === run.organizationId && earlier.specDigest === run.specDigest;
  return same ? { replayOf: run.id } : { clash: 'id' };
}

/** Which call would move it: none but a cancel, unless that was asked for already. */
function notEnded(run: RunRow): Problem {
  const way =
    run.cancelRequestedAt === null
      ? `cancel it (POST /v1/runs/${encodeId('run', run.id)}/cancel) or wait for its end`
      : 'its holder was asked to stop it: send this again once it has ended';
  const detail = `the run is ${run.state}, and only what has ended is run again: ${way}`;
  return new Problem('run_not_ended', detail, { members: { state: run.state } });
}

function isReplay(fate: Fate | undefined): boolean {
  return fate !== undefined && 'replayOf' in fate;
}

function nameOfKey(run: NewRun): string {
  return keyOf(run.organizationId, run.key ?? '');
}

/** A unique violation of a run's own id, and of nothing else. */
function isTakenId(error: unknown): boolean {
  if (errorCode(error) !== '23505' || typeof error !== 'object' || error === null) return false;
  return 'constraint_name' in error && error.constraint_name === 'runs_pkey';
}

function keyOf(organizationId: string, key: string): string {
  return `${organizationId} ${key}`;
}

function nameOf({ chain, runId }: Pick<Cancel, 'chain' | 'runId'>): string {
  return `${chain} ${runId}`;
}

function incomingRun(caller: RequestCaller, request: SubmitRequest, rerunOf: string | null): Incoming {
  const id = request.id ?? newId();
  const text = canonicalJson({ kind: request.kind, spec: request.spec });
  const run: NewRun = {
    id,
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

/** A run that was just made, without reading it back. */
function rowOfNew(run: NewRun, createdAt: Date, receipt: string): RunRow {
  return {
    ...run,
    notBefore: run.notBefore === null ? null : new Date(run.notBefore),
    state: 'pending',
    parentId: null,
    rootId: run.id,
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
