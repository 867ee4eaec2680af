/** What a caller may do with runs: submit, look, cancel. Replays and clashes are values until they meet HTTP. */

import { encodeId, newId } from '../kernel/ids.js';
import { digestOf } from '../kernel/json.js';
import { Problem } from '../kernel/problems.js';
import { errorCode } from '../platform/db/db.js';
import { Lane } from '../platform/db/lane.js';
import type { RequestCaller } from '../platform/http/caller.js';
import type { PagePlace } from '../platform/http/page.js';
import type { Platform } from '../platform/platform.js';
import { type Cancel, type Canceled, cancelIfLive } from './cancel.sql.js';
import { endOf } from './end.rules.js';
import { findRun, listRuns, type RunFilter, type RunRow } from './read.sql.js';
import type { Kind } from './run.js';
import { isEnded } from './run.machine.js';
import type { RunMetrics } from './run.metrics.js';
import { type EarlierKey, type EarlierRun, findKeys, findRuns, type NewRun, submitIfNew } from './submit.sql.js';

const LANE_ITEMS = 200;
const RETRY_FOR_MS = 5_000;

/** A submit that was decoded and checked. */
export interface SubmitRequest {
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
  readonly traceparent: string | null;
  /** The `Idempotency-Key`, and the digest of the request that bears it. */
  readonly key: string | null;
  readonly requestDigest: string;
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

type Fate =
  | { readonly made: { readonly createdAt: Date; readonly receipt: string } }
  | { readonly replayOf: string }
  | { readonly clash: 'key' | 'id' }
  | { readonly removed: string }
  | { readonly again: true };

export class RunsService {
  private readonly submits: Lane<NewRun, Fate>;
  private readonly cancels: Lane<Cancel, Canceled | undefined>;

  constructor(
    private readonly platform: Platform,
    private readonly metrics: RunMetrics,
  ) {
    const lane = { maxItems: LANE_ITEMS, retryForMs: RETRY_FOR_MS, timing: platform.timing };
    this.submits = new Lane({
      ...lane,
      flush: (runs) => this.flushSubmits(runs),
      onFlush: (n) => metrics.countFlush('submit', n),
    });
    this.cancels = new Lane({ ...lane, flush: (cancels) => this.flushCancels(cancels) });
  }

  /** Makes a run, or answers with the one that the same key or id made before. */
  async submit(caller: RequestCaller, request: SubmitRequest): Promise<SubmitAnswer> {
    const run = newRun(caller, request);
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      const fate = await this.submits.push(run).catch((error: unknown) => {
        // 23505: somebody is making a run of this id right now; the next try sees theirs.
        if (errorCode(error) === '23505') return { again: true } as const;
        throw error;
      });
      if ('again' in fate) continue;
      if ('made' in fate) {
        this.metrics.countSubmitted();
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

  /** A page of the caller's runs, newest first, and whether there are more. */
  async list(
    caller: RequestCaller,
    filter: RunFilter,
    after: PagePlace | undefined,
    limit: number,
  ): Promise<{ runs: readonly RunRow[]; more: boolean }> {
    const rows = await listRuns(this.platform.pools.read, caller.organizationId, filter, after, limit + 1);
    return { runs: rows.slice(0, limit), more: rows.length > limit };
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
    if (canceled?.result === 'ended') this.metrics.countEnded({ state: 'canceled', code: 'canceled' });
    if (canceled?.result === 'requested') this.platform.bells.canceled.ring();
    const run = await this.get(caller, id);
    if (isEnded(run.state) && run.state !== 'canceled') {
      throw new Problem(
        'run_ended',
        `the run has ended ${run.state}: nothing is left to cancel; submit it anew if needed`,
        {
          members: { end: endOf(run) },
        },
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
    return new Map(runs.map((run) => [run, fateOf(run, keys, known)]));
  }

  private async flushCancels(cancels: readonly Cancel[]): Promise<(Canceled | undefined)[]> {
    const once = [...new Map(cancels.map((cancel) => [cancel.runId, cancel])).values()];
    const rows = await cancelIfLive(this.platform.pools.submit, once);
    const byRun = new Map(rows.map((row) => [row.runId, row]));
    return cancels.map((cancel) => byRun.get(cancel.runId));
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

function keyOf(organizationId: string, key: string): string {
  return `${organizationId} ${key}`;
}

function newRun(caller: RequestCaller, request: SubmitRequest): NewRun {
  const id = request.id ?? newId();
  return {
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
    specDigest: digestOf({ kind: request.kind, spec: request.spec }),
    timeoutMs: request.timeoutMs,
    notBefore: request.notBefore?.toISOString() ?? null,
    origin: 'api',
    principal: caller.principal,
    rerunOf: null,
    traceparent: request.traceparent,
    key: request.key,
    requestDigest: request.requestDigest,
  };
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
