/**
 * Reaps and settles for replicas that are gone. It may only ever be late: it doesn't reap before its own keeper has
 * renewed twice since this process's sessions were last lost (after an outage the owners renew first), nor for one
 * lease time after the database's clock jumped against this machine's. Costs no statement when the pulse saw nothing.
 */

import type { ClockSample } from '../execution/keeper/keeper.js';
import { clockShiftMs } from '../execution/keeper/keeper.rules.js';
import type { Loop } from '../platform/loop.js';
import type { Timing } from '../platform/time.js';
import type { Pulse } from '../runs/claim.sql.js';
import type { JanitorService } from '../runs/janitor.service.js';

const RENEWALS_BEFORE_REAPING = 2;
const CLOCK_JUMP_MS = 1_000;

/** What the janitor must know of its own keeper. */
export interface KeeperWitness {
  readonly clock: ClockSample | undefined;
  readonly stats: { readonly renewalsSinceLoss: number };
}

export class JanitorLoop implements Loop {
  readonly name = 'janitor';
  private seen = { leaseOver: false, orphaned: false, overdue: false };
  private lastClock: ClockSample | undefined;
  private patientUntilMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly janitor: Pick<JanitorService, 'reap' | 'settle' | 'cancelOverdue'>,
    private readonly keeper: KeeperWitness,
    private readonly leaseTtlMs: number,
    private readonly timing: Timing,
  ) {}

  /** Remembers what a pulse saw until the next step acts on it. */
  notePulse(pulse: Pulse): void {
    this.seen = {
      leaseOver: this.seen.leaseOver || pulse.leaseOver,
      orphaned: this.seen.orphaned || pulse.orphaned,
      overdue: this.seen.overdue || pulse.overdue,
    };
  }

  async step(): Promise<'idle' | 'more'> {
    const mayReap = this.mayReap();
    const { leaseOver, orphaned, overdue } = this.seen;
    this.seen = { leaseOver: false, orphaned: false, overdue: false };
    if (overdue) await this.janitor.cancelOverdue();
    const reaped = leaseOver && mayReap ? await this.janitor.reap() : [];
    if (reaped.length === 0 && !orphaned) return 'idle';
    const settled = await this.janitor.settle();
    this.seen = { ...this.seen, orphaned: settled.length > 0 };
    return settled.length > 0 ? 'more' : 'idle';
  }

  private mayReap(): boolean {
    const clock = this.keeper.clock;
    const now = this.timing.monotonicMs();
    if (clock && this.lastClock && clockShiftMs(this.lastClock, clock).most > CLOCK_JUMP_MS) {
      this.patientUntilMs = now + this.leaseTtlMs;
    }
    this.lastClock = clock ?? this.lastClock;
    return this.keeper.stats.renewalsSinceLoss >= RENEWALS_BEFORE_REAPING && now >= this.patientUntilMs;
  }
}
