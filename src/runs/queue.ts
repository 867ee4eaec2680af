/** A queue as it stands. Queues are the installation's, and come into being by their names being used. */

/** A person took it out of service: nothing is claimed out of it. */
export interface Pause {
  readonly at: Date;
  /** TypeID and name of who asked for it. */
  readonly by: string;
  readonly byName: string;
  readonly reason: string;
}

/** What waits and runs there, of all organizations. */
export interface QueueLoad {
  /** Pending and due. */
  readonly depth: number;
  readonly isEstimate: boolean;
  /** Since when the run longest in line has been due; null when nothing waits. */
  readonly oldestPendingAt: Date | null;
  readonly running: number;
}

export interface QueueView {
  readonly name: string;
  readonly pause: Pause | null;
  /** Of its pause, as the header has it: another one as soon as that is another. */
  readonly etag: string;
  /** Null for who may not know the numbers of other organizations. */
  readonly load: QueueLoad | null;
  /** Connected, and taking runs out of it. */
  readonly workers: number;
}
