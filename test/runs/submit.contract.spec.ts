/** One key and one id make one run, however many ask at the same moment; and a key is kept until its time is over. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../src/kernel/ids.js';
import { errorCode } from '../../src/platform/db/db.js';
import { expireKeys, findKeys, findRuns, submitIfNew } from '../../src/runs/submit.sql.js';
import { Ground } from './ground.fixture.js';

let ground: Ground;
beforeAll(async () => {
  ground = await Ground.open();
});
afterAll(() => ground.close());

const DAY_MS = 86_400_000;

async function keyCount(key: string): Promise<number> {
  const { rows } = await ground.sql.query('select count(*)::integer as n from idempotency_keys where key = $1', [key]);
  return rows[0].n;
}

/** A submit, and the look-up that tells whoever made nothing which run it was. */
async function runOf(pool: Ground['pool'], key: string): Promise<string | undefined> {
  const run = ground.newRun({ key });
  const [made] = await submitIfNew(pool, [run]);
  if (made) return made.id;
  const [earlier] = await findKeys(pool, [{ organizationId: ground.organizationId, key }]);
  return earlier?.runId;
}

describe('one Idempotency-Key', () => {
  it('F093 sent 100 times at once through eight pools makes one run, and everybody learns its id', async () => {
    const pools = Array.from({ length: 8 }, () => ground.db.pool(4));
    for (let round = 0; round < 5; round += 1) {
      const key = `f093-${round}`;
      const ids = await Promise.all(Array.from({ length: 100 }, (_, i) => runOf(pools[i % 8] ?? ground.pool, key)));
      expect(new Set(ids).size).toBe(1);
      const { entries, standing } = await ground.look(ids[0] ?? '');
      expect(standing).toBe('pending');
      expect(entries).toEqual(['run.submitted']);
    }
    const { rows } = await ground.sql.query(`select count(*)::integer as n from runs`);
    expect(rows[0].n).toBe(5);
    await Promise.all(pools.map((pool) => pool.close()));
  });

  it('F093 twice in one batch makes one run', async () => {
    const runs = [ground.newRun({ key: 'batch' }), ground.newRun({ key: 'batch' })];
    expect(await submitIfNew(ground.pool, runs)).toHaveLength(1);
    expect(
      await findRuns(
        ground.pool,
        runs.map((run) => run.id),
      ),
    ).toHaveLength(1);
  });

  it('F093 batches that name the same keys in different orders never deadlock', async () => {
    const keys = Array.from({ length: 40 }, (_, i) => `order-${i}`);
    const shuffled = (n: number) => keys.map((_, i) => keys[(i * [1, 3, 7, 9, 11, 13, 17, 19][n % 8]! + n) % 40] ?? '');
    const made = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        submitIfNew(
          ground.pool,
          shuffled(n).map((key) => ground.newRun({ key })),
        ),
      ),
    );
    expect(made.flat()).toHaveLength(40);
  });

  it('F095 of a submit that the database refuses is not kept: the corrected request makes the run', async () => {
    await expect(submitIfNew(ground.pool, [ground.newRun({ key: 'refused', priority: 101 })])).rejects.toThrow();
    expect(await keyCount('refused')).toBe(0);
    expect(await submitIfNew(ground.pool, [ground.newRun({ key: 'refused' })])).toHaveLength(1);
  });

  it.each([
    ['F096 commits, and the waiting one makes nothing', 'commit', 0],
    ['F096 is rolled back, and the waiting one makes the run', 'rollback', 1],
  ] as const)('waits for the same key in flight until that %s', async (_, end, made) => {
    const key = `flight-${end}`;
    const answer = await ground.behind(
      [
        [
          `insert into idempotency_keys (organization_id, key, digest, run_id) values ($1, $2, 'd', $3)`,
          [ground.organizationId, key, newId()],
        ],
      ],
      1,
      () => submitIfNew(ground.pool, [ground.newRun({ key })]),
      end,
    );
    expect(answer).toHaveLength(made);
    expect(await keyCount(key)).toBe(1);
  });

  it('says with which request it was used', async () => {
    const [run] = await ground.submit({ key: 'digest', requestDigest: 'sha256:one' });
    const asked = [{ organizationId: ground.organizationId, key: 'digest' }];
    expect(await findKeys(ground.pool, asked)).toEqual([
      { ...asked[0], digest: 'sha256:one', runId: run?.id, runIds: null },
    ]);
    expect(await findKeys(ground.pool, [{ organizationId: newId(), key: 'digest' }])).toEqual([]);
  });
});

