/** Who executes runs, as the workers' own rows tell. */
import type { Pool } from '../platform/db/db.js';
import type { WorkerView } from './worker.js';
import { listWorkers } from './worker.sql.js';

/** A worker counts as connected when it was seen within this. */
const CONNECTED_MS = 30_000;

export class WorkersService {
  constructor(private readonly pool: Pool) {}

  /** The lives that go on, and those that ended within a day, newest first; at most 200. */
  list(): Promise<readonly WorkerView[]> {
    return listWorkers(this.pool, CONNECTED_MS);
  }
}
