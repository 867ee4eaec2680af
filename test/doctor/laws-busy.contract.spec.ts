/** None of the laws cries wolf: they are looked at again and again while eight workers do all there is to do. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { violations, WINDOW } from '../../src/doctor/invariants.js';
import { lookAtRuns } from '../../src/doctor/runs.sql.js';
import { lookAtStanding } from '../../src/doctor/standing.sql.js';
import { encodeId, newId } from '../../src/kernel/ids.js';
import type { Pool } from '../../src/platform/db/db.js';
import { cancelIfLive } from '../../src/runs/cancel.sql.js';
import { claimIfLive, releaseIfHeld, startIfHeld } from '../../src/runs/claim.sql.js';
import { finishIfHeld } from '../../src/runs/finish.sql.js';
import { appendOutputIfHeld } from '../../src/runs/output.sql.js';
import { promoteDue } from '../../src/runs/pulse.sql.js';
import { appendReportsIfHeld } from '../../src/runs/reports.sql.js';
import type { Hold } from '../../src/runs/run.js';
import { findOrphans, settleIfOrphaned } from '../../src/runs/settle.sql.js';
import { submitIfNew } from '../../src/runs/submit.sql.js';
import { reapIfExpired } from '../../src/runs/worker.sql.js';
import { Ground } from '../runs/ground.fixture.js';

const WORKERS = 8;
const LOOKS = 100;

let ground: Ground;

beforeAll(async () => {
  ground = await Ground.open(2);
});
afterAll(() => ground.close());

/** One worker of many lives, over connections of its own; it loses its own lives, and settles those of the others. */
class Busy {
  private readonly pool: Pool = ground.db.pool(2);
  private readonly bytes = ground.db.bytePool(1);
  private held: Hold[] = [];
  private id = '';
  private batch = 0;

  async work(isOver: () => boolean): Promise<number> {
    this.id = await this.begin();
    let ended = 0;
    while (!isOver()) ended += await this.round();
    return ended;
  }

  /** A life of its own session, since the ground's is shared. */
  private async begin(): Promise<string> {
    const id = newId();
    await this.pool.run(
      (sql) => sql`
      insert into workers (id, name, kind, slots, queues, version, ttl_ms, lease_until)
      values (${id}, ${id}, 'worker', 9, '{default}', '0', 30000, clock_timestamp() + interval '1 hour')`,
    );
    return id;
  }

  private async round(): Promise<number> {
    const { pool, id } = this;
    const soon = new Date(Date.now() + 20).toISOString();
    const made = [ground.newRun({ key: newId() }), ground.newRun({ notBefore: soon }), ground.newRun()];
    await submitIfNew(pool, made);
    await promoteDue(pool, 10);
    const claimed = await claimIfLive(pool, id, ['default'], 4);
    const holds = claimed.map(({ runId, fence }) => ({ runId, fence }));
    const [back, ...rest] = holds;
    await Promise.all([
      startIfHeld(pool, id, rest),
      cancelIfLive(
        pool,
        [made[Math.floor(Math.random() * 3)], ...rest.slice(0, 1)].map((run) => this.cancel(run)),
      ),
    ]);
    if (back) await releaseIfHeld(pool, id, [ground.release(back.runId, id, back.fence)]);
    for (const hold of rest.slice(0, 2)) await this.write(hold);
    this.held.push(...rest);
    const done = this.held.splice(0, 2);
    const finishes = done.map(({ runId, fence }) => ground.finish(runId, {}, fence));
    const ended = await finishIfHeld(pool, id, finishes);
    if (Math.random() < 0.1) await this.loseLife();
    return ended.length;
  }

  private cancel(run: { id: string } | Hold | undefined) {
    return ground.cancel(run && 'id' in run ? run.id : (run?.runId ?? newId()));
  }

  private async write(hold: Hold): Promise<void> {
    this.batch += 1;
    const at = new Date();
    const batch = {
      batch: this.batch,
      stream: 1 as const,
      at,
      bytes: 2,
      pos: 2 * this.batch,
      streamPos: 2 * this.batch,
    };
    await Promise.all([
      appendOutputIfHeld(this.bytes, this.id, hold, [batch], Buffer.from('hi')),
      appendReportsIfHeld(
        this.bytes,
        this.id,
        hold,
        this.batch,
        [{ type: 'tool.said', at: at.toISOString(), data: {} }],
        undefined,
      ),
    ]);
  }

  private async loseLife(): Promise<void> {
    const { pool, id } = this;
    await pool.run((sql) => sql`update workers set lease_until = clock_timestamp() - interval '1 s' where id = ${id}`);
    const reap = { id, object: encodeId('wrk', id), by: 'wrk_janitor', byName: 'janitor' };
    await reapIfExpired(pool, ground.installation, [reap]);
    const orphans = await findOrphans(pool, 100);
    await settleIfOrphaned(
      pool,
      orphans.map(({ runId, holder }) => ground.settle(runId, holder)),
    );
    this.held = [];
    this.id = await this.begin();
  }
}

describe('a busy installation', () => {
  it('obeys every law at every instant', async () => {
    let isOver = false;
    const workers = Array.from({ length: WORKERS }, () => new Busy());
    const working = Promise.all(workers.map((worker) => worker.work(() => isOver)));
    working.catch(() => undefined);
    const found: unknown[] = [];
    try {
      for (let look = 0; look < LOOKS; look += 1) {
        const newest = await lookAtRuns(ground.pool, { limit: WINDOW });
        found.push(...newest.violations, ...(await lookAtStanding(ground.pool)).violations);
      }
    } finally {
      isOver = true;
    }
    const ended = (await working).reduce((sum, n) => sum + n, 0);
    expect(found).toEqual([]);
    expect(ended, 'runs that ended meanwhile').toBeGreaterThan(100);
    expect(await violations(ground.pool)).toEqual([]);
  }, 120_000);
});
