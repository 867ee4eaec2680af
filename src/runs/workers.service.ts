/** Who executes runs, as the workers' own rows tell. */
import type { Pool } from '../platform/db/db.js';
import type { PagePlace } from '../platform/http/page.js';
import type { WorkerView } from './worker.js';
import { listWorkers } from './worker.sql.js';

/** A worker counts as connected when it was seen within this. */
const CONNECTED_MS = 30_000;

export class WorkersService {
  constructor(private readonly pool: Pool) {}

  /** A page of the lives that go on and those that ended within a day, newest first, and whether there are more. */
  async list(after: PagePlace | undefined, limit: number): Promise<{ workers: readonly WorkerView[]; more: boolean }> {
    const rows = await listWorkers(this.pool, CONNECTED_MS, after, limit + 1);
    return { workers: rows.slice(0, limit), more: rows.length > limit };
  }
}
