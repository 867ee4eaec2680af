/**
 * Cancels and reruns by filter. Both go from the newest run that matches to older ones and never back: what is submitted
 * meanwhile is not meant. Nothing is held between one statement and the next.
 */

import { encodeId } from '../kernel/ids.js';
import { Problem } from '../kernel/problems.js';
import { END_STATES, LIVE_STATES } from '../kernel/run-words.js';
import { isTransient } from '../platform/db/db.js';
import type { Bearing } from '../platform/http/bearing.js';
import type { RequestCaller } from '../platform/http/caller.js';
import type { PagePlace } from '../platform/http/page.js';
import type { Platform } from '../platform/platform.js';
import { type BatchService, newestReceipt, wholeKey } from './batch.service.js';
import { type EndedInput, findEndedInputs, findSummaries } from './bulk.sql.js';
import { type Cancel, type Canceled, cancelIfLive } from './cancel.sql.js';
import { matchingRuns, type RunFilter } from './list.sql.js';
import type { RunState } from './run.js';
import type { RunMetrics } from './run.metrics.js';
import { type EarlierKey, findKeys } from './submit.sql.js';
import { incomingRun, inputOf, keyReused, problemOf } from './submits.js';
import type { Turns } from './turns.js';

/** So many are ended by one statement: some 100 ms, on two busy cores. */
const CHUNK = 200;
const COUNTED_AT_ONCE = 5_000;
const COUNTED_AT_MOST = 100_000;
/** Less than a balancer waits for an answer. */
const WORKS_FOR_MS = 25_000;
/** Specs that one statement takes: what a batch may have, too. */
const MAX_BYTES = 16 * 1024 * 1024;

export interface BulkRequest {
  readonly filter: RunFilter;
  readonly dryRun: boolean;
  readonly after: PagePlace | undefined;
}

export interface BulkCancelAnswer {
  readonly matched: number;
  readonly canceled: number;
  /** Those whose holders still have to stop the tool. */
  readonly stopping: number;
  readonly next: PagePlace | null;
  readonly receipt: string | null;
}

export interface Rerun {
  /** UUIDs. */
  readonly rerunOf: string;
  readonly id: string;
}

export interface BulkRerunAnswer {
  readonly matched: number;
  readonly items: readonly Rerun[];
  readonly next: PagePlace | null;
  readonly replayed: boolean;
  readonly receipt: string | null;
}

export class BulkService {
  constructor(
    private readonly platform: Platform,
    private readonly metrics: RunMetrics,
    private readonly turns: Turns,
    private readonly batches: Pick<BatchService, 'make'>,
  ) {}

  /** Cancels what matches and has not ended, until nothing is left, the time is over or the caller is `gone`. */
  async cancel(caller: RequestCaller, request: BulkRequest, gone: AbortSignal): Promise<BulkCancelAnswer> {
    const states = request.filter.states ?? LIVE_STATES;
    const meant = { ...request, filter: { ...request.filter, states } };
    if (request.dryRun) {
      return { ...(await this.count(caller, meant, gone)), canceled: 0, stopping: 0, receipt: null };
    }
    const all: Canceled[] = [];
    let matched = 0;
    const next = await this.walk(
      caller,
      meant,
      gone,
      () => CHUNK,
      async (places) => {
        all.push(...(await this.cancelThese(caller, places, states)));
        matched += places.length;
      },
    );
    const canceled = all.filter(({ result }) => result === 'ended').length;
    const receipt = newestReceipt(all.map((one) => one.receipt));
    return { matched, canceled, stopping: all.length - canceled, next, receipt };
  }

  /**
   * Makes a new run for each of up to `limit` ended ones that match, all in one statement. With a key a request that came
   * before is answered with what it made then. Throws `idempotency_key_reused`, and `run_removed` when none of it is left.
   */
  async rerun(
    caller: RequestCaller,
    request: BulkRequest & { readonly limit: number },
    bearing: Bearing,
    gone: AbortSignal,
  ): Promise<BulkRerunAnswer> {
    const meant = { ...request, filter: { ...request.filter, states: request.filter.states ?? END_STATES } };
    if (request.dryRun) {
      return { ...(await this.count(caller, meant, gone)), items: [], replayed: false, receipt: null };
    }
    const earlier = await this.earlier(caller, bearing);
    if (earlier) return this.rerunBefore(caller, meant, earlier);
    const { inputs, next } = await this.gather(caller, meant, gone);
    if (inputs.length === 0 || gone.aborted) return { matched: 0, items: [], next, replayed: false, receipt: null };
    const own = { ...bearing, key: null };
    const incoming = inputs.map((input) => incomingRun(caller, { ...own, ...inputOf(input) }, input.id));
    const ids = incoming.map(({ run }) => run.id);
    const made = await this.batches.make(incoming, wholeKey(caller, bearing, ids), new Set(ids));
    if ('earlier' in made) return this.rerunBefore(caller, meant, made.earlier);
    return { ...(await this.look(caller, ids)), next: next && placeBehind(inputs), replayed: false };
  }

  private async count(
    caller: RequestCaller,
    request: BulkRequest,
    gone: AbortSignal,
  ): Promise<{ matched: number; next: PagePlace | null }> {
    let matched = 0;
    const limit = () => Math.min(COUNTED_AT_ONCE, COUNTED_AT_MOST - matched);
    const next = await this.walk(caller, request, gone, limit, async (places) => {
      matched += places.length;
    });
    return { matched, next };
  }

