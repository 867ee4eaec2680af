/** Why a run isn't taken: how the predicates of a claim stand for it, and what is told of that. */
import type { EndCode, RunState } from './run.js';

export const WHY_CODES = [
  'not_pending',
  'cancel_requested',
  'not_before',
  'queue_paused',
  'no_worker',
  'not_served',
  'workers_draining',
  'slots_busy',
  'others_first',
] as const;
export type WhyCode = (typeof WHY_CODES)[number];

export interface WhyReason {
  readonly code: WhyCode;
  readonly detail: string;
  /** What would change it, and who can do that. */
  readonly remedy: string;
  /** When it ends by itself, where that is known. */
  readonly until: Date | null;
  /** `slots_busy`, `workers_draining`: who. */
  readonly workers?: readonly WhyWorker[];
  /** `not_served`: the queues that connected workers serve. */
  readonly queues?: readonly string[];
  /** `others_first`: how many; when `isAtLeast` there may be more. */
  readonly ahead?: number;
  readonly isAtLeast?: boolean;
}

/** Ids are TypeIDs. A worker that drains is told without what it holds. */
export interface WhyWorker {
  readonly id: string;
  readonly name: string;
  readonly slots?: number;
  readonly held?: number;
  readonly runs?: readonly string[];
}

export interface Why {
  readonly id: string;
  readonly state: string;
  readonly queue: string;
  /** Exactly when there are no reasons. */
  readonly isClaimable: boolean;
  readonly reasons: readonly WhyReason[];
}

/** Lists of workers, of the runs that each of them holds, and of queues end here. */
export const TOLD_WORKERS = 10;
export const TOLD_RUNS = 10;
export const TOLD_QUEUES = 20;

export interface BusyWorker {
  readonly id: string;
  readonly name: string;
  readonly slots: number;
  /** Runs of all organizations. */
  readonly held: number;
  /** Ids of those of the asking organization, the longest held first, at most `TOLD_RUNS`. */
  readonly runs: readonly string[];
}

export interface DrainingWorker {
  readonly id: string;
  readonly name: string;
  /** Its process is stopping; otherwise a person drained it. */
  readonly isStopping: boolean;
}

/** A run, and how each predicate stands. Connected: holds a lease, and has slots. */
export interface Standing {
  readonly id: string;
  readonly queue: string;
  readonly state: RunState;
  readonly isPending: boolean;
  readonly isDue: boolean;
  readonly isOpen: boolean;
  /** Some worker would take it with a claim for all its free slots. */
  readonly isNext: boolean;
  readonly notBefore: Date | null;
  readonly cancelRequestedAt: Date | null;
  readonly end: string | null;
  readonly endCode: EndCode | null;
  readonly endedAt: Date | null;
  readonly holder: string | null;
  readonly claimedAt: Date | null;
  readonly startedAt: Date | null;
  readonly holderLeaseUntil: Date | null;
  readonly isHolderLeased: boolean;
  /** These three are null together. */
  readonly pausedAt: Date | null;
  readonly pausedBy: string | null;
  readonly pauseReason: string | null;
  /** Of workers: connected; of these, serving the queue; of these, live; of these, with a free slot. */
  readonly connected: number;
  readonly serving: number;
  readonly live: number;
  readonly free: number;
  /** Names that connected workers serve, at most `TOLD_QUEUES`. */
  readonly served: readonly string[];
  /** Serving and not live, at most `TOLD_WORKERS`. */
  readonly draining: readonly DrainingWorker[];
  /** Serving and live, without a free slot, at most `TOLD_WORKERS`. */
  readonly busy: readonly BusyWorker[];
  /** Runs that are taken before this one where they are fewest, with a free slot if there is one; counted up to `bound`. */
  readonly ahead: number;
  readonly bound: number;
}
