/** Wakes whoever waits in this process. A ring that is lost costs a poll interval, never a run. */
export class Bell {
  private readonly listeners = new Set<() => void>();

  ring(): void {
    for (const listener of this.listeners) listener();
  }

  /** Calls `listener` at each ring until the returned function is called. */
  onRing(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
