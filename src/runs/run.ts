/** The nouns of a run: its states, its end, and the record as it is read. The words are the product's (no synonyms). */
import type { END_STATES, KINDS, LIVE_STATES, ORIGINS, RUN_STATES } from '../kernel/run-words.js';

export type LiveState = (typeof LIVE_STATES)[number];
export type EndState = (typeof END_STATES)[number];
export type RunState = (typeof RUN_STATES)[number];

export const END_CODES = [
  'ok',
  'tool_failed',
  'step_failed',
  'invalid_input',
  'unavailable',
  'limit_exceeded',
  'worker_lost',
  'replica_stopped',
  'supervisor_lost',
  'effects_unknown',
  'recovery_limit',
  'timeout',
  'canceled',
  'denied',
  'expired',
  'internal',
] as const;
export type EndCode = (typeof END_CODES)[number];

export const CANCEL_KINDS = ['requested', 'deadline', 'overrun', 'parent_ended', 'superseded'] as const;
export type CancelKind = (typeof CANCEL_KINDS)[number];

export type Kind = (typeof KINDS)[number];

export type Origin = (typeof ORIGINS)[number];

/** Who acted, as it was at that moment. `id` is a TypeID. */
export interface Principal {
  readonly type: 'token' | 'system';
  readonly id: string;
  readonly name: string;
}

/** How a run ended, before it is written. `exitCode` or `signal` exactly when a tool ended by itself or was stopped. */
export interface Outcome {
  readonly state: EndState;
  readonly code: EndCode;
  readonly kind: CancelKind | null;
  readonly detail: string;
  readonly exitCode: number | null;
  readonly signal: string | null;
}

/** One claim of a run by one life of a worker: the names every write of a holder carries. */
export interface Hold {
  readonly runId: string;
  readonly fence: number;
}

/** A claimed run with all that is needed to execute it. */
export interface ClaimedRun extends Hold {
  readonly organizationId: string;
  /** It runs already: there is nothing whose start would have to be kept apart from the claim. */
  readonly started: boolean;
  readonly kind: Kind;
  readonly name: string | null;
  readonly spec: Record<string, unknown>;
  readonly timeoutMs: number | null;
  readonly traceparent: string | null;
  readonly queue: string;
  /** With `position` its place in its queue. */
  readonly priority: number;
  readonly position: number;
  /** From the instant at which it could have been claimed, by the database's clock. */
  readonly waitedMs: number;
}
