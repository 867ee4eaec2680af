/**
 * The recomputations of one chain: one at a time, the others in line, which is not without end. Who asks for the same as
 * one that has not begun shares it, and so sees all there is by then; one that nobody waits for any more ends.
 */
import { Problem } from '../kernel/problems.js';
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
  /** Its turn has come. */
  readonly begin: () => void;
}

const MAX_WAITING = 16;
const RETRY_AFTER_SECONDS = 5;

export class ChainLine {
  private running: Place | undefined;
  private readonly waiting: Place[] = [];

  constructor(private readonly recompute: Recompute) {}

  get isEmpty(): boolean {
    return this.running === undefined;
  }

  /** Rejects with `unavailable` when too many others wait. */
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
    return this.waiting.find(({ range, over }) => range.from === from && range.to === to && !over.signal.aborted);
  }

  private enter(range: Range): Place {
    if (this.waiting.length >= MAX_WAITING) {
      const detail = `${MAX_WAITING} others wait for a recomputation of this chain already: ask again`;
      throw new Problem('unavailable', detail, { retryAfterSeconds: RETRY_AFTER_SECONDS });
    }
    const askers = new Set<Asking>();
    const over = new AbortController();
    const tell = (progress: Progress) => {
      for (const { onProgress } of askers) onProgress?.(progress);
    };
    let begin = (): void => undefined;
    const turn = new Promise<void>((resolve, reject) => {
      begin = resolve;
      over.signal.addEventListener('abort', () => reject(over.signal.reason), { once: true });
    });
    const result = turn.then(() => this.recompute(range, tell, over.signal)).finally(() => this.leave(place));
    const place: Place = { range, askers, over, result, begin };
    this.waiting.push(place);
    if (!this.running) this.next();
    return place;
  }

  private leave(place: Place): void {
    if (this.running === place) this.next();
    else this.waiting.splice(this.waiting.indexOf(place), 1);
  }

  private next(): void {
    this.running = this.waiting.shift();
    this.running?.begin();
  }
}
