/** Who executes runs, as the workers' own rows tell, and who is taken out of service. */
import { installationChain } from '../audit/audit.sql.js';
import { encodeId } from '../kernel/ids.js';
import { Bug, Problem } from '../kernel/problems.js';
import type { RequestCaller } from '../platform/http/caller.js';
import type { PagePlace } from '../platform/http/page.js';
import type { Pools } from '../platform/platform.js';
import { findCause, putIfUnchanged } from './drain.sql.js';
import { CONNECTED_MS, type WorkerView } from './worker.js';
import { findWorker, listWorkers } from './worker.sql.js';

export interface WorkerAnswer {
  readonly worker: WorkerView;
  /** Of what made it so, now or before. */
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
   * From its answer on the worker claims and starts nothing; what it runs goes on. Said again it writes nothing and
   * answers the same, the receipt too. Throws `not_found`, or `worker_ended`.
   */
  drain(caller: RequestCaller, id: string): Promise<WorkerAnswer> {
    return this.put(caller, id, 'draining');
  }

  /**
   * The worker claims again, within its poll interval. Said again it writes nothing and answers the same, the receipt
   * too. Throws `not_found`, `worker_ended`, or `worker_stopping`.
   */
  undrain(caller: RequestCaller, id: string): Promise<WorkerAnswer> {
    return this.put(caller, id, 'live');
  }

  private async put(caller: RequestCaller, id: string, to: 'draining' | 'live'): Promise<WorkerAnswer> {
    const { principal } = caller;
    const chain = await installationChain(this.pools.submit);
    if (!chain) throw new Bug('the installation has no chain');
    const change = { worker: id, chain, object: encodeId('wrk', id), by: principal.id, byName: principal.name };
    // Each turn but the last met somebody else's change between its look and its own.
    for (;;) {
      const worker = alive(await this.get(id));
      if (worker.state === to) return { worker, receipt: await findCause(this.pools.submit, to, change) };
      if (to === 'live' && worker.drainedBy === null) throw stopping(worker);
      const [put] = await putIfUnchanged(this.pools.submit, to, { ...change, seen: worker.drains });
      if (put) return { worker: alive(await this.get(id), put.receipt), receipt: put.receipt };
    }
  }
}

/** The worker, unless its life is over: then there is nothing to change any more. */
function alive(worker: WorkerView, receipt?: string): WorkerView {
  if (worker.endedAt === null) return worker;
  throw new Problem(
    'worker_ended',
    `worker ${worker.name} is ${worker.state}, and that never changes: its process, started again, is a new worker`,
    { members: { state: worker.state }, ...(receipt === undefined ? {} : { receipt }) },
  );
}

function stopping({ name, state }: WorkerView): Problem {
  return new Problem(
    'worker_stopping',
    `the process of worker ${name} is stopping, which is not undone: start it again, and it is a new worker`,
    { members: { state } },
  );
}
