/**
 * Who may send a statement now: at most so many at a time, the others in the order of their coming. Neither the line
 * nor the waiting in it is without end: a caller is rather told at once than kept for an answer that nobody awaits.
 */

/** So much waits already that the statement was not sent: nothing has changed, it may be sent again later. */
export class Overloaded extends Error {
  override readonly name = 'Overloaded';
}

export interface PermitsOptions {
  readonly size: number;
  /** More than this many in line are refused. */
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
}

export class Permits {
  private free: number;
  /** In the order of their coming, which is also the order in which their time runs out. */
  private readonly line = new Set<() => void>();

  constructor(private readonly options: PermitsOptions) {
    this.free = options.size;
  }

  /** How many stand in line. */
  get waiting(): number {
    return this.line.size;
  }

  /** Takes a permit if one is free and nobody came before. */
  tryTake(): boolean {
    if (this.free === 0) return false;
    this.free -= 1;
    return true;
  }

  /** Resolves once a permit is ours; rejects with `Overloaded`. */
  wait(): Promise<void> {
    const { maxWaiting, maxWaitMs } = this.options;
    if (this.line.size >= maxWaiting) return Promise.reject(new Overloaded(`${maxWaiting} statements wait already`));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.line.delete(admit);
        reject(new Overloaded(`no connection was free for ${maxWaitMs} ms`));
      }, maxWaitMs);
      const admit = () => {
        clearTimeout(timer);
        resolve();
      };
      this.line.add(admit);
    });
  }

  /** Gives a permit back, after a rest if that is due: to the first in line, if there is one. */
  give(restMs = 0): void {
    if (restMs > 0) {
      setTimeout(() => this.give(), restMs).unref();
      return;
    }
    for (const admit of this.line) {
      this.line.delete(admit);
      admit();
      return;
    }
    this.free += 1;
  }
}
