/** What a tool reports is stored once, whole batches at a time, in the run's order, and never after its end. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonValue } from '../../src/kernel/json.js';
import type { BytePool } from '../../src/platform/db/byte-pool.js';
import { cancelIfLive } from '../../src/runs/cancel.sql.js';
import { claimIfLive } from '../../src/runs/claim.sql.js';
import { finishIfHeld } from '../../src/runs/finish.sql.js';
import { listRuns } from '../../src/runs/list.sql.js';
import { findRun } from '../../src/runs/read.sql.js';
import { appendReportsIfHeld, type RunReport } from '../../src/runs/reports.sql.js';
import type { RunStanding } from '../../src/runs/run.machine.js';
import { settleIfOrphaned } from '../../src/runs/settle.sql.js';
import { Ground } from './ground.fixture.js';

let ground: Ground;
let bytePool: BytePool;
beforeAll(async () => {
  ground = await Ground.open(48);
  bytePool = ground.db.bytePool(48);
});
afterAll(() => ground.close());

const report = (n: number, type = 'message'): RunReport => ({ type, at: '2026-03-01T10:00:00.000Z', data: { n } });
const reports = (from: number, count: number) => Array.from({ length: count }, (_, i) => report(from + i));

interface Batch {
  readonly batch?: number;
  readonly events?: readonly RunReport[];
  readonly progress?: JsonValue;
  readonly fence?: number;
}
const append = (worker: string, runId: string, { batch = 1, events = [report(1)], progress, fence = 3 }: Batch = {}) =>
  appendReportsIfHeld(bytePool, worker, ground.hold(runId, fence), batch, events, progress);

const seqsOf = async (runId: string) => (await ground.look(runId)).events.map(({ seq }) => seq);
const progressOf = async (runId: string) => (await findRun(ground.pool, ground.organizationId, runId))?.progress;

describe('appendReportsIfHeld', () => {
  it('stores events as they are, in their order, behind those of the run so far', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('running', { holder: worker });
    const data = { text: 'ä€😀 \u001b[31m', deep: [{ a: null }], big: 1e300, '': false };
    expect(await append(worker, id, { events: [report(1, 'step'), { ...report(2), data }] })).toBe(true);
    expect(await append(worker, id, { batch: 2, events: reports(3, 2) })).toBe(true);
    const { events } = await ground.look(id);
    expect(events).toEqual([
      { seq: 2, type: 'step', data: { n: 1 } },
      { seq: 3, type: 'message', data },
      { seq: 4, type: 'message', data: { n: 3 } },
      { seq: 5, type: 'message', data: { n: 4 } },
    ]);
    const { rows } = await ground.sql.query('select distinct at from run_events where run_id = $1', [id]);
    expect(rows).toEqual([{ at: new Date('2026-03-01T10:00:00.000Z') }]);
  });

  it('S4-118 a batch that is sent again after a lost answer is stored once, and is no fault', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('running', { holder: worker });
    const first = { events: reports(1, 3), progress: { percent: 1 } };
    expect(await Promise.all([1, 2, 3, 4].map(() => append(worker, id, first)))).toEqual([true, true, true, true]);
    expect(await append(worker, id, { batch: 2, events: reports(4, 2), progress: { percent: 2 } })).toBe(true);
    expect(await append(worker, id, first), 'the first batch again, behind the second').toBe(true);
    expect((await ground.look(id)).events.map(({ seq, data }) => [seq, data.n])).toEqual([
      [2, 1],
      [3, 2],
      [4, 3],
      [5, 4],
      [6, 5],
    ]);
    expect(await progressOf(id)).toEqual({ percent: 2 });
  });

  it('S4-118 one that waited for the row while it was stored is told by its number, too', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('running', { holder: worker });
    const answers = await ground.behind(
      [['select 1 from live_runs where run_id = $1 for update', [id]]],
      3,
      () => Promise.all([1, 2, 3].map(() => append(worker, id, { events: reports(1, 2) }))),
      'rollback',
    );
    expect(answers).toEqual([true, true, true]);
    expect(await seqsOf(id)).toEqual([2, 3]);
  });

  it('S4-99 a reader sees whole batches: 10,000 events in batches of 500, and every count is a multiple of 500', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('running', { holder: worker });
    const session = await ground.db.session();
    const counts = new Set<number>();
    let isWriting = true;
    const reading = (async () => {
      while (isWriting) {
        const { rows } = await session.query(
          `select count(*)::integer as n, max(seq)::integer - 1 as last,
                  (select event_seq::integer - 1 from live_runs where run_id = $1) as live
           from run_events where run_id = $1`,
          [id],
        );
        const { n, last, live } = rows[0];
        counts.add(n);
        expect([last ?? 0, live]).toEqual([n, n]);
      }
    })();
    for (let batch = 1; batch <= 20; batch += 1) {
      expect(await append(worker, id, { batch, events: reports((batch - 1) * 500, 500) })).toBe(true);
    }
    isWriting = false;
    await reading;
    expect([...counts].filter((count) => count % 500 !== 0)).toEqual([]);
    expect(counts.size).toBeGreaterThan(1);
    expect(await seqsOf(id)).toEqual(Array.from({ length: 10_000 }, (_, i) => i + 2));
  });

  it.each(['held', 'pending', 'claimed', 'parked', 'succeeded', 'canceled', 'interrupted', 'absent'] as RunStanding[])(
    'F001 reports of a run that is %s are refused',
    async (standing) => {
      const worker = await ground.worker();
      const id = await ground.runIn(standing, { holder: worker });
      const before = await ground.look(id);
      expect(await append(worker, id, { progress: { percent: 1 } })).toBe(false);
      expect(await ground.look(id)).toEqual(before);
    },
  );

  it('S4-18 reports under an old fence or of another holder are refused', async () => {
    const [worker, other] = [await ground.worker(), await ground.worker()];
    const id = await ground.runIn('running', { holder: worker });
    const before = await ground.look(id);
    expect(await append(worker, id, { fence: 2 })).toBe(false);
    expect(await append(other, id)).toBe(false);
    expect(await ground.look(id)).toEqual(before);
  });

  it('F001 what comes at the moment of the end is stored before it or not at all', async () => {
    const worker = await ground.worker();
    const ids = await ground.runsIn(20, 'running', { holder: worker });
    const answers = await ground.behind(
      [['select 1 from live_runs where run_id = any ($1::uuid[]) order by run_id for update', [ids]]],
      40,
      () =>
        Promise.all(
          ids.map(async (id, i) => {
            const finish = () => finishIfHeld(ground.pool, worker, [ground.finish(id)]);
            const reported = () => append(worker, id, { progress: { percent: i } });
            const [a, b] = i % 2 ? [finish(), reported()] : [reported(), finish()];
            return [await a, await b].find((answer) => typeof answer === 'boolean');
          }),
        ),
      'commit',
    );
    for (const [i, id] of ids.entries()) {
      const { events, standing } = await ground.look(id);
      expect(standing).toBe('succeeded');
      expect(events.map(({ seq, type }) => [seq, type])).toEqual(
        answers[i]
          ? [
              [2, 'message'],
              [3, 'run.ended'],
            ]
          : [[2, 'run.ended']],
      );
      expect(await progressOf(id)).toEqual(answers[i] ? { percent: i } : null);
    }
  });

  it('and the events of the run itself share one numbering, however they meet', async () => {
    const worker = await ground.worker();
    const ids = await ground.runsIn(10, 'running', { holder: worker });
    await ground.behind(
      [['select 1 from live_runs where run_id = any ($1::uuid[]) order by run_id for update', [ids]]],
      20,
      () =>
        Promise.all(
          ids.flatMap((id, i) => {
            const cancel = () => cancelIfLive(ground.pool, [ground.cancel(id)]);
            const reported = () => append(worker, id, { events: reports(1, 3) });
            return i % 2 ? [cancel(), reported()] : [reported(), cancel()];
          }),
        ),
      'commit',
    );
    for (const id of ids) expect(await seqsOf(id)).toEqual([2, 3, 4, 5]);
  });
});

describe('progress', () => {
  it('is the latest that was reported: shown while the run lives, kept when it ends, in lists too', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('running', { holder: worker, queue: 'progress' });
    const listed = async () => {
      const { organizationId } = ground;
      const search = { organizationId, filter: { queue: 'progress' }, after: undefined, limit: 10 };
      const { items } = await listRuns(ground.pool, search);
      return items.map((run) => run.progress);
    };
    expect([await progressOf(id), await listed()]).toEqual([null, [null]]);
    await append(worker, id, { progress: { percent: 10 } });
    await append(worker, id, { batch: 2 });
    expect([await progressOf(id), await listed()]).toEqual([{ percent: 10 }, [{ percent: 10 }]]);
    await append(worker, id, { batch: 3, progress: {} });
    await finishIfHeld(ground.pool, worker, [ground.finish(id)]);
    expect([await progressOf(id), await listed()]).toEqual([{}, [{}]]);
  });

  it('is kept when a janitor ends the run', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('running', { holder: worker });
    await append(worker, id, { progress: { percent: 99 } });
    await ground.sql.query(`update workers set state = 'lost', ended_at = now() where id = $1`, [worker]);
    await settleIfOrphaned(ground.pool, [ground.settle(id, worker)]);
    expect((await ground.look(id)).standing).toBe('interrupted');
    expect(await progressOf(id)).toEqual({ percent: 99 });
  });

  it('and the numbering of batches begin anew with each claim', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('pending', { queue: 'again' });
    await ground.sql.query(`update live_runs set report_batch = 7, progress = '{"old": true}' where run_id = $1`, [id]);
    expect(await claimIfLive(ground.pool, worker, ['again'], 1)).toHaveLength(1);
    expect((await ground.look(id)).live).toMatchObject({ report_batch: 0, progress: null, fence: 4 });
  });
});