describe('one run id', () => {
  it('sent at once by many makes one run; whoever clashed is told so by its code and finds it', async () => {
    const id = newId();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        submitIfNew(ground.pool, [ground.newRun({ id })]).catch((error: unknown) => errorCode(error)),
      ),
    );
    const made = answers.filter((answer) => Array.isArray(answer) && answer.length === 1);
    expect(made).toHaveLength(1);
    for (const answer of answers) if (!Array.isArray(answer)) expect(answer).toBe('23505');
    expect(await findRuns(ground.pool, [id])).toHaveLength(1);
    expect((await ground.look(id)).entries).toEqual(['run.submitted']);
  });
});

it('batches that name the same run ids in different orders never deadlock', { timeout: 60_000 }, async () => {
  for (let round = 0; round < 5; round += 1) {
    const runs = Array.from({ length: 200 }, () => ground.newRun());
    const orders = [runs, [...runs].reverse(), runs, [...runs].reverse()];
    const answers = await Promise.allSettled(orders.map((order) => submitIfNew(ground.pool, order)));
    const faults = answers.flatMap((answer) => (answer.status === 'rejected' ? [errorCode(answer.reason)] : []));
    expect(new Set([...faults, '23505'])).toEqual(new Set(['23505']));
  }
});

describe('a batch', () => {
  it('answers each run with its own receipt, in the order in which they came', async () => {
    const runs = Array.from({ length: 50 }, () => ground.newRun());
    const made = await submitIfNew(ground.pool, runs);
    expect(made.map((one) => one.id)).toEqual(runs.map((run) => run.id));
    const seqs = made.map((one) => Number(one.receipt.split(':')[1]));
    expect(seqs).toEqual(seqs.map((_, i) => (seqs[0] ?? 0) + i));
    for (const { receipt } of made) expect(receipt).toMatch(new RegExp(`^${ground.chain}:\\d+:[0-9a-f]{64}$`));
  });

  it('an empty one writes nothing and answers nothing', async () => {
    expect(await submitIfNew(ground.pool, [])).toEqual([]);
  });
});

describe('expireKeys', () => {
  const aged = async (key: string, ended: { readonly daysAgo: number } | 'live' | 'removed') => {
    const [run] = await ground.submit({ key });
    await ground.sql.query(`update idempotency_keys set created_at = now() - interval '30 days' where key = $1`, [key]);
    if (ended === 'live') return;
    if (ended === 'removed') {
      await ground.sql.query('update idempotency_keys set run_id = $2 where key = $1', [key, newId()]);
      return;
    }
    const id = await ground.runIn('succeeded', { holder: await ground.worker() });
    await ground.sql.query('alter table runs disable trigger runs_ended_never_change');
    await ground.sql.query(`update runs set ended_at = now() - $2::integer * interval '1 day' where id = $1`, [
      id,
      ended.daysAgo,
    ]);
    await ground.sql.query('alter table runs enable trigger runs_ended_never_change');
    await ground.sql.query('update idempotency_keys set run_id = $2 where key = $1', [key, id]);
    expect(run).toBeDefined();
  };

  it('F095 forgets a key only when its run ended longer ago than it is kept, or was removed', async () => {
    await aged('still-live', 'live');
    await aged('ended-lately', { daysAgo: 6 });
    await aged('ended-long-ago', { daysAgo: 8 });
    await aged('run-removed', 'removed');
    expect(await expireKeys(ground.pool, 7 * DAY_MS, 100)).toBe(2);
    const left = await Promise.all(['still-live', 'ended-lately', 'ended-long-ago', 'run-removed'].map(keyCountIn));
    expect(left).toEqual([1, 1, 0, 0]);
    expect(await expireKeys(ground.pool, 7 * DAY_MS, 100)).toBe(0);
  });

  it('takes at most a batch in one step, and several may do it at once', async () => {
    for (let i = 0; i < 12; i += 1) await aged(`bounded-${i}`, 'removed');
    const counts = await Promise.all(Array.from({ length: 3 }, () => expireKeys(ground.pool, 7 * DAY_MS, 3)));
    expect(Math.max(...counts)).toBeLessThanOrEqual(3);
    let gone = counts.reduce((sum, n) => sum + n, 0);
    for (let n = 1; n > 0; gone += n) n = await expireKeys(ground.pool, 7 * DAY_MS, 3);
    expect(gone).toBe(12);
  });
});

async function keyCountIn(key: string): Promise<number> {
  return (await findKeys(ground.pool, [{ organizationId: ground.organizationId, key }])).length;
}
