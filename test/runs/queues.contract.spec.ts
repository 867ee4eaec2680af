/** Pauses against each other and against claims: what was answered holds, and each change has one entry. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { encodeId, newId } from '../../src/kernel/ids.js';
import { Bell } from '../../src/platform/bell.js';
import type { RequestCaller } from '../../src/platform/http/caller.js';
import type { Platform } from '../../src/platform/platform.js';
import { claimIfLive } from '../../src/runs/claim.sql.js';
import {
  pauseAnewIfUnchanged,
  pauseIfUnchanged,
  type QueueChange,
  queueStanding,
  resumeIfUnchanged,
} from '../../src/runs/queue.sql.js';
import { QueuesService } from '../../src/runs/queues.service.js';
import { Ground } from './ground.fixture.js';

const ROUNDS = 100;

let ground: Ground;
let queue: string;
beforeAll(async () => {
  ground = await Ground.open(8);
});
beforeEach(() => {
  queue = `q-${newId()}`;
});
afterAll(() => ground.close());

const caller = (name: string): RequestCaller => ({
  organizationId: ground.organizationId,
  chain: encodeId('org', ground.organizationId),
  principal: { type: 'token', id: `tok_${name}`, name },
  isInstallationAdmin: true,
});

/** A replica's service with connections of its own, and how often it rang for claimers. */
function replica() {
  const pool = ground.db.pool(4);
  const claimable = new Bell();
  let rings = 0;
  claimable.onRing(() => {
    rings += 1;
  });
  const platform = { pools: { read: pool, submit: pool }, bells: { claimable } };
  return { service: new QueuesService(platform as unknown as Platform), rings: () => rings };
}

const ALWAYS = () => true;
const OPEN = { seq: 0, etag: '"open"' };
const change = (seen: QueueChange['seen'], reason: string | null = 'why'): QueueChange => ({
  name: queue,
  reason,
  seen,
  chain: ground.installation,
  by: 'tok_test',
  byName: 'test',
});
const standing = () => queueStanding(ground.pool, ground.installation, queue);
const pause = async () => pauseIfUnchanged(ground.pool, change(await standing()));
const pauseAnew = async (reason: string) => pauseAnewIfUnchanged(ground.pool, change(await standing(), reason));
const resume = async () => resumeIfUnchanged(ground.pool, change(await standing()));

async function actions(): Promise<string[]> {
  const { rows } = await ground.sql.query(
    `select action from audit_entries where claim::jsonb -> 'payload' ->> 'object' = $1 order by seq`,
    [queue],
  );
  return rows.map(({ action }) => action);
}

describe('each statement', () => {
  it('answers the receipt of the entry that it wrote, which is then why the queue is as it is', async () => {
    expect(await standing()).toEqual({ reason: null, ...OPEN, receipt: null });
    const [paused] = await pause();
    expect(await standing()).toMatchObject({ reason: 'why', receipt: paused?.receipt });
    const [anew] = await pauseAnew('another');
    expect(await standing()).toMatchObject({ reason: 'another', receipt: anew?.receipt });
    const [resumed] = await resume();
    expect(await standing()).toMatchObject({ reason: null, receipt: resumed?.receipt });
    expect(await actions()).toEqual(['queue.paused', 'queue.paused', 'queue.resumed']);
  });

  it('writes nothing when it is so already', async () => {
    expect(await resume()).toEqual([]);
    expect(await pauseAnew('another')).toEqual([]);
    await pause();
    expect(await pause()).toEqual([]);
    await resume();
    expect(await resume()).toEqual([]);
    expect(await actions()).toEqual(['queue.paused', 'queue.resumed']);
  });

  it('that comes late undoes no later decision', async () => {
    const before = await standing();
    await pause();
    const paused = await standing();
    await resume();
    expect(await pauseIfUnchanged(ground.pool, change(before))).toEqual([]);
    expect(await pauseAnewIfUnchanged(ground.pool, change(paused, 'late'))).toEqual([]);
    expect(await standing()).toMatchObject({ reason: null });
    await pauseIfUnchanged(ground.pool, change(await standing(), 'since'));
    expect(await pauseAnewIfUnchanged(ground.pool, change(paused, 'late'))).toEqual([]);
    expect(await resumeIfUnchanged(ground.pool, change(paused))).toEqual([]);
    expect(await standing()).toMatchObject({ reason: 'since' });
    expect(await actions()).toEqual(['queue.paused', 'queue.resumed', 'queue.paused']);
  });

  it('leaves other queues alone', async () => {
    await pause();
    const other = { ...change(await standing()), name: `${queue}-other` };
    expect(await resumeIfUnchanged(ground.pool, other)).toEqual([]);
    expect(await pauseAnewIfUnchanged(ground.pool, other)).toEqual([]);
    expect(await pauseIfUnchanged(ground.pool, { ...other, seen: OPEN })).toHaveLength(1);
    await resume();
    expect(await queueStanding(ground.pool, ground.installation, other.name)).toMatchObject({ reason: 'why' });
  });
});

