/** What a replica says of itself, for who looks after all of them. */

/** A life that renewed its lease just now. */
export interface ConnectedLife {
  readonly id: string;
  readonly name: string;
  readonly kind: 'replica' | 'worker';
  readonly version: string;
  /** Fingerprint of the key that it signs with. */
  readonly signs: string | null;
  /** Null where it doesn't say so: a program of before. */
  readonly clockAheadMs: number | null;
  readonly ageMinutes: number;
  /** By the database's clock. */
  readonly startedAtMs: number;
  /** When it last renewed its lease. */
  readonly seenAtMs: number;
  readonly ttlMs: number;
}
