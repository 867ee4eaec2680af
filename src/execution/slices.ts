/**
 * Work of which a tool chooses the amount, in order and in slices, so that everything else gets its turn in between.
 * Invariant: nothing is worked on before the caller's turn is over, and nothing for longer than a slice and one step.
 */
import { setImmediate } from 'node:timers/promises';
import type { Timing } from '../platform/time.js';

/** Short, for every tool may have one under way. */
const SLICE_MS = 2;

/** Pauses after each step; it must not throw. */
export type Job = Iterator<undefined, void>;

export class Slices {
  private readonly jobs: Job[] = [];
  private working: Promise<void> | undefined;

  constructor(private readonly timing: Pick<Timing, 'monotonicMs'>) {}

  add(job: Job): void {
    this.jobs.push(job);
    this.working ??= this.work();
  }

  /** Resolves when no job is left. */
  async done(): Promise<void> {
    while (this.working) await this.working;
  }

  private async work(): Promise<void> {
    while (this.jobs.length > 0) {
      await setImmediate();
      this.slice();
    }
    this.working = undefined;
  }

  private slice(): void {
    const untilMs = this.timing.monotonicMs() + SLICE_MS;
    for (let job = this.jobs[0]; job; job = this.jobs[0]) {
      if (job.next().done) this.jobs.shift();
      if (this.timing.monotonicMs() >= untilMs) return;
    }
  }
}
