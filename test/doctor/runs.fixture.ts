/** Runs brought into each state by the product's own statements, and a database without anything that protects it. */
import { BytePool } from '../../src/platform/db/byte-pool.js';
import { cancelIfLive } from '../../src/runs/cancel.sql.js';
import { claimIfLive, releaseIfHeld, startIfHeld } from '../../src/runs/claim.sql.js';
import { finishIfHeld } from '../../src/runs/finish.sql.js';
import { appendOutputIfHeld } from '../../src/runs/output.sql.js';
import { appendReportsIfHeld } from '../../src/runs/reports.sql.js';
import type { Outcome } from '../../src/runs/run.js';
import { settleIfOrphaned } from '../../src/runs/settle.sql.js';
import { Ground } from '../runs/ground.fixture.js';

/** How a run came to where it is. */
export type Way = 'pending' | 'claimed' | 'running' | 'flagged' | 'succeeded' | 'canceled' | 'requeued' | 'interrupted';

const EVENTS = [{ type: 'tool.said', at: new Date(0).toISOString(), data: {} }];

export class Runs {
  private constructor(
    readonly ground: Ground,
    private readonly bytes: BytePool,
  ) {}

  static async open(): Promise<Runs> {
    const ground = await Ground.open(4);
    return new Runs(ground, ground.db.bytePool(1));
  }

  /** The id of a new run that went this way, in a queue of its own. */
  async make(way: Way, outcome: Partial<Outcome> = {}): Promise<string> {
    const { ground } = this;
    const queue = `q${Math.random().toString(36).slice(2)}`;
    const worker = await ground.worker({ queues: [queue] });
    const [run] = await ground.submit({ queue });
    const id = run?.id ?? '';
    if (way === 'pending') return id;
    if (way === 'canceled') {
      await cancelIfLive(ground.pool, [ground.cancel(id)]);
      return id;
    }
    await claimIfLive(ground.pool, worker, [queue], 1);
    if (way === 'claimed') return id;
    if (way === 'requeued') {
      await this.lose(worker);
      await settleIfOrphaned(ground.pool, [ground.settle(id, worker)]);
      return id;
    }
    await startIfHeld(ground.pool, worker, [ground.hold(id, 1)]);
    const hold = ground.hold(id, 1);
    await appendReportsIfHeld(this.bytes, worker, hold, 1, EVENTS, undefined);
    const batch = { batch: 1, stream: 1 as const, at: new Date(), bytes: 2, pos: 0, streamPos: 0 };
    await appendOutputIfHeld(this.bytes, worker, hold, [batch], Buffer.from('hi'));
    if (way === 'running') return id;
    if (way === 'flagged') await cancelIfLive(ground.pool, [ground.cancel(id)]);
    if (way === 'succeeded') await finishIfHeld(ground.pool, worker, [ground.finish(id, outcome, 1)]);
    if (way === 'interrupted') {
      await this.lose(worker);
      await settleIfOrphaned(ground.pool, [ground.settle(id, worker)]);
    }
    return id;
  }

  async release(id: string, worker: string): Promise<void> {
    await releaseIfHeld(this.ground.pool, worker, [this.ground.release(id, worker, 1)]);
  }

  async lose(worker: string): Promise<void> {
    await this.ground.sql.query(`update workers set state = 'lost', ended_at = now() where id = $1`, [worker]);
  }

  /** From now on nothing refuses a row: no constraint but the keys, no trigger. */
  async unprotect(): Promise<void> {
    await this.ground.sql.query(`
      do $$ declare c record; begin
        for c in select conrelid::regclass as t, conname from pg_constraint
                 where contype in ('c', 'f') and connamespace = 'public'::regnamespace and coninhcount = 0
                   and conrelid <> 0
        loop execute format('alter table %s drop constraint %I', c.t, c.conname); end loop;
        for c in select oid::regclass as t from pg_class
                 where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace and not relispartition
        loop execute format('alter table %s disable trigger user', c.t); end loop;
      end $$;
      alter table runs enable trigger runs_ended_are_listed -- it protects nothing`);
  }
}
