/** What a process counts of its work as a worker, and of what it settles for workers that are gone. */
import { Counter, type Registry } from 'prom-client';
import type { Settled } from './settle.sql.js';

const WRITES = ['start', 'finish', 'release'] as const;
const RESULTS: readonly Settled['result'][] = ['requeued', 'interrupted', 'canceled'];
const LIFE_ENDS = ['lease_over', 'supervisor_gone', 'keeper_gone'] as const;
const DRAINS = ['asked', 'stopping'] as const;

export class WorkMetrics {
  private readonly claims: Counter;
  private readonly claimed: Counter;
  private readonly lostRaces: Counter<'write'>;
  private readonly released: Counter;
  private readonly reaped: Counter;
  private readonly settled: Counter<'result'>;
  private readonly livesOver: Counter<'reason'>;
  private readonly drains: Counter<'reason'>;

  constructor(registry: Registry) {
    const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[] = []) =>
      new Counter({ name, help, labelNames, registers: [registry] });
    this.claims = counter('capstan_claims_total', 'Statements with which this process asked for runs.');
    this.claimed = counter('capstan_claimed_runs_total', 'Runs that this process claimed.');
    this.lostRaces = counter(
      'capstan_lost_races_total',
      'Runs that were no longer ours when this process wanted to start, finish or release them; nothing was written.',
      ['write'],
    );
    this.released = counter('capstan_runs_released_total', 'Claimed runs that this process gave back unstarted.');
    this.reaped = counter('capstan_workers_reaped_total', 'Workers whose lease ran out, as this process recorded it.');
    this.settled = counter(
      'capstan_runs_settled_total',
      'Runs of workers that were gone, by what this process made of them: requeued, interrupted or canceled.',
      ['result'],
    );
    this.livesOver = counter(
      'capstan_lives_over_total',
      'Lives of this process as a worker that ended unasked, by reason: lease_over (it was lost), supervisor_gone or ' +
        'keeper_gone.',
      ['reason'],
    );
    this.drains = counter(
      'capstan_drains_total',
      'Times that this process went out of service, by reason: asked (by a person) or stopping.',
      ['reason'],
    );
    for (const write of WRITES) this.lostRaces.inc({ write }, 0);
    for (const result of RESULTS) this.settled.inc({ result }, 0);
    for (const reason of LIFE_ENDS) this.livesOver.inc({ reason }, 0);
    for (const reason of DRAINS) this.drains.inc({ reason }, 0);
  }

  countClaim(runs: number): void {
    this.claims.inc();
    this.claimed.inc(runs);
  }

  countLostRace(write: (typeof WRITES)[number]): void {
    this.lostRaces.inc({ write });
  }

  countReleased(runs: number): void {
    this.released.inc(runs);
  }

  countReaped(workers: number): void {
    this.reaped.inc(workers);
  }

  countSettled(result: Settled['result']): void {
    this.settled.inc({ result });
  }

  countLifeOver(reason: (typeof LIFE_ENDS)[number]): void {
    this.livesOver.inc({ reason });
  }

  countDrain(reason: (typeof DRAINS)[number]): void {
    this.drains.inc({ reason });
  }
}
