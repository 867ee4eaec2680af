/**
 * Reaps and settles for replicas that are gone. It may only ever be late: it doesn't reap before its own keeper has
 * renewed several times in a row without an outage between (after one the owners renew first, also those who find out
 * later that it is over), nor for one lease time after the database's clock jumped against this machine's.
 * Costs no statement when the pulse saw nothing.
 */

import { renewalsUntilOthersRenewed } from '../execution/keeper/keeper.rules.js';
import type { Config } from '../platform/config/config.js';
import { type ClockSample, clockShiftMs } from '../platform/db/clock.rules.js';
import type { Loop } from '../platform/loop.js';
import type { Timing } from '../platform/time.js';
import type { JanitorService } from '../runs/janitor.service.js';
import type { Pulse } from '../runs/pulse.sql.js';

const CLOCK_JUMP_MS = 1_000;
/** Looks at the clock that took no longer than this can tell a jump from their own round trips. */
const SHARP_MS = 250;

/** What the janitor must know of its own keeper. */
export interface KeeperWitness {
  readonly clock: ClockSample | undefined;
  readonly stats: { readonly renewalsSinceOutage: number };
}

export class JanitorLoop implements Loop {
  readonly name = 'janitor';
  private seen = { leaseOver: false, orphaned: false, overdue: false };
  private lastClock: ClockSample | undefined;
  private patientUntilMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly janitor: Pick<JanitorService, 'reap' | 'settle' | 'cancelOverdue'>,
    private readonly keeper: KeeperWitness,
    private readonly config: Pick<Config, 'leaseTtlMs' | 'leaseRenewMs'>,
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

  /**
   * Remembers a look at the database's clock. Its own keeper's are noted as they come: a loop that stood still while the
   * keeper went on would take a clock that jumped meanwhile for one that it had known before.
   */
  noteClock(clock: ClockSample): void {
    this.isSteady(clock);
  }

  async step(): Promise<'idle' | 'more'> {
    const mayReap = this.mayReap();
    const { leaseOver, orphaned, overdue } = this.seen;
    this.seen = { leaseOver: false, orphaned: false, overdue: false };
    if (overdue) await this.janitor.cancelOverdue();
    const reaped = leaseOver && mayReap ? await this.janitor.reap((clock) => this.isSteady(clock)) : [];
    if (reaped.length === 0 && !orphaned) return 'idle';
    const settled = await this.janitor.settle();
    this.seen = { ...this.seen, orphaned: settled.length > 0 };
    return settled.length > 0 ? 'more' : 'idle';
  }

  private mayReap(): boolean {
    if (this.keeper.clock) this.isSteady(this.keeper.clock);
    const isPatient = this.timing.monotonicMs() < this.patientUntilMs;
    const enough = renewalsUntilOthersRenewed(this.config.leaseRenewMs);
    return this.keeper.stats.renewalsSinceOutage >= enough && !isPatient;
  }

  /**
   * Whether the database's clock went on as this machine's did since it was last looked at. A look that took long tells
   * nothing: not now, but the next one may.
   */
  private isSteady(clock: ClockSample): boolean {
    if (clock.receivedAtMs - clock.sentAtMs > SHARP_MS) return false;
    const hasJumped = this.lastClock !== undefined && clockShiftMs(this.lastClock, clock).most > CLOCK_JUMP_MS;
    if (hasJumped) this.patientUntilMs = this.timing.monotonicMs() + this.config.leaseTtlMs;
    this.lastClock = clock;
    return !hasJumped;
  }
}
