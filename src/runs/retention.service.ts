/** How long an organization's ended runs are kept, as its callers see it and say it. */
import { formatDuration } from '../kernel/duration.js';
import { Problem } from '../kernel/problems.js';
import type { RequestCaller } from '../platform/http/caller.js';
import type { Platform } from '../platform/platform.js';
import type { Retention } from './retention.js';
import { changeRetentionIfUnchanged, type RetentionStanding, retentionStanding } from './retention.sql.js';

export interface RetentionAnswer {
  readonly retention: Retention;
  /** Of what made it so, now or before; null when nobody ever said anything about it. */
  readonly receipt: string | null;
}

export class RetentionService {
  constructor(private readonly platform: Pick<Platform, 'pools' | 'config'>) {}

  async get({ organizationId, chain }: RequestCaller): Promise<Retention> {
    return this.retentionOf(await retentionStanding(this.platform.pools.read, organizationId, chain));
  }

  /**
   * Keeps the caller's runs for so long, or with null for as long as the setting says. Said again it writes nothing and
   * answers the same, the receipt too. Throws `precondition_failed` when the ETag is not one that `isExpected`.
   */
  async put(
    { organizationId, chain, principal }: RequestCaller,
    ownMs: number | null,
    isExpected: (etag: string) => boolean,
  ): Promise<RetentionAnswer> {
    const { submit } = this.platform.pools;
    const text = ownMs === null ? 'default' : formatDuration(ownMs);
    const change = { organizationId, chain, ownMs, text, by: principal.id, byName: principal.name };
    // Each turn but the last met somebody else's change between its look and its own.
    for (;;) {
      const standing = await retentionStanding(submit, organizationId, chain);
      if (!isExpected(standing.etag)) throw new Problem('precondition_failed', this.standsOtherwise(standing));
      if (standing.ownMs === ownMs) return { retention: this.retentionOf(standing), receipt: standing.receipt };
      const [written] = await changeRetentionIfUnchanged(submit, { ...change, seen: standing });
      if (!written) continue;
      const now = await retentionStanding(submit, organizationId, chain);
      return { retention: this.retentionOf(now), receipt: written.receipt };
    }
  }

  private retentionOf({ ownMs, etag }: RetentionStanding): Retention {
    return { retentionMs: ownMs ?? this.platform.config.retentionMs, isDefault: ownMs === null, etag };
  }

  private standsOtherwise(standing: RetentionStanding): string {
    const { retentionMs, isDefault, etag } = this.retentionOf(standing);
    return `ended runs are kept for ${formatDuration(retentionMs)}${isDefault ? ', by default' : ''}; its ETag is ${etag}`;
  }
}
