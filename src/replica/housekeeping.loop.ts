/** Slow work that any replica may do at any time: partitions ahead of their days, keys whose time is over; each whole even
 * when the other fails. */
import type { Pool } from '../platform/db/db.js';
import type { Loop } from '../platform/loop.js';
import type { JanitorService } from '../runs/janitor.service.js';
import { ensurePartitions } from '../runs/partitions.sql.js';

const PARTITION_DAYS_AHEAD = 3;
const FULL_BATCH = 1_000;

export class HousekeepingLoop implements Loop {
  readonly name = 'housekeeping';

  constructor(
    private readonly pool: Pool,
    private readonly janitor: Pick<JanitorService, 'expireKeys'>,
  ) {}

  async step(): Promise<'idle' | 'more'> {
    let expired = 0;
    try {
      await ensurePartitions(this.pool, PARTITION_DAYS_AHEAD);
    } finally {
      expired = await this.janitor.expireKeys();
    }
    return expired >= FULL_BATCH ? 'more' : 'idle';
  }
}
