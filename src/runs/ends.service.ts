/**
 * Waits for the ends of runs, whichever replica writes them. What ends here is told at once; for the rest one statement
 * per poll asks for all runs that anybody waits for, and none is sent while nobody does. Nobody waits for longer than
 * asked for: with the database away the answer is what was known.
 */
import { isTransient } from '../platform/db/db.js';
import type { Platform } from '../platform/platform.js';
import { findEnded } from './ends.sql.js';
import { findRun, type RunRow } from './read.sql.js';
import { isEnded } from './run.machine.js';

const POLL_MS = 200;
const MAX_WAITERS = 1_000;
/** What reading the run in the end may add to the time that was asked for. */
const LAST_LOOK_MS = 1_000;

export interface Wait {
  readonly forMs: number;
  /** Aborts when nobody wants to know any more. */
  readonly signal: AbortSignal;
}

export class EndWatch {
  /** Who waits for which run. */
  private readonly waiters = new Map<string, Set<() => void>>();
  private count = 0;
  private isPolling = false;
  private isClosed = false;

  constructor(private readonly platform: Platform) {
    platform.bells.ended.onRing((ids) => this.tell(ids));
  }

  /**
   * The run as it is once it has ended, its time is over or this process stops. Undefined without any wait when too
   * many wait already, or this process is stopping.
   */
  async awaitEnd(run: RunRow, wait: Wait): Promise<RunRow | undefined> {
    if (isEnded(run.state)) return run;
    if (this.isClosed || this.count >= MAX_WAITERS) return undefined;
    const { timing } = this.platform;
    const lookUntilMs = timing.monotonicMs() + wait.forMs + LAST_LOOK_MS;
    await this.untilTold(run.id, wait);
    return wait.signal.aborted ? run : this.lastLook(run, lookUntilMs - timing.monotonicMs());
  }

  /** Answers everybody who waits, and lets nobody wait any more. */
  close(): void {
    this.isClosed = true;
    this.tell([...this.waiters.keys()]);
  }

  private untilTold(id: string, { forMs, signal }: Wait): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const others = this.waiters.get(id) ?? new Set();
      const tell = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', tell);
        if (others.delete(tell)) this.count -= 1;
        if (others.size === 0 && this.waiters.get(id) === others) this.waiters.delete(id);
        resolve();
      };
      const timer = setTimeout(tell, forMs);
      signal.addEventListener('abort', tell);
      this.waiters.set(id, others.add(tell));
      this.count += 1;
      if (!this.isPolling) void this.poll();
    });
  }

  private tell(ids: readonly string[]): void {
    if (this.count === 0) return;
    for (const id of ids) {
      for (const tell of [...(this.waiters.get(id) ?? [])]) tell();
    }
  }

  /** One at a time, for as long as anybody waits. */
  private async poll(): Promise<void> {
    const { pools, timing, log } = this.platform;
    this.isPolling = true;
    let failures = 0;
    while (this.count > 0) {
      await timing.delay(POLL_MS);
      if (this.count === 0) break;
      try {
        const ended = await findEnded(pools.read, [...this.waiters.keys()]);
        failures = 0;
        this.tell(ended.map(({ id }) => id));
      } catch (error) {
        failures += 1;
        if (failures > 1) continue;
        const level = isTransient(error) ? 'warn' : 'error';
        log[level]({ code: 'end_watch_failed', err: error }, 'can’t see which runs have ended; asking again');
      }
    }
    this.isPolling = false;
  }

  /** The run as it is, or as it was known when the database doesn't say within `forMs`. */
  private async lastLook(run: RunRow, forMs: number): Promise<RunRow> {
    const { pools, timing } = this.platform;
    const seen = new AbortController();
    try {
      const found = findRun(pools.read, run.organizationId, run.id).catch((error: unknown) => {
        if (isTransient(error)) return undefined;
        throw error;
      });
      const late = timing.delay(forMs, seen.signal).then(() => undefined);
      return (await Promise.race([found, late])) ?? run;
    } finally {
      seen.abort();
    }
  }
}
