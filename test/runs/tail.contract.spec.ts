/** One look at a run: what it counts is of one instant, and of an ended run it is everything. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { newId } from '../../src/kernel/ids.js';
import { readOutput } from '../../src/runs/output.sql.js';
import { BEGINNING } from '../../src/runs/place.rules.js';
import { findRun } from '../../src/runs/read.sql.js';
import { pageOf } from '../../src/runs/tail.rules.js';
import { findStanding } from '../../src/runs/tail.sql.js';
import { type LocalSurface, openLocalSurface } from '../send.js';
import { Holder } from './holder.fixture.js';

let root: LocalSurface;
let surface: LocalSurface;
beforeAll(async () => {
  root = await openLocalSurface();
});
beforeEach(() => {
  surface = { ...root, queue: `q-${newId()}` };
});
afterAll(() => root.close());

async function running(limitBytes?: number) {
  const json = { kind: 'noop', queue: surface.queue };
  await surface.send({ method: 'POST', path: '/v1/runs', json });
  const holder = await Holder.register(surface, limitBytes);
  const hold = await holder.start();
  const run = await findRun(surface.pool, surface.organizationId, hold.runId);
  if (!run) throw new Error('the run is missing');
  return { run, holder, hold };
}

it('F075 F073 a look that shows the end counts all output and all events, whatever else goes on', async () => {
  for (let round = 0; round < 15; round += 1) {
    const { run, holder, hold } = await running();
    const total = 1 + (round % 4);
    const working = (async () => {
      for (let i = 0; i < total; i += 1) await holder.write(hold, 1, Buffer.from(`${i}\n`));
      await holder.finish(hold);
    })();
    for (;;) {
      const standing = await findStanding(surface.pool, run, BEGINNING, 200);
      if (standing?.endedAt == null) continue;
      expect(standing).toMatchObject({ chunks: total, moreOutput: false, moreEvents: false });
      expect(standing.events.at(-1)?.type).toBe('run.ended');
      break;
    }
    await working;
  }
});

it('counts what comes behind a place, bounded in number and bytes, the first whatever its size', async () => {
  const { run, holder, hold } = await running();
  for (const bytes of [300_000, 300_000, 1, 1, 600_000, 1]) await holder.write(hold, 1, Buffer.alloc(bytes, 'x'));
  const counts: [number, boolean][] = [];
  for (let batch = 0; batch < 6; batch += 1) {
    const standing = await findStanding(surface.pool, run, { seq: 0, fence: batch === 0 ? 0 : 1, batch }, 200);
    counts.push([standing?.chunks ?? -1, standing?.moreOutput ?? false]);
  }
  expect(counts).toEqual([
    [2, true],
    [4, true],
    [3, true],
    [2, true],
    [1, true],
    [1, false],
  ]);
});

it('counts no more than 256 chunks at once', async () => {
  const { run, hold, holder } = await running();
  await surface.session().then((session) =>
    session.query(
      `insert into run_output (run_day, run_id, fence, batch, stream, at, pos, stream_pos, data)
       select run_day, run_id, 1, n, 1, now(), n, n, 'x' from live_runs, generate_series(1, 300) as n where run_id = $1`,
      [hold.runId],
    ),
  );
  expect(await findStanding(surface.pool, run, BEGINNING, 200)).toMatchObject({ chunks: 256, moreOutput: true });
  expect(await findStanding(surface.pool, run, { seq: 1, fence: 1, batch: 44 }, 200)).toMatchObject({
    chunks: 256,
    moreOutput: false,
    events: [],
  });
  await holder.finish(hold);
});

it('tells where the output was cut', async () => {
  const { run, holder, hold } = await running(100_000);
  for (let i = 0; i < 30; i += 1) await holder.write(hold, 1, Buffer.alloc(10_000, 'x'));
  const standing = await findStanding(surface.pool, run, BEGINNING, 200);
  if (!standing) throw new Error('the run is missing');
  const { cutAfter, cutPos } = standing;
  expect(cutAfter).toBeGreaterThan(0);
  // Who was at the cut knows from the look alone how much is missing.
  const at = { ...BEGINNING, claim: 1, start: 1, fence: 1, batch: cutAfter ?? 0 };
  const behind = await findStanding(surface.pool, run, at, 200);
  const chunks = await readOutput(surface.pool, run, at, undefined, {
    chunks: behind?.chunks ?? 0,
    bytes: Number.MAX_SAFE_INTEGER,
  });
  const [gap] = pageOf(at, { standing: behind ?? standing, chunks }).steps.flatMap((s) => ('gap' in s ? [s.gap] : []));
  expect(gap).toEqual({
    fence: 1,
    after: cutAfter,
    next: chunks[0]?.batch,
    bytes: (chunks[0]?.pos ?? 0) - (cutPos ?? 0),
  });
});

it('a run that is not there is no standing', async () => {
  const { run } = await running();
  expect(await findStanding(surface.pool, { ...run, id: newId() }, BEGINNING, 200)).toBeUndefined();
});