  /**
   * Hands what matches to `take`, part by part, of `limit()` each until that is none. Answers where it would go on: that
   * is in front of a part that failed, for what was done before it has to be told.
   */
  private async walk(
    { organizationId }: RequestCaller,
    { filter, after }: BulkRequest,
    gone: AbortSignal,
    limit: () => number,
    take: (places: readonly PagePlace[]) => Promise<void>,
  ): Promise<PagePlace | null> {
    const { timing, pools } = this.platform;
    const until = timing.monotonicMs() + WORKS_FOR_MS;
    let place = after;
    try {
      do {
        const search = { organizationId, filter, after: place, limit: limit() };
        const part = await this.turns.persist(() => matchingRuns(pools.read, search));
        if (part.items.length > 0) await take(part.items);
        if (!part.next) return null;
        place = part.next;
      } while (limit() > 0 && timing.monotonicMs() < until && !gone.aborted);
    } catch (error) {
      if (place === undefined || place === after || !mayPass(error)) throw error;
    }
    return place ?? null;
  }

  /** Cancels those that are still in one of the states that were meant. */
  private async cancelThese(
    { organizationId, chain, principal }: RequestCaller,
    places: readonly PagePlace[],
    states: readonly RunState[],
  ): Promise<readonly Canceled[]> {
    const { pools, bells } = this.platform;
    const cancels = places.map(
      ({ id }): Cancel => ({
        runId: id,
        organizationId,
        chain,
        object: encodeId('run', id),
        kind: 'requested',
        detail: `canceled by ${principal.name}`,
        by: principal.id,
        byName: principal.name,
        states,
      }),
    );
    const rows = await this.turns.take(0, () => cancelIfLive(pools.submit, cancels));
    for (const { ended } of rows) if (ended) this.metrics.countEnded(ended);
    bells.ended.ring(rows.flatMap(({ result, runId }) => (result === 'ended' ? [runId] : [])));
    if (rows.some(({ result }) => result === 'requested')) bells.canceled.ring();
    return rows;
  }

  /** What up to `limit` ended runs were made of, as far as one statement takes it. */
  private async gather(
    caller: RequestCaller,
    request: BulkRequest & { readonly limit: number },
    gone: AbortSignal,
  ): Promise<{ inputs: readonly EndedInput[]; next: PagePlace | null }> {
    // One may be come past twice, where runs end meanwhile.
    const found = new Set<string>();
    const next = await this.walk(
      caller,
      request,
      gone,
      () => request.limit - found.size,
      async (places) => {
        for (const { id } of places) found.add(id);
      },
    );
    const ids = [...found];
    const { read } = this.platform.pools;
    const inputs = await this.turns.persist(() => findEndedInputs(read, caller.organizationId, ids, MAX_BYTES));
    const last = inputs.at(-1);
    return { inputs, next: last && last.id !== ids.at(-1) ? placeBehind(inputs) : next };
  }

  private async earlier({ organizationId }: RequestCaller, { key, requestDigest }: Bearing) {
    if (key === null) return undefined;
    const { submit } = this.platform.pools;
    const [earlier] = await this.turns.persist(() => findKeys(submit, [{ organizationId, key }]));
    if (earlier && earlier.digest !== requestDigest) throw keyReused();
    return earlier;
  }

  /** The answer to a request that came before. Its `next` is behind what it made, as far as anything is there. */
  private async rerunBefore(
    caller: RequestCaller,
    { filter }: BulkRequest,
    earlier: EarlierKey,
  ): Promise<BulkRerunAnswer> {
    const { organizationId } = caller;
    const { read } = this.platform.pools;
    const made = await this.look(caller, earlier.runIds ?? []);
    const last = made.items.at(-1);
    if (!last) throw problemOf({ removed: encodeId('run', earlier.runId) });
    const [origin] = await this.turns.persist(() => findSummaries(read, organizationId, [last.rerunOf]));
    const after = origin && { at: origin.createdAt, id: origin.id };
    const behind =
      after && (await this.turns.persist(() => matchingRuns(read, { organizationId, filter, after, limit: 1 })));
    return { ...made, next: behind?.next || behind?.items.length ? (after ?? null) : null, replayed: true };
  }

  /** The reruns among the runs of these ids, in their order. */
  private async look({ organizationId }: RequestCaller, ids: readonly string[]) {
    const { read } = this.platform.pools;
    const rows = await this.turns.persist(() => findSummaries(read, organizationId, ids));
    const byId = new Map(rows.map((row) => [row.id, row]));
    const reruns = ids.flatMap((id) => byId.get(id) ?? []);
    const items = reruns.flatMap(({ id, rerunOf }): Rerun[] => (rerunOf === null ? [] : [{ rerunOf, id }]));
    return { items, matched: items.length, receipt: newestReceipt(reruns.map((row) => row.submittedReceipt)) };
  }
}

function mayPass(error: unknown): boolean {
  return isTransient(error) || (error instanceof Problem && error.code === 'unavailable');
}

/**
 * Where it goes on behind what was made, as whoever asks again is told too: a place further on, where the search ended,
 * would make another request of the part that follows.
 */
function placeBehind(inputs: readonly EndedInput[]): PagePlace | null {
  const last = inputs.at(-1);
  return last ? { at: last.createdAt, id: last.id } : null;
}
