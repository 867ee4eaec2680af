/** One life of an executing process: what it is called, what it serves, and until when its lease holds. */

export const WORKER_STATES = ['live', 'draining', 'stopped', 'lost'] as const;
export type WorkerState = (typeof WORKER_STATES)[number];

/** A worker counts as connected when it was seen within this. */
export const CONNECTED_MS = 30_000;

export interface NewWorker {
  /** The incarnation: random, made anew at every start. */
  readonly id: string;
  readonly name: string;
  readonly kind: 'replica' | 'worker';
  readonly slots: number;
  readonly queues: readonly string[];
  readonly version: string;
}

/** What a process says of itself at its registration, for who looks after all of them. */
export interface Introduction {
  /** Fingerprint of the key that it signs bundles with; null when it was given none. */
  readonly signs: string | null;
  /** Its machine's clock at this moment, ms of the epoch. */
  readonly wallMs: number;
}

export interface WorkerView extends NewWorker {
  readonly state: WorkerState;
  /** Who drained it, a TypeID; null while draining: its process is stopping. */
  readonly drainedBy: string | null;
  /** How often persons took it out of service or put it back. */
  readonly drains: number;
  /** When its lease was last renewed. */
  readonly seenAt: Date;
  readonly leaseUntil: Date;
  readonly startedAt: Date;
  readonly endedAt: Date | null;
  readonly running: number;
  readonly connected: boolean;
}
