/** Why a run isn't taken by any worker, for its organization to know. */
import { Problem } from '../kernel/problems.js';
import type { Pool } from '../platform/db/db.js';
import type { RequestCaller } from '../platform/http/caller.js';
import type { Why } from './why.js';
import { whyOf } from './why.rules.js';
import { lookWhy } from './why.sql.js';

export class WhyService {
  constructor(private readonly pool: Pool) {}

  /** Throws `not_found`. */
  async ask({ organizationId }: Pick<RequestCaller, 'organizationId'>, id: string): Promise<Why> {
    const standing = await lookWhy(this.pool, organizationId, id);
    if (!standing) throw new Problem('not_found', 'there is no such run');
    return whyOf(standing);
  }
}
