/**
 * Brings work to this life: claims when something may be claimable, and asks one cheap question (the pulse) that
 * answers for all loops when there is nothing to do. Claims and the comparison of memory with the database take turns
 * here, so the comparison never sees a claim whose answer is still under way.
 */
import type { Executor } from '../execution/executor.js';
import type { Logger } from '../platform/log/logger.js';
import type { Loop } from '../platform/loop.js';
import type { Timing } from '../platform/time.js';
import type { HolderService } from '../runs/holder.service.js';
import type { JanitorService } from '../runs/janitor.service.js';
import type { Pulse } from '../runs/pulse.sql.js';

const CLAIM_AT_MOST = 400;
/** Under a backlog slots that become free one by one are filled together: so long after the first of them. */
const GATHER_MS = 5;
const RECONCILE_EVERY_MS = 15_000;
/** While something runs, a request to cancel it is seen within this (and its own replica at once). */
const PULSE_WHILE_HOLDING_MS = 1_500;
/** A life that holds nothing looks so many times less often: what it could miss is a wake-up that was lost. */
const IDLE_FACTOR = 1.7;
/** Between two looks for what becomes due, however many runs do. */
const DUE_APART_MS = 200;
/** After a start that failed; doubled each time, so that runs that can't be started aren't taken and given back in a storm. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;

export interface WorkLoopParts {
  readonly holder: Pick<HolderService, 'claim' | 'pulse'>;
  readonly executor: Pick<Executor, 'accept' | 'cancel' | 'free' | 'reconcile' | 'size'>;
  readonly janitor: Pick<JanitorService, 'promoteDue'>;
  readonly timing: Timing;
  readonly log: Pick<Logger, 'warn'>;
  readonly pollIntervalMs: number;
  /** Whether a tool that is started now would be let live: what is claimed before that could only be interrupted. */
  readonly mayClaim: () => boolean;
  /** What the pulse saw that others must act on. */
  readonly onPulse: (pulse: Pulse) => void;
}

export class WorkLoop implements Loop {
  readonly name = 'work';
  private wantsClaim = true;
  private wantsPulse = true;
  private inDoubt = false;
  /** The last claim got all that it asked for. */
  private isBacklog = false;
  /** As the last pulse found it. The claim has a guard of its own; this spares the database claims in vain. */
  private isDraining = false;
  /** Runs that the database says are ours, as the last pulse found it. */
  private held = 0;
  /** Since the last start that went well; those of one claim count once. */
  private startFailures = 0;
  private pausedUntilMs = Number.NEGATIVE_INFINITY;
  private warnedAtMs = Number.NEGATIVE_INFINITY;
  private pulsedAtMs = Number.NEGATIVE_INFINITY;
  /** When the next run becomes due, as the last pulse found it. */
  private dueAtMs = Number.POSITIVE_INFINITY;
  private reconciledAtMs: number;

  constructor(private readonly parts: WorkLoopParts) {
    this.reconciledAtMs = parts.timing.monotonicMs();
  }

  /** Something may be claimable, or a slot became free. */
  noteClaimable(): void {
    this.wantsClaim = true;
  }

  /** Some run was asked to stop in this process. */
  noteCanceled(): void {
    this.wantsPulse = true;
  }

  /** An answer may have been lost. */
  noteDoubt(): void {
    this.inDoubt = true;
  }

  noteStarted(): void {
    this.startFailures = 0;
  }

