/**
 * Brings what waits into the store, in order: one statement in flight at a time, the first of what waits held back for
 * at most GATHER_MS so that others go with it, and not at all when it was quiet before, when there is enough, or when
 * the tool has ended. What waits, and how it is counted, is its owner's. Invariant: once the run is lost nothing more is
 * stored, and whoever waits is let go.
 */
import type { Timing } from '../platform/time.js';

/** The longest that anything is held back to be stored together with what comes later. */
const GATHER_MS = 100;

/** `refused`: the store will never take it, and goes on without. `lost`: the run is no longer ours. */
export type StoreAnswer = 'stored' | 'refused' | 'lost';

export interface GathererPorts<Batch> {
  /** When the first of what waits came, by `timing`; undefined when nothing waits. */
  readonly waitingSinceMs: () => number | undefined;
  /** What waits needs no company. */
  readonly isEnough: () => boolean;
  /** Takes at least the first of what waits, as much as goes into one statement. */
  readonly take: () => Batch;
  /** Tries until it knows; never rejects. */
  readonly store: (batch: Batch) => Promise<StoreAnswer>;
  /** It was stored, or will never be: gives back what it held. */
  readonly release: (batch: Batch) => void;
  /** The run is no longer ours; called once. */
  readonly onLost: () => void;
  readonly timing: Pick<Timing, 'monotonicMs' | 'delay'>;
}

export class Gatherer<Batch> {
  private lost = false;
  private isEnding = false;
  private running: Promise<void> | undefined;
  private holding: AbortController | undefined;
  /** When the last statement was sent. */
  private storedMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly ports: GathererPorts<Batch>) {}

  get isLost(): boolean {
    return this.lost;
  }

  /** Call it whenever something more waits. Nothing is taken before the caller's turn is over. */
  wake(): void {
    if (this.ports.isEnough()) this.holding?.abort();
    this.running ??= this.run();
  }

  /** The tool has ended: nothing is held back any more. Resolves when nothing waits and nothing is in flight. */
  async drained(): Promise<void> {
    this.isEnding = true;
    this.holding?.abort();
    while (this.running) await this.running;
  }

  private async run(): Promise<void> {
    await undefined; // so that `running` is set before the loop can end
    for (let since = this.ports.waitingSinceMs(); since !== undefined; since = this.ports.waitingSinceMs()) {
      await this.hold(since);
      const batch = this.ports.take();
      if (!this.lost) await this.store(batch);
      this.ports.release(batch);
    }
    this.running = undefined;
  }

  private async hold(sinceMs: number): Promise<void> {
    const { timing, isEnough } = this.ports;
    if (this.lost || this.isEnding || isEnough()) return;
    const waitMs = Math.min(sinceMs, this.storedMs) + GATHER_MS - timing.monotonicMs();
    if (waitMs <= 0) return;
    this.holding = new AbortController();
    await timing.delay(waitMs, this.holding.signal);
    this.holding = undefined;
  }

  private async store(batch: Batch): Promise<void> {
    this.storedMs = this.ports.timing.monotonicMs();
    if ((await this.ports.store(batch)) !== 'lost') return;
    this.lost = true;
    this.ports.onLost();
  }
}
