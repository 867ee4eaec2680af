/**
 * Remembers who was refused: a known token that was revoked, or that may not do this. A refusal changes nothing, so its
 * answer never waits for the entry; each principal gets one entry a minute here, which counts those before it.
 */
import type { Pool } from '../platform/db/db.js';
import { Lane } from '../platform/db/lane.js';
import type { RequestCaller } from '../platform/http/caller.js';
import type { Logger } from '../platform/log/logger.js';
import type { Timing } from '../platform/time.js';
import { type RefusalEntry, recordRefusals } from './refusals.sql.js';

const MINUTE_MS = 60_000;
const LANE_ITEMS = 200;

export interface Refusal {
  readonly code: RefusalEntry['code'];
  readonly method: string;
  /** The pattern of the route. */
  readonly route: string;
}

/** What is known of a principal that was refused here; there are never more of these than tokens. */
interface Minute {
  /** Until then its refusals are only counted. */
  untilMs: number;
  /** Refusals that no entry tells of yet. */
  untold: number;
}

export class RefusalsService {
  private readonly minutes = new Map<string, Minute>();
  private readonly lane: Lane<RefusalEntry, undefined>;
  private isFailing = false;

  constructor(
    pool: Pool,
    private readonly timing: Timing,
    private readonly log: Logger,
  ) {
    this.lane = new Lane({
      maxItems: LANE_ITEMS,
      // What could not be written is told by the entry of a later minute.
      retryForMs: 0,
      timing,
      flush: async (refusals) => {
        await recordRefusals(pool, refusals);
        return refusals.map(() => undefined);
      },
    });
  }

  /** Returns at once and never throws. */
  note({ chain, principal }: RequestCaller, refusal: Refusal): void {
    const nowMs = this.timing.monotonicMs();
    const minute = this.minutes.get(principal.id) ?? { untilMs: nowMs, untold: 0 };
    this.minutes.set(principal.id, minute);
    if (nowMs < minute.untilMs) {
      minute.untold += 1;
      return;
    }
    const suppressed = minute.untold;
    minute.untilMs = nowMs + MINUTE_MS;
    minute.untold = 0;
    this.lane.push({ chain, principal: principal.id, principalName: principal.name, ...refusal, suppressed }).then(
      () => {
        this.isFailing = false;
      },
      (error: unknown) => {
        minute.untold += suppressed + 1;
        if (!this.isFailing) {
          this.log.warn({ code: 'refusals_not_recorded', err: error }, 'refused requests could not be recorded yet');
        }
        this.isFailing = true;
      },
    );
  }
}
