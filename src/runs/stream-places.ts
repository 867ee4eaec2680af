/** How many streams there may be, in all and of one caller: whoever has none must not wait for who has many. */
import { Problem } from '../kernel/problems.js';

export interface StreamBounds {
  readonly maxStreams: number;
  /** Of one principal. */
  readonly maxStreamsOfCaller: number;
}

const RETRY_AFTER_SECONDS = 5;

export class StreamPlaces {
  private readonly takenBy = new Map<string, number>();
  private taken = 0;

  constructor(
    private readonly bounds: StreamBounds,
    /** Told how many there are now. */
    private readonly onChange: (taken: number) => void,
  ) {}

  /** Takes a place; the returned function gives it back, once. Throws `too_many_streams` or `unavailable`. */
  take(principalId: string): () => void {
    const { maxStreams, maxStreamsOfCaller } = this.bounds;
    const retry = { retryAfterSeconds: RETRY_AFTER_SECONDS };
    if (this.taken >= maxStreams) {
      throw new Problem('unavailable', `this replica serves ${maxStreams} streams already: connect again later`, retry);
    }
    const own = this.takenBy.get(principalId) ?? 0;
    if (own >= maxStreamsOfCaller) {
      throw new Problem('too_many_streams', `${maxStreamsOfCaller} streams are open already: close some first`, retry);
    }
    this.count(principalId, 1);
    let isGiven = false;
    return () => {
      if (!isGiven) this.count(principalId, -1);
      isGiven = true;
    };
  }

  private count(principalId: string, change: 1 | -1): void {
    const own = (this.takenBy.get(principalId) ?? 0) + change;
    if (own > 0) this.takenBy.set(principalId, own);
    else this.takenBy.delete(principalId);
    this.taken += change;
    this.onChange(this.taken);
  }
}
