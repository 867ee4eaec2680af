/**
 * The recomputations of one chain: one at a time, the others in line. Who asks for the same as one that has not begun
 * shares it, and so sees all there is by then; one that nobody waits for any more ends.
 */
import type { Progress, Range, Verification } from './verification.js';

export interface Asking {
  /** Told of the progress of a recomputation that is under way. */
  readonly onProgress?: (progress: Progress) => void;
  /** Aborts when whoever asked has gone. */
  readonly signal?: AbortSignal;
}

/** Carries out a recomputation; rejects when `signal` aborts. */
export type Recompute = (
  range: Range,
  onProgress: (progress: Progress) => void,
  signal: AbortSignal,
) => Promise<Verification>;

interface Place {
  readonly range: Range;
  readonly askers: Set<Asking>;
  readonly over: AbortController;
  readonly result: Promise<Verification>;
}

export class ChainLine {
  /** The first of them is under way. */
  private readonly places: Place[] = [];

  constructor(private readonly recompute: Recompute) {}

  get isEmpty(): boolean {
    return this.places.length === 0;
  }

  async ask(range: Range, asking: Asking): Promise<Verification> {
    const { signal } = asking;
    signal?.throwIfAborted();
    const place = this.waitingFor(range) ?? this.enter(range);
    place.askers.add(asking);
    const leave = () => {
      place.askers.delete(asking);
      if (place.askers.size === 0) place.over.abort(signal?.reason);
    };
    signal?.addEventListener('abort', leave, { once: true });
    try {
      return await place.result;
    } finally {
      signal?.removeEventListener('abort', leave);
    }
  }

  private waitingFor({ from, to }: Range): Place | undefined {
    return this.places
      .slice(1)
      .find(({ range, over }) => range.from === from && range.to === to && !over.signal.aborted);
  }

  private enter(range: Range): Place {
    const askers = new Set<Asking>();
    const over = new AbortController();
    const before = this.places.at(-1)?.result.catch(() => undefined) ?? Promise.resolve();
    const result = before
      .then(() => {
        over.signal.throwIfAborted();
        const tell = (progress: Progress) => {
          for (const { onProgress } of askers) onProgress?.(progress);
        };
        return this.recompute(range, tell, over.signal);
      })
      .finally(() => this.places.splice(this.places.indexOf(place), 1));
    const place: Place = { range, askers, over, result };
    this.places.push(place);
    return place;
  }
}
