/** The key of a whole batch: first of all locks, together with what it makes or not at all, kept as long as any of it. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { lookAtKeys } from '../../src/doctor/keys.sql.js';
import { newId } from '../../src/kernel/ids.js';
import { expireKeys, findKeys, freeKey, submitIfNew, type WholeKey } from '../../src/runs/submit.sql.js';
import { Ground } from './ground.fixture.js';

let ground: Ground;
beforeAll(async () => {
  ground = await Ground.open();
});
afterAll(() => ground.close());

const DAY_MS = 86_400_000;

function batchOf(n: number, key: string) {
  const runs = Array.from({ length: n }, () => ground.newRun());
  const { organizationId } = ground;
  const whole: WholeKey = { organizationId, key, digest: 'sha256:whole', runIds: runs.map(({ id }) => id) };
  return { runs, whole };
}

async function kept(key: string) {
  return findKeys(ground.pool, [{ organizationId: ground.organizationId, key }]);
}

it('keeps what it made, in its order', async () => {
  const { runs, whole } = batchOf(3, 'kept');
  expect(await submitIfNew(ground.pool, runs, whole)).toHaveLength(3);
  expect(await kept('kept')).toEqual([
    {
      organizationId: ground.organizationId,
      key: 'kept',
      digest: 'sha256:whole',
      runId: runs[0]?.id,
      runIds: runs.map(({ id }) => id),
    },
  ]);
});

it('F093 of eight at once with one key, one makes all of its runs and the others nothing', async () => {
  for (let round = 0; round < 5; round += 1) {
    const batches = Array.from({ length: 8 }, () => batchOf(20, `race-${round}`));
    const made = await Promise.all(batches.map(({ runs, whole }) => submitIfNew(ground.pool, runs, whole)));
    expect(made.map((rows) => rows.length).sort()).toEqual([0, 0, 0, 0, 0, 0, 0, 20]);
    const winner = batches.find((_, i) => made[i]?.length === 20);
    expect((await kept(`race-${round}`))[0]?.runIds).toEqual(winner?.whole.runIds);
  }
});

it.each([
  ['commits, and the waiting one makes nothing', 'commit', 0],
  ['is rolled back, and the waiting one makes its runs', 'rollback', 3],
] as const)(
  'F096 the same key in flight is waited for until that %s; no other key is taken meanwhile',
  async (_, end, made) => {
    const key = `flight-${end}`;
    const { runs, whole } = batchOf(3, key);
    const own = `${key}-item`;
    const answer = await ground.behind(
      [
        [
          `insert into idempotency_keys (organization_id, key, digest, run_id) values ($1, $2, 'd', $3)`,
          [ground.organizationId, key, newId()],
        ],
      ],
      1,
      () => submitIfNew(ground.pool, [...runs.slice(1), ground.newRun({ key: own })], whole),
      end,
    );
    expect(answer).toHaveLength(made);
    expect(await kept(own)).toHaveLength(made === 0 ? 0 : 1);
  },
);

it('F095 is not kept when the database refuses one of its runs, and none of the others is made', async () => {
  const { runs, whole } = batchOf(3, 'refused');
  const bad = [...runs, ground.newRun({ priority: 101 })];
  await expect(submitIfNew(ground.pool, bad, whole)).rejects.toThrow();
  expect(await kept('refused')).toEqual([]);
  for (const { id } of runs) expect((await ground.look(id)).standing).toBe('absent');
  expect(await submitIfNew(ground.pool, runs, whole)).toHaveLength(3);
});

it('is freed for the request that took it, and for no other, be it an equal one that made runs', async () => {
  const { runs, whole } = batchOf(1, 'freed');
  await submitIfNew(ground.pool, runs, whole);
  await freeKey(ground.pool, { ...whole, digest: 'sha256:other' });
  await freeKey(ground.pool, { ...whole, organizationId: newId() });
  await freeKey(ground.pool, { ...whole, runIds: [newId()] });
  expect(await kept('freed')).toHaveLength(1);
  await freeKey(ground.pool, whole);
  expect(await kept('freed')).toEqual([]);
});

it('may name a run of another organization, which it was refused, and breaks no law by it', async () => {
  const foreign = newId();
  await ground.sql.query(`insert into organizations (id, name) values ($1, 'other')`, [foreign]);
  const [theirs, mine] = [await ground.runIn('pending'), ground.newRun()];
  await ground.sql.query('update runs set organization_id = $2 where id = $1', [theirs, foreign]);
  const { organizationId } = ground;
  const whole = { organizationId, key: 'foreign', digest: 'd', runIds: [theirs, mine.id] };
  expect(await submitIfNew(ground.pool, [ground.newRun({ id: theirs }), mine], whole)).toHaveLength(1);
  expect((await lookAtKeys(ground.pool, undefined, 1_000)).violations).toEqual([]);
});

it('F095 is forgotten 7 days after the last of its runs ended, whichever that is', async () => {
  const { runs, whole } = batchOf(3, 'aged');
  await submitIfNew(ground.pool, runs, whole);
  await ground.sql.query(`update idempotency_keys set created_at = now() - interval '30 days' where key = 'aged'`);
  const holder = await ground.worker();
  const endedRun = async (daysAgo: number) => {
    const id = await ground.runIn('succeeded', { holder });
    await ground.sql.query('alter table runs disable trigger runs_ended_never_change');
    await ground.sql.query(`update runs set ended_at = now() - $2::integer * interval '1 day' where id = $1`, [
      id,
      daysAgo,
    ]);
    await ground.sql.query('alter table runs enable trigger runs_ended_never_change');
    return id;
  };
  const [long, lately, live] = [await endedRun(8), await endedRun(6), runs[0]?.id ?? ''];
  const expire = () => expireKeys(ground.pool, 7 * DAY_MS, 100);
  for (const [makes, gone] of [
    [[long, live], 0],
    [[live, long], 0],
    [[long, newId(), lately], 0],
    [[long, newId(), long], 1],
  ] as const) {
    await ground.sql.query(`update idempotency_keys set run_id = $1, run_ids = $2 where key = 'aged'`, [
      makes[0],
      makes,
    ]);
    expect(await expire(), JSON.stringify(makes)).toBe(gone);
  }
});
