/** What stands in a chain, newest first, and whether it still holds what a receipt names. */
import { Problem } from '../kernel/problems.js';
import type { Pool } from '../platform/db/db.js';
import type { RequestCaller } from '../platform/http/caller.js';
import type { AuditService } from './audit.service.js';
import { seqAt } from './audit.sql.js';
import { LAST_SEQ } from './chain.js';
import { type EntryFilter, entryAt, isDirect, listEntries, seqDown } from './entries.sql.js';
import { type Entry, type EntryRow, entryOf, receiptIn } from './entry.js';

/** Without an index so much is looked at in one statement, and for so long on one page. */
const SCAN_BOUNDS = Object.freeze({ entries: 50_000, ms: 1_000 });

export interface EntrySearch {
  readonly filter: EntryFilter;
  /** Excluded. */
  readonly after: Date | undefined;
  /** Excluded. */
  readonly before: Date | undefined;
  /** Only entries below this number. */
  readonly below: number | undefined;
  readonly limit: number;
}

export interface EntryPage {
  readonly entries: readonly EntryRow[];
  /** The rest is below this number; undefined when there is none. */
  readonly below: number | undefined;
}

export interface ReceiptAnswer {
  readonly receipt: string;
  readonly holds: boolean;
  readonly reason?: 'missing' | 'altered' | 'differs';
  /** As it is stored now; null when it isn't, or isn't the caller's to see. */
  readonly entry: Entry | null;
}

export class EntriesService {
  constructor(
    private readonly pool: Pool,
    private readonly audit: Pick<AuditService, 'installationChain'>,
    private readonly bounds: { readonly entries: number; readonly ms: number } = SCAN_BOUNDS,
  ) {}

  /** A page, newest first. It may be short, even empty, and lead on all the same: then its time was over. */
  async list(chain: string, search: EntrySearch): Promise<EntryPage> {
    const untilMs = performance.now() + this.bounds.ms;
    const { filter, after, before, below, limit } = search;
    const from = after ? await seqAt(this.pool, chain, after, 1) : 1;
    let to = before ? (await seqAt(this.pool, chain, before)) - 1 : LAST_SEQ;
    if (below !== undefined) to = Math.min(to, below - 1);
    const entries: EntryRow[] = [];
    while (to >= from) {
      // By entries, not by numbers: between two of them somebody may have left as wide a gap as he likes.
      const look = isDirect(filter) ? undefined : await seqDown(this.pool, chain, { from, to }, this.bounds.entries);
      const bottom = look ?? from;
      // One more than is shown tells whether there are more.
      entries.push(...(await listEntries(this.pool, chain, filter, { from: bottom, to }, limit + 1 - entries.length)));
      if (entries.length > limit) return { entries: entries.slice(0, limit), below: entries[limit - 1]?.seq };
      to = bottom - 1;
      if (to >= from && performance.now() >= untilMs) return { entries, below: bottom };
    }
    return { entries, below: undefined };
  }

  /**
   * Whether a chain still holds the entry that a receipt names: the receipts of one's own organization, and, without
   * their entries unless one is an admin of it, those of the installation. Throws `not_found` for all others.
   */
  async receipt(caller: RequestCaller, text: string): Promise<ReceiptAnswer> {
    const receipt = receiptIn(text);
    const isOwn = receipt?.chain === caller.chain;
    if (!receipt || !(isOwn || receipt.chain === (await this.audit.installationChain()))) {
      throw new Problem('not_found', 'there is no such receipt');
    }
    const found = await entryAt(this.pool, receipt.chain, receipt.seq);
    const reason = !found?.isLed
      ? 'missing'
      : !found.isWhole
        ? 'altered'
        : found.link !== receipt.link
          ? 'differs'
          : undefined;
    const mayLook = isOwn || caller.isInstallationAdmin;
    return {
      receipt: text,
      holds: reason === undefined,
      ...(reason && { reason }),
      entry: found && mayLook ? entryOf(found) : null,
    };
  }
}
