/** Nothing of a run is stored after its end, and no chunk is stored twice. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { finishIfHeld } from '../../src/runs/finish.sql.js';
import { appendOutputIfHeld, readOutput } from '../../src/runs/output.sql.js';
import type { RunStanding } from '../../src/runs/run.machine.js';
import { Ground } from './ground.fixture.js';

let ground: Ground;
beforeAll(async () => {
  ground = await Ground.open(48);
});
afterAll(() => ground.close());

const chunk = (text: string, stream: 1 | 2 = 1) => ({ stream, at: new Date(), data: Buffer.from(text, 'latin1') });
const append = (worker: string, runId: string, batch: number, text: string, fence = 3) =>
  appendOutputIfHeld(ground.pool, worker, ground.hold(runId, fence), batch, chunk(text));

async function stored(runId: string, after = { fence: 0, batch: 0 }, stream?: 1 | 2): Promise<string[]> {
  const { run } = await ground.look(runId);
  const at = { id: runId, createdAt: run ? new Date(String(run.created_at)) : new Date() };
  return (await readOutput(ground.pool, at, after, stream, 100)).map(({ data }) => data.toString('latin1'));
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
            const finish = () => finishIfHeld(ground.pool, worker, [ground.finish(id, worker)]);
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
      () => Promise.all([finishIfHeld(ground.pool, worker, [ground.finish(id, worker)])]),
      'rollback',
    );
    expect(finished).toEqual([{ runId: id }]);
  });

  it('one stream can be read alone', async () => {
    const worker = await ground.worker();
    const id = await ground.runIn('running', { holder: worker });
    await append(worker, id, 1, 'out');
    await appendOutputIfHeld(ground.pool, worker, ground.hold(id), 2, chunk('err', 2));
    expect(await stored(id, undefined, 2)).toEqual(['err']);
    expect(await stored(id)).toEqual(['out', 'err']);
  });
});
