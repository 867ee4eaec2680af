/** What a caller may do with runs: submit, look, cancel, run again. Replays and clashes are values until they meet HTTP. */

import { encodeId } from '../kernel/ids.js';
import { Problem } from '../kernel/problems.js';
import { Lane } from '../platform/db/lane.js';
import type { Bearing } from '../platform/http/bearing.js';
import type { RequestCaller } from '../platform/http/caller.js';
import type { PagePlace } from '../platform/http/page.js';
import type { Platform } from '../platform/platform.js';
import { type Cancel, type Canceled, cancelIfLive } from './cancel.sql.js';
import { endOf } from './end.rules.js';
import { listRuns, type Part, type RunFilter } from './list.sql.js';
import { findRun, type RunRow } from './read.sql.js';
import { isEnded } from './run.machine.js';
import type { RunMetrics } from './run.metrics.js';
import type { NewRun } from './submit.sql.js';
import {
  type Fate,
  type Incoming,
  ITEM_BYTES,
  incomingRun,
  inputOf,
  isTakenId,
  problemOf,
  rowOfNew,
  type SubmitRequest,
  sendSubmits,
} from './submits.js';

const LANE_ITEMS = 200;
/** Longer than a statement may take, so that a flush which took too long is tried in halves. */
const RETRY_FOR_MS = 8_000;
/** A flush of this much takes some 100 ms; what waits beyond is answered 503. */
const LOAD = { maxFlushBytes: 4 * 1024 * 1024, maxWaitingItems: 10_000, maxWaitingBytes: 64 * 1024 * 1024 } as const;

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
      flush: (incoming) => this.flushSubmits(incoming),
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
    return this.make(caller, { ...request, ...inputOf(earlier), id: undefined }, earlier.id);
  }

  private async make(caller: RequestCaller, request: SubmitRequest, rerunOf: string | null): Promise<SubmitAnswer> {
    const incoming = incomingRun(caller, request, rerunOf);
    const { run } = incoming;
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      const fate = await this.submits.push(incoming).catch((error: unknown) => {
        if (isTakenId(error)) return { again: true } as const;
        throw error;
      });
      if ('again' in fate) continue;
      if ('made' in fate) {
        this.metrics.countSubmitted(run);
        return {
          run: rowOfNew(run, fate.made.createdAt, fate.made.receipt),
          replayed: false,
          receipt: fate.made.receipt,
        };
      }
      if ('replayOf' in fate) return this.replay(caller, run, fate.replayOf, request.id === undefined);
      throw problemOf(fate);
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

  /** All that were made are told of by one ring. */
  private async flushSubmits(incoming: readonly Incoming[]): Promise<readonly Fate[]> {
    const fates = await sendSubmits(
      this.platform.pools.submit,
      incoming.map(({ run }) => run),
    );
    if (fates.some((fate) => 'made' in fate)) this.platform.bells.claimable.ring();
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

/** Which call would move it: none but a cancel, unless that was asked for already. */
function notEnded(run: RunRow): Problem {
  const way =
    run.cancelRequestedAt === null
      ? `cancel it (POST /v1/runs/${encodeId('run', run.id)}/cancel) or wait for its end`
      : 'its holder was asked to stop it: send this again once it has ended';
  const detail = `the run is ${run.state}, and only what has ended is run again: ${way}`;
  return new Problem('run_not_ended', detail, { members: { state: run.state } });
}

function nameOf({ chain, runId }: Pick<Cancel, 'chain' | 'runId'>): string {
  return `${chain} ${runId}`;
}
