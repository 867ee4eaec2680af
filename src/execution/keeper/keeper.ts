/**
 * The lease keeper's words: what it is told, what it reports, and the messages between its thread and the main one.
 * A *life* is one incarnation of this replica as a worker: begun once its worker row stands, over for good afterwards.
 */
import type { ClockSample } from '../../platform/db/clock.rules.js';

export interface KeeperSettings {
  /** Past any pooler, straight to the server. Holds a password: never logged. */
  readonly databaseUrl: string;
  readonly ttlMs: number;
  readonly renewMs: number;
  /** The main thread standing still for so long means that no run of this process could ever end. */
  readonly stallLimitMs: number;
  /** The supervisor tells tools to stop this long after the last extension was *sent* … */
  readonly toolDeadlineMs: number;
  /** … and kills them this much later. */
  readonly graceMs: number;
  /** Bound of opening a session and of each statement; the renewal interval, at most 5 s, unless told otherwise. */
  readonly statementLimitMs?: number;
  /** Length of a tick of the main thread and of the keeper; 1 s unless told otherwise. */
  readonly tickMs?: number;
}

export interface Life {
  /** Id of the worker row, a UUID. */
  readonly incarnation: string;
  /** Write end of the pipe to the supervisor of this life; non-blocking. */
  readonly pipeFd: number;
  readonly supervisorPid: number;
}

export type RenewedState = 'live' | 'draining';

export type KeeperEvent =
  | {
      readonly type: 'renewed';
      readonly incarnation: string;
      readonly state: RenewedState;
      /** On the database's clock, like `at`, which is when it was renewed. */
      readonly leaseUntil: Date;
      readonly at: Date;
      readonly clock: ClockSample;
    }
  /** No such row, or one that is stopped or lost: this life is over and isn't renewed any more. */
  | { readonly type: 'over'; readonly incarnation: string }
  /** Renewals stopped getting through; sent once until `recovered`. */
  | { readonly type: 'failing'; readonly since: Date; readonly error: string }
  | { readonly type: 'recovered'; readonly downMs: number }
  /** The supervisor of this life left an extension unacknowledged for too long; sent once in a life. */
  | { readonly type: 'supervisorSilent'; readonly incarnation: string; readonly supervisorPid: number }
  /** The keeper itself is gone: nothing renews this process's lease any more. */
  | { readonly type: 'failed'; readonly error: Error };

export interface KeeperLog {
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
}

/** `order` numbers the lives of a process, so that what is left of an earlier one is told apart. */
export interface LifeOrder extends Life {
  readonly order: number;
  /** What `pipeFd` was when the life began; undefined when it was closed already. */
  readonly pipeIdentity: string | undefined;
}

export interface KeeperThreadData {
  readonly settings: KeeperSettings;
  readonly memory: SharedArrayBuffer;
}

export type ToKeeper =
  | { readonly type: 'begin'; readonly life: LifeOrder }
  | { readonly type: 'end' }
  | { readonly type: 'close' };

export type FromKeeper =
  | {
      readonly type: 'renewed';
      readonly order: number;
      readonly state: RenewedState;
      readonly leaseUntilMs: number;
      readonly clock: ClockSample;
    }
  | { readonly type: 'over'; readonly order: number }
  | { readonly type: 'failing'; readonly sinceMs: number; readonly error: string }
  | { readonly type: 'recovered'; readonly downMs: number }
  /** The server has no connection left for the lease. */
  | { readonly type: 'refused' }
  | { readonly type: 'pipeBroken'; readonly order: number; readonly error: string };