  /**
   * The database refused a start with an error that trying again doesn't mend (this process may be older than the
   * schema). The run goes back, to be taken by somebody who can start it; here nothing is claimed for a while.
   */
  noteStartFailed(error: unknown): void {
    const now = this.parts.timing.monotonicMs();
    if (now < this.pausedUntilMs) return;
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.startFailures, LONGEST_PAUSE_MS);
    this.startFailures += 1;
    this.pausedUntilMs = now + pauseMs;
    if (now - this.warnedAtMs < LONGEST_PAUSE_MS) return;
    this.warnedAtMs = now;
    this.parts.log.warn(
      { code: 'run_start_failed', err: error },
      'claimed runs could not be started and go back; claiming again after a pause that grows up to 30 s',
    );
  }

  /** How long an idle step may wait for the next. */
  intervalMs(): number {
    return Math.max(0, this.pulseAtMs() - this.parts.timing.monotonicMs());
  }

  /** There may be work that was left alone because it could not have been started. */
  get isHeldBack(): boolean {
    return this.wantsClaim && this.parts.executor.free > 0;
  }

  async step(): Promise<'idle' | 'more'> {
    const now = this.parts.timing.monotonicMs();
    if (this.inDoubt || (this.mayHold && now - this.reconciledAtMs >= RECONCILE_EVERY_MS)) await this.reconcile();
    if (this.canClaim()) await this.claim();
    if (this.wantsPulse || now >= this.pulseAtMs()) await this.pulse();
    return this.wantsPulse || this.canClaim() ? 'more' : 'idle';
  }

  /** When the database is to be asked again, if nothing happens before. */
  private pulseAtMs(): number {
    const { pollIntervalMs } = this.parts;
    const restMs = this.mayHold ? Math.min(pollIntervalMs, PULSE_WHILE_HOLDING_MS) : pollIntervalMs * IDLE_FACTOR;
    const becomesDueAtMs = Math.max(this.dueAtMs, this.pulsedAtMs + DUE_APART_MS);
    return Math.min(this.pulsedAtMs + restMs, becomesDueAtMs);
  }

  /** There is something to be compared. */
  private get mayHold(): boolean {
    return this.held > 0 || this.parts.executor.size > 0;
  }

  private canClaim(): boolean {
    const { executor, mayClaim, timing } = this.parts;
    if (!this.wantsClaim || this.isDraining || timing.monotonicMs() < this.pausedUntilMs) return false;
    return executor.free > 0 && mayClaim();
  }

  private async reconcile(): Promise<void> {
    this.inDoubt = false;
    try {
      await this.parts.executor.reconcile();
      this.reconciledAtMs = this.parts.timing.monotonicMs();
    } catch (error) {
      this.inDoubt = true;
      throw error;
    }
  }

  private async claim(): Promise<void> {
    const { holder, executor, timing } = this.parts;
    if (this.isBacklog && executor.free < executor.size / 3) await timing.delay(GATHER_MS);
    const limit = Math.min(executor.free, CLAIM_AT_MOST);
    if (limit === 0) return;
    // What is made known while the answer is under way may have come too late for it.
    this.wantsClaim = false;
    try {
      const { runs, mayBeMore } = await holder.claim(limit);
      for (const run of runs) executor.accept(run);
      this.isBacklog = runs.length === limit;
      // Fewer than asked for: others may have skipped past each other, so nothing is concluded before the next pulse.
      if (mayBeMore) this.wantsClaim = true;
    } catch (error) {
      this.wantsClaim = true;
      throw error;
    }
  }

  private async pulse(): Promise<void> {
    const { holder, executor, janitor, timing, onPulse } = this.parts;
    this.wantsPulse = false;
    this.pulsedAtMs = timing.monotonicMs();
    const pulse = await holder.pulse(!this.wantsClaim);
    this.isDraining = pulse.draining;
    this.held = pulse.held;
    this.dueAtMs = pulse.dueInMs === null ? Number.POSITIVE_INFINITY : timing.monotonicMs() + pulse.dueInMs;
    executor.cancel(pulse.canceled);
    if (pulse.dueInMs !== null && pulse.dueInMs <= 0 && (await janitor.promoteDue()) > 0) {
      this.wantsClaim = true;
      this.wantsPulse = true; // It was a batch: more may be due.
    }
    if (pulse.claimable) this.wantsClaim = true;
    onPulse(pulse);
  }
}
