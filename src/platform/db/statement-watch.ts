/** What a pool tells of each statement, to whoever counts. */
export interface StatementWatch {
  /** It was carried out; `tookMs` from when it was sent. */
  answered(tookMs: number): void;
  /** It was not, or nobody knows. */
  failed(error: unknown): void;
}

/** The wait for a connection, told when it was in vain. */
export async function watched(wait: Promise<void>, watch: StatementWatch | undefined): Promise<void> {
  try {
    await wait;
  } catch (error) {
    watch?.failed(error);
    throw error;
  }
}
