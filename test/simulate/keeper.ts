/** The lease keeper of one process, stepped: the product's renewal and its rules, without its thread and its timers. */
import { isOutage, untilNextRenewalMs } from '../../src/execution/keeper/keeper.rules.js';
import { type RenewedRow, renewIfAlive } from '../../src/execution/keeper/renew.sql.js';
import type { Config } from '../../src/platform/config/config.js';
import type { ClockSample } from '../../src/platform/db/clock.rules.js';
import type { KeeperWitness } from '../../src/replica/janitor.loop.js';
import type { Machine } from './machine.js';
import type { Wire } from './wire.js';
import type { World } from './world.js';

/** After a try that failed. */
const AGAIN_MS = 250;

export interface Renewed {
  readonly machine: Machine;
  readonly onClock: (clock: ClockSample) => void;
  /** Called when the row is over. */
  readonly onOver: () => void;
}

export class Keeper implements KeeperWitness {
  clock: ClockSample | undefined;
  private sentAtMs: number | undefined;
  private sinceOutage = 0;
  private life: Renewed | undefined;
  private nextMs = Number.NEGATIVE_INFINITY;
  private isUnderWay = false;

  constructor(
    private readonly world: World,
    private readonly wire: Wire,
    private readonly config: Pick<Config, 'leaseTtlMs' | 'leaseRenewMs'>,
  ) {}

  get stats(): KeeperWitness['stats'] {
    const isBehind = isOutage(this.sentAtMs, this.wire.nowMs, this.config.leaseRenewMs);
    return { renewalsSinceOutage: isBehind ? 0 : this.sinceOutage };
  }

  /** The first renewal is due at once. */
  begin(life: Renewed): void {
    this.life = life;
    this.nextMs = Number.NEGATIVE_INFINITY;
  }

  end(): void {
    this.life = undefined;
  }

  /** Sends a renewal when one is due. */
  step(): void {
    const { life, wire, world } = this;
    if (!life || this.isUnderWay || wire.nowMs < this.nextMs) return;
    this.isUnderWay = true;
    const sentAtMs = wire.nowMs;
    const trueSentAtMs = world.nowMs;
    const params = { incarnation: life.machine.incarnation, ttlMs: this.config.leaseTtlMs, wallMs: sentAtMs };
    const execute = () => renewIfAlive(world.lane.renewTx, params);
    wire.send<RenewedRow | undefined>({ name: 'renewIfAlive', writes: true, execute }).then(
      (row) => {
        this.isUnderWay = false;
        this.nextMs = sentAtMs + untilNextRenewalMs(sentAtMs, sentAtMs, this.config.leaseRenewMs);
        if (this.life !== life) return;
        if (row) this.noteRenewed(life, row, sentAtMs, trueSentAtMs);
        else this.noteOver(life);
      },
      () => {
        this.isUnderWay = false;
        this.nextMs = wire.nowMs + AGAIN_MS;
      },
    );
  }

  private noteRenewed(life: Renewed, row: RenewedRow, sentAtMs: number, trueSentAtMs: number): void {
    life.machine.extend(trueSentAtMs);
    this.sinceOutage = isOutage(this.sentAtMs, sentAtMs, this.config.leaseRenewMs) ? 1 : this.sinceOutage + 1;
    this.sentAtMs = sentAtMs;
    this.clock = { sentAtMs, receivedAtMs: this.wire.nowMs, databaseAtMs: row.nowMs };
    life.onClock(this.clock);
  }

  private noteOver(life: Renewed): void {
    this.end();
    life.onOver();
  }
}
