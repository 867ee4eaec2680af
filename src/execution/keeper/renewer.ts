/**
 * Renews one life until it is ended or over. Invariants: an extension carries the time *before* its renewal was sent,
 * and is written only after that renewal succeeded; a failure of the database ends nothing, it is tried again.
 */
import { Session } from '../../platform/db/session.js';
import { ExtensionPipe } from './extension-pipe.js';
import type { FromKeeper, KeeperSettings, LifeOrder } from './keeper.js';
import { backoffMs, isOutage, statementLimitMs, untilNextRenewalMs } from './keeper.rules.js';
import { nowMs } from './monotonic.js';
import type { Outage } from './outage.js';
import { type RenewedRow, renewIfAlive } from './renew.sql.js';
import type { SharedMemory } from './shared-memory.js';

export interface RenewerPorts {
  readonly settings: KeeperSettings;
  readonly memory: SharedMemory;
  readonly outage: Outage;
  readonly report: (message: FromKeeper) => void;
  /** The machine's clock, ms of the epoch. It judges nothing. */
  readonly wallMs: () => number;
}

export class Renewer {
  private readonly pipe: ExtensionPipe;
  private readonly limitMs: number;
  private session: Session | undefined;
  private isEnded = false;
  private isPipeBroken = false;
  private endPause: (() => void) | undefined;

  constructor(
    private readonly life: LifeOrder,
    private readonly ports: RenewerPorts,
  ) {
    this.pipe = new ExtensionPipe(life, ports.memory);
    this.limitMs = ports.settings.statementLimitMs ?? statementLimitMs(ports.settings.renewMs);
  }

  /** Sends the first renewal at once. Resolves when the life is ended or over; never rejects. */
  async run(): Promise<void> {
    let failures = 0;
    while (!this.isEnded) {
      const sentAtMs = await this.renewOnce();
      if (this.isEnded) break;
      failures = sentAtMs === undefined ? failures + 1 : 0;
      const { renewMs } = this.ports.settings;
      await this.pause(sentAtMs === undefined ? backoffMs(failures) : untilNextRenewalMs(sentAtMs, nowMs(), renewMs));
    }
    await this.session?.close();
  }

  /** Nothing of this life is renewed, extended or reported afterwards, whatever a statement in flight comes to. */
  end(): void {
    this.isEnded = true;
    this.endPause?.();
  }

  /** When the renewal was sent, undefined when it failed. */
  private async renewOnce(): Promise<number | undefined> {
    const { memory, outage, settings } = this.ports;
    try {
      const session = await this.openSession();
      if (this.isEnded) return undefined;
      const sentAt = process.hrtime.bigint();
      const row = await renewIfAlive(session, {
        incarnation: this.life.incarnation,
        ttlMs: settings.ttlMs,
        wallMs: this.ports.wallMs(),
      });
      if (this.isEnded) return undefined;
      outage.noteSuccess();
      if (row) this.noteRenewed(row, sentAt);
      else this.noteOver();
      return Number(sentAt) / 1e6;
    } catch (error) {
      if (this.isEnded) return undefined;
      memory.noteFailure();
      outage.noteFailure(error);
      return undefined;
    }
  }

  private async openSession(): Promise<Session> {
    if (this.session?.isOpen) return this.session;
    const onLost = () => {
      if (this.isEnded) return;
      // The next renewal isn't due yet, but after a loss it may need more than one try.
      this.endPause?.();
    };
    const { databaseUrl } = this.ports.settings;
    this.session = await Session.open({ databaseUrl, name: 'keeper', limitMs: this.limitMs, onLost });
    return this.session;
  }

  private noteRenewed(row: RenewedRow, sentAt: bigint): void {
    const receivedAtMs = nowMs();
    const { memory, settings } = this.ports;
    this.extend(sentAt);
    memory.noteRenewal(sentAt, isOutage(memory.renewalSentAtMs, Number(sentAt) / 1e6, settings.renewMs));
    this.ports.report({
      type: 'renewed',
      order: this.life.order,
      state: row.state,
      leaseUntilMs: row.leaseUntilMs,
      clock: { sentAtMs: Number(sentAt) / 1e6, receivedAtMs, databaseAtMs: row.nowMs },
    });
  }

  private noteOver(): void {
    this.end();
    this.ports.report({ type: 'over', order: this.life.order });
  }

  private extend(sentAt: bigint): void {
    const outcome = this.pipe.extend(sentAt);
    const isBroken = outcome.kind === 'failed';
    if (isBroken && !this.isPipeBroken) {
      this.ports.report({ type: 'pipeBroken', order: this.life.order, error: outcome.error });
    }
    this.isPipeBroken = isBroken;
  }

  private async pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.endPause = undefined;
  }
}
