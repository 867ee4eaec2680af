/** Queues as callers see them, and who is let out of them: an admin of the installation pauses and resumes. */
import { installationChain } from '../audit/audit.sql.js';
import { Bug, Problem } from '../kernel/problems.js';
import type { RequestCaller } from '../platform/http/caller.js';
import type { Platform } from '../platform/platform.js';
import type { Pause, QueueLoad, QueueView } from './queue.js';
import {
  lookAtQueues,
  pauseAnewIfUnchanged,
  pauseIfUnchanged,
  type QueueRow,
  type QueueStanding,
  queueNames,
  queueStanding,
  resumeIfUnchanged,
} from './queue.sql.js';
import { type QueueDepth, queueDepths, TOLD_AT_MOST } from './queue-depth.sql.js';
import { CONNECTED_MS } from './worker.js';

export interface QueueAnswer {
  readonly queue: QueueView;
  /** Of what made it so, now or before; null when nobody ever paused it. */
  readonly receipt: string | null;
}

export class QueuesService {
  constructor(private readonly platform: Pick<Platform, 'pools' | 'bells'>) {}

  /**
   * A page of queues by name, behind `after`, and whether there are more. How much waits and runs is of all
   * organizations together, so only admins of the installation are told, and are shown queues that only runs name.
   */
  async list(
    { isInstallationAdmin }: Pick<RequestCaller, 'isInstallationAdmin'>,
    after: string,
    limit: number,
  ): Promise<{ queues: readonly QueueView[]; more: boolean }> {
    const search = { after, limit: limit + 1, all: isInstallationAdmin };
    const names = await queueNames(this.platform.pools.read, CONNECTED_MS, search);
    const queues = await this.look(names.slice(0, limit), isInstallationAdmin);
    return { queues, more: names.length > limit };
  }

  /**
   * Pauses a queue, gives its pause another reason, or lets it go on, which then rings for claimers everywhere. Said again
   * it writes nothing and answers the same, the receipt too. Throws `precondition_failed` when the queue's ETag is not
   * one that `isExpected`.
   */
  async put(
    { principal }: Pick<RequestCaller, 'principal'>,
    name: string,
    paused: boolean,
    reason: string | null,
    isExpected: (etag: string) => boolean,
  ): Promise<QueueAnswer> {
    const { submit } = this.platform.pools;
    const chain = await installationChain(submit);
    if (!chain) throw new Bug('the installation has no chain');
    const change = { name, reason, chain, by: principal.id, byName: principal.name };
    // Each turn but the last met somebody else's change between its look and its own.
    for (;;) {
      const standing = await queueStanding(submit, chain, name);
      if (!isExpected(standing.etag)) throw new Problem('precondition_failed', standsOtherwise(name, standing));
      if (standing.reason === (paused ? reason : null)) {
        return { queue: await this.one(name), receipt: standing.receipt };
      }
      const put = paused ? pausing(standing) : resumeIfUnchanged;
      const [written] = await put(submit, { ...change, seen: standing });
      if (!written) continue;
      if (!paused) this.platform.bells.claimable.ring();
      return { queue: await this.one(name), receipt: written.receipt };
    }
  }

  private async one(name: string): Promise<QueueView> {
    const [queue] = await this.look([name], true);
    if (!queue) throw new Bug('a look at a queue found none');
    return queue;
  }

  private async look(names: readonly string[], isTold: boolean): Promise<QueueView[]> {
    const { read } = this.platform.pools;
    const rows = await lookAtQueues(read, CONNECTED_MS, names);
    const depths = new Map<string, QueueDepth>();
    for (let first = 0; isTold && first < names.length; first += TOLD_AT_MOST) {
      const told = await queueDepths(read, names.slice(first, first + TOLD_AT_MOST), false);
      for (const depth of told) depths.set(depth.queue, depth);
    }
    return rows.map((row) => {
      const depth = depths.get(row.name);
      return {
        name: row.name,
        pause: pauseOf(row),
        etag: row.etag,
        load: depth ? loadOf(row, depth) : null,
        workers: row.workers,
      };
    });
  }
}

function pausing({ reason }: QueueStanding) {
  return reason === null ? pauseIfUnchanged : pauseAnewIfUnchanged;
}

function standsOtherwise(name: string, { reason, etag }: QueueStanding): string {
  const standing = reason === null ? 'is not paused' : `is paused: ${reason}`;
  return `queue ${name} ${standing}; its ETag is ${etag}`;
}

function pauseOf({ at, by, byName, reason }: QueueRow): Pause | null {
  if (at === null || by === null || byName === null || reason === null) return null;
  return { at, by, byName, reason };
}

function loadOf({ running }: QueueRow, { depth, isEstimate, oldestAt }: QueueDepth): QueueLoad {
  return { depth, isEstimate, oldestPendingAt: oldestAt, running };
}
