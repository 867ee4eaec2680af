/**
 * Wakes whoever waits in this process; `db/wake.ts` carries rings to other replicas. A ring that is lost costs a poll
 * interval, never a run.
 */
export class Bell<What = void> {
  private readonly listeners = new Set<(what: What) => void>();

  ring(what: What): void {
    for (const listener of this.listeners) listener(what);
  }

  /** Calls `listener` at each ring until the returned function is called. */
  onRing(listener: (what: What) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
