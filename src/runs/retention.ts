/** How long the ended runs of an organization are kept, and what went when their time was over. */

export interface Retention {
  readonly retentionMs: number;
  /** The organization says nothing of its own: the setting holds. */
  readonly isDefault: boolean;
  /** Of what the organization says, as the header has it. */
  readonly etag: string;
}

/** What one removal took away. */
export interface Removed {
  readonly runs: number;
  readonly events: number;
  readonly outputChunks: number;
  readonly outputBytes: number;
}
