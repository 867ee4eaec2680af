/** Who executes runs, as the workers' own rows tell, and who is taken out of service. */
import { installationChain } from '../audit/audit.sql.js';
import { encodeId } from '../kernel/ids.js';
import { Bug, Problem } from '../kernel/problems.js';
import type { RequestCaller } from '../platform/http/caller.js';
import type { PagePlace } from '../platform/http/page.js';
import type { Pools } from '../platform/platform.js';
import { drainIfLive, lastEntryOf, undrainIfDrained, type WorkerChange } from './drain.sql.js';
import type { WorkerView } from './worker.js';
import { findWorker, listWorkers } from './worker.sql.js';

/** A worker counts as connected when it was seen within this. */
const CONNECTED_MS = 30_000;

export interface WorkerAnswer {
  readonly worker: WorkerView;
  /** Of the entry that made it what it is. */
  readonly receipt: string | null;
}

export class WorkersService {
  constructor(private readonly pools: Pick<Pools, 'read' | 'submit'>) {}

  /** A page of the lives that go on and those that ended within a day, newest first, and whether there are more. */
  async list(after: PagePlace | undefined, limit: number): Promise<{ workers: readonly WorkerView[]; more: boolean }> {
    const rows = await listWorkers(this.pools.read, CONNECTED_MS, after, limit + 1);
    return { workers: rows.slice(0, limit), more: rows.length > limit };
  }

  /** Throws `not_found`. */
  async get(id: string): Promise<WorkerView> {
    const worker = await findWorker(this.pools.read, CONNECTED_MS, id);
    if (!worker) throw new Problem('not_found', 'there is no such worker');
    return worker;
  }

  /**
   * From its answer on the worker claims and starts nothing; what it runs goes on. Said again it answers the same.
   * Throws `not_found`, or `worker_ended`.
   */
  async drain(caller: RequestCaller, id: string): Promise<WorkerAnswer> {
    const change = await this.changeOf(caller, id);
    const [drained] = await drainIfLive(this.pools.submit, change);
    const worker = await this.alive(id, drained?.receipt);
    return { worker, receipt: drained?.receipt ?? (await this.receiptOf(change, 'worker.draining')) };
  }

  /**
   * The worker claims again, within its poll interval. Said again it answers the same. Throws `not_found`,
   * `worker_ended`, or `worker_stopping`.
   */
  async undrain(caller: RequestCaller, id: string): Promise<WorkerAnswer> {
    const change = await this.changeOf(caller, id);
    const [back] = await undrainIfDrained(this.pools.submit, change);
    const worker = await this.alive(id, back?.receipt);
    if (!back && worker.state === 'draining' && worker.drainedBy === null) {
      throw new Problem(
        'worker_stopping',
        `the process of worker ${worker.name} is stopping, which is not undone: start it again, and it is a new worker`,
        { members: { state: worker.state } },
      );
    }
    return { worker, receipt: back?.receipt ?? (await this.receiptOf(change, 'worker.undrained')) };
  }

  /** The worker, unless its life is over: then there is nothing to change any more. */
  private async alive(id: string, receipt: string | undefined): Promise<WorkerView> {
    const worker = await this.get(id);
    if (worker.endedAt === null) return worker;
    throw new Problem(
      'worker_ended',
      `worker ${worker.name} is ${worker.state}, and that never changes: its process, started again, is a new worker`,
      { members: { state: worker.state }, ...(receipt === undefined ? {} : { receipt }) },
    );
  }

  private async changeOf({ principal }: RequestCaller, id: string): Promise<WorkerChange> {
    const chain = await installationChain(this.pools.submit);
    if (!chain) throw new Bug('the installation has no chain');
    return { worker: id, chain, object: encodeId('wrk', id), by: principal.id, byName: principal.name };
  }

  /** Of an earlier call that said the same; null when there was none. */
  private async receiptOf({ chain, object }: WorkerChange, action: string): Promise<string | null> {
    const [last] = await lastEntryOf(this.pools.read, chain, object);
    return last?.action === action ? last.receipt : null;
  }
}