describe('two replicas', () => {
  it('that pause at once for the same reason make one pause and one entry, and answer the same receipt', async () => {
    const replicas = [replica(), replica()];
    for (let round = 0; round < ROUNDS / 4; round += 1) {
      queue = `q-${newId()}`;
      const answers = await Promise.all(
        replicas.flatMap(({ service }, i) =>
          [1, 2].map((n) => service.put(caller(`c${i}${n}`), queue, true, 'because', ALWAYS)),
        ),
      );
      expect(new Set(answers.map(({ receipt }) => receipt)).size).toBe(1);
      expect(new Set(answers.map(({ queue: { etag } }) => etag)).size).toBe(1);
      expect(await actions()).toEqual(['queue.paused']);
    }
  });

  it('that pause and resume against each other leave entries that alternate, the last of which tells how it is', async () => {
    const replicas = [replica(), replica()];
    const turns = replicas.map(async ({ service }, i) => {
      for (let round = 0; round < ROUNDS; round += 1)
        await service.put(caller(`c${i}`), queue, (round + i) % 2 === 0, 'x', ALWAYS);
    });
    await Promise.all(turns);
    const written = await actions();
    const alternating = written.map((_, i) => (i % 2 === 0 ? 'queue.paused' : 'queue.resumed'));
    expect(written).toEqual(alternating);
    expect((await standing()).reason).toBe(written.length % 2 === 1 ? 'x' : null);
    const resumed = written.filter((action) => action === 'queue.resumed').length;
    // Each resume that was written, and no other call, rang for claimers.
    expect(replicas.reduce((sum, { rings }) => sum + rings(), 0)).toBe(resumed);
  });

  it('that pause at once for other reasons each have an entry, and the last of them tells why', async () => {
    const replicas = [replica(), replica()];
    for (let round = 0; round < ROUNDS / 4; round += 1) {
      queue = `q-${newId()}`;
      const answers = await Promise.all(
        replicas.map(({ service }, i) => service.put(caller(`c${i}`), queue, true, `because ${i}`, ALWAYS)),
      );
      expect(await actions()).toEqual(['queue.paused', 'queue.paused']);
      const { receipt, reason } = await standing();
      const last = answers.findIndex((answer) => answer.receipt === receipt);
      expect(reason).toBe(`because ${last}`);
    }
  });

  it.each([
    ['pause an open queue', [], [true, true]],
    ['give a pause another reason', ['first'], [true, true]],
    ['resume it, or give the pause another reason', ['first'], [false, true]],
  ])('that at once %s, as the same ETag has it: one does, the other is told', async (_, before, wishes) => {
    const replicas = [replica(), replica()];
    for (let round = 0; round < ROUNDS / 4; round += 1) {
      queue = `q-${newId()}`;
      for (const reason of before) await replicas[0]?.service.put(caller('a'), queue, true, reason, ALWAYS);
      const { etag } = await standing();
      const puts = await Promise.allSettled(
        replicas.map(({ service }, i) =>
          service.put(caller(`c${i}`), queue, wishes[i] === true, `because ${i}`, (seen) => seen === etag),
        ),
      );
      expect(puts.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
      const winner = puts.findIndex(({ status }) => status === 'fulfilled');
      expect(puts[1 - winner]).toMatchObject({ reason: { code: 'precondition_failed' } });
      expect((await standing()).reason).toBe(wishes[winner] ? `because ${winner}` : null);
      expect(await actions()).toHaveLength(before.length + 1);
    }
  });

  it('take no run out of a queue by a claim that begins after the pause was answered', async () => {
    const [admin, worker] = [replica(), await ground.worker({ queues: [queue] })];
    /** Which pause it is that holds; none between them. */
    let holding: number | undefined;
    let isOver = false;
    let taken = 0;
    const claims = { free: 0, paused: 0, early: 0 };
    const claimer = async () => {
      while (!isOver) {
        const begunUnder = holding;
        const runs = await claimIfLive(ground.pool, worker, [queue], 1);
        taken += runs.length;
        // Begun and ended under the same pause.
        if (begunUnder !== undefined && begunUnder === holding) {
          claims.paused += 1;
          claims.early += runs.length;
        } else claims.free += runs.length;
      }
    };
    const claimers = [claimer(), claimer()];
    let submitted = 0;
    for (let round = 0; round < ROUNDS / 4; round += 1) {
      await ground.submit(...Array.from({ length: 20 }, () => ({ queue })));
      submitted += 20;
      await admin.service.put(caller('a'), queue, true, 'x', ALWAYS);
      holding = round;
      const before = claims.paused;
      while (claims.paused < before + 4) await new Promise((resolve) => setImmediate(resolve));
      holding = undefined;
      await admin.service.put(caller('a'), queue, false, null, ALWAYS);
    }
    while (taken < submitted) await new Promise((resolve) => setImmediate(resolve));
    isOver = true;
    await Promise.all(claimers);
    expect(claims.early).toBe(0);
    expect(claims.free).toBe(submitted);
  });
});
