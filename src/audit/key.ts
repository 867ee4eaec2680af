/** The signing keys of an installation, as its chain tells of them. */

export interface RecordedKey {
  /** `sha256:` and 64 hex digits. */
  readonly fingerprint: string;
  /** The 32 raw bytes in base64. */
  readonly publicKey: string;
  /** As the entry says it: RFC 3339. */
  readonly recordedAt: string;
  /** Of the entry that recorded it. */
  readonly receipt: string;
}

/** The public half of a key that is to be recorded. */
export type PublicHalf = Pick<RecordedKey, 'fingerprint' | 'publicKey'>;
