/** Slow work that any replica may do at any time: partitions ahead of their days. */
import type { Pool } from '../platform/db/db.js';
import type { Loop } from '../platform/loop.js';
import { ensurePartitions } from '../runs/partitions.sql.js';

const PARTITION_DAYS_AHEAD = 3;

export class HousekeepingLoop implements Loop {
  readonly name = 'housekeeping';

  constructor(private readonly pool: Pool) {}

  async step(): Promise<'idle'> {
    await ensurePartitions(this.pool, PARTITION_DAYS_AHEAD);
    return 'idle';
  }
}
