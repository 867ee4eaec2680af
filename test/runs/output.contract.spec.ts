/** Nothing of a run is stored after its end, and no chunk is stored twice. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BytePool } from '../../src/platform/db/byte-pool.js';
import { finishIfHeld } from '../../src/runs/finish.sql.js';
import { appendOutputIfHeld, dropOutputIfHeld, readOutput } from '../../src/runs/output.sql.js';
import type { RunStanding } from '../../src/runs/run.machine.js';
import { Ground } from './ground.fixture.js';

let ground: Ground;
let bytePool: BytePool;
beforeAll(async () => {
  ground = await Ground.open(48);
  bytePool = ground.db.bytePool(48);
});
afterAll(() => ground.close());

const PAGE = { chunks: 100, bytes: 1_000 };

const batchOf = (batch: number, text: string, stream: 1 | 2 = 1, pos = 0, streamPos = 0) => {
  return { batch, stream, at: new Date(), pos, streamPos, data: Buffer.from(text, 'latin1') };
};
const appendAll = (worker: string, runId: string, batches: readonly ReturnType<typeof batchOf>[], fence = 3) =>
  appendOutputIfHeld(
    bytePool,
    worker,
    ground.hold(runId, fence),
    batches.map(({ data, ...batch }) => ({ ...batch, bytes: data.length })),
    Buffer.concat(batches.map(({ data }) => data)),
  );
const append = (worker: string, runId: string, batch: number, text: string, fence = 3) =>
  appendAll(worker, runId, [batchOf(batch, text)], fence);

async function stored(runId: string, after = { fence: 0, batch: 0 }, stream?: 1 | 2): Promise<string[]> {
  const { run } = await ground.look(runId);
  const at = { id: runId, createdAt: run ? new Date(String(run.created_at)) : new Date() };
  return (await readOutput(ground.pool, at, after, stream, PAGE)).map(({ data }) => data.toString('latin1'));
}

describe('appendOutputIfHeld', () => {
  it('F078 stores the bytes as they came and gives them back in order', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('running', { holder: worker });
    const bytes = Array.from({ length: 256 }, (_, i) => String.fromCharCode(i)).join('');
    for (const [i, text] of [bytes, '\x1b[31mred', 'end'].entries())
      expect(await append(worker, id, i + 1, text)).toBe(true);
    expect(await stored(id)).toEqual([bytes, '\x1b[31mred', 'end']);
    expect(await stored(id, { fence: 3, batch: 1 })).toEqual(['\x1b[31mred', 'end']);
  });

  it('F071 a batch sent again after a lost answer is stored once, and is no fault', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('running', { holder: worker });
    const answers = await Promise.all([
      append(worker, id, 1, 'a'),
      append(worker, id, 1, 'a'),
      append(worker, id, 1, 'a'),
    ]);
    expect(answers).toEqual([true, true, true]);
    expect(await stored(id)).toEqual(['a']);
  });

  it.each(['held', 'pending', 'claimed', 'parked', 'succeeded', 'canceled', 'interrupted', 'absent'] as RunStanding[])(
    'F001 output of a run that is %s is refused',
    async (standing) => {
      const worker = await ground.worker();
      const id = await ground.runIn(standing, { holder: worker });
      expect(await append(worker, id, 1, 'late')).toBe(false);
      expect(await stored(id)).toEqual([]);
    },
  );

  it('S4-18 output under an old fence or of another holder is refused', async () => {
    const [worker, other] = [await ground.worker(), await ground.worker()];
    const id = await ground.runIn('running', { holder: worker });
    expect(await append(worker, id, 1, 'old', 2)).toBe(false);
    expect(await append(other, id, 1, 'other')).toBe(false);
    expect(await stored(id)).toEqual([]);
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
            const output = () => append(worker, id, 1, 'x');
            const [a, b] = i % 2 ? [finish(), output()] : [output(), finish()];
            return [await a, await b].find((answer) => typeof answer === 'boolean');
          }),
        ),
      'commit',
    );
    for (const [i, id] of ids.entries()) {
      expect(await stored(id)).toEqual(answers[i] ? ['x'] : []);
      expect((await ground.look(id)).standing).toBe('succeeded');
    }
  });

  it('an end waits for an append in flight, for that holds the live row', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('running', { holder: worker });
    const [finished] = await ground.behind(
      [['select 1 from live_runs where run_id = $1 for key share', [id]]],
      1,
      () => Promise.all([finishIfHeld(ground.pool, worker, [ground.finish(id)])]),
      'rollback',
    );
    expect(finished).toMatchObject([{ runId: id }]);
  });

  it('one stream can be read alone', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('running', { holder: worker });
    await append(worker, id, 1, 'out');
    await appendAll(worker, id, [batchOf(2, 'err', 2, 3, 0)]);
    expect(await stored(id, undefined, 2)).toEqual(['err']);
    expect(await stored(id)).toEqual(['out', 'err']);
  });

  it('many batches in one statement keep their order, streams, places and bytes', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('running', { holder: worker });
    const batches = [batchOf(1, 'out\0', 1, 0, 0), batchOf(2, '\xff\xfe', 2, 4, 0), batchOf(3, 'more', 1, 6, 4)];
    expect(await appendAll(worker, id, batches)).toBe(true);
    const { run } = await ground.look(id);
    const of = { id, createdAt: new Date(String(run?.created_at)) };
    const read = await readOutput(ground.pool, of, { fence: 0, batch: 0 }, undefined, PAGE);
    expect(read).toEqual(batches.map((batch) => ({ ...batch, fence: 3 })));
  });
});

describe('dropOutputIfHeld', () => {
  const cut = { afterBatch: 1, throughBatch: 3, pos: 1, stdoutPos: 1, bytes: 2, stdoutBytes: 2 };
  const cuts = async (id: string) =>
    (await ground.sql.query('select through_batch, bytes from run_output_cuts where run_id = $1', [id])).rows;

  async function runThatWrote(worker: string, texts: string): Promise<string> {
    const id = await ground.runIn('running', { holder: worker });
    for (const [i, text] of [...texts].entries()) {
      await appendAll(worker, id, [batchOf(i + 1, text, 1, i, i)]);
    }
    return id;
  }

  it('drops exactly these batches and remembers what is missing; a cut only grows', async () => {
    const worker = await ground.worker();
    const id = await runThatWrote(worker, 'abcdef');
    const other = await runThatWrote(worker, 'abcdef');
    const drop = (through: number) =>
      dropOutputIfHeld(bytePool, worker, ground.hold(id), { ...cut, throughBatch: through, bytes: through - 1 });
    for (const through of [3, 3, 5, 3]) expect(await drop(through)).toBe(true);
    expect(await stored(id)).toEqual(['a', 'f']);
    expect(await stored(other)).toHaveLength(6);
    expect(await cuts(id)).toEqual([{ through_batch: 5, bytes: '4' }]);
  });

  it('S4-18 under an old fence, of another holder or after the end nothing is dropped', async () => {
    const [worker, other] = [await ground.worker(), await ground.worker()];
    const id = await runThatWrote(worker, 'abc');
    expect(await dropOutputIfHeld(bytePool, worker, ground.hold(id, 2), cut)).toBe(false);
    expect(await dropOutputIfHeld(bytePool, other, ground.hold(id), cut)).toBe(false);
    await finishIfHeld(ground.pool, worker, [ground.finish(id)]);
    expect(await dropOutputIfHeld(bytePool, worker, ground.hold(id), cut)).toBe(false);
    expect(await stored(id)).toEqual(['a', 'b', 'c']);
    expect(await cuts(id)).toEqual([]);
  });

  it('S4-18 before the start nothing is dropped', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('claimed', { holder: worker });
    expect(await dropOutputIfHeld(bytePool, worker, ground.hold(id), cut)).toBe(false);
  });

  it('S4-18 of a run that was taken away while the cut waited for it nothing is dropped', async () => {
    const [worker, other] = [await ground.worker(), await ground.worker()];
    const id = await runThatWrote(worker, 'abc');
    const locks = [
      ['select 1 from live_runs where run_id = $1 for update', [id]],
      ['update live_runs set holder = $2, fence = fence + 1 where run_id = $1', [id, other]],
    ] as const;
    const drop = () => dropOutputIfHeld(bytePool, worker, ground.hold(id), cut);
    expect(await ground.behind(locks, 1, drop, 'commit')).toBe(false);
    expect(await stored(id)).toEqual(['a', 'b', 'c']);
  });
});
