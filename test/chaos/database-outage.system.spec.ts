/** Outages longer than a lease, and replicas that are lost while the database is there: who is alive is never reaped. */
import { writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../server.js';
import { CLEAN, type EndedRun } from './effects.fixture.js';
import { Load } from './load.fixture.js';
import { scaled } from './scale.js';
import { type Member, Stage } from './stage.fixture.js';
import { Watch } from './watch.fixture.js';

/** With the tests' quicker times a lease is 15 s, and a tool is stopped 12 s after the last renewal was sent. */
const OUTAGE_MS = 17_000;
/** From the end of an outage to the last replica's: as late as a try that began just before it and the pause behind. */
const LATE_MS = 4_000;
const LINES = 500;
/** Shorter than a lease; whoever waited for the one that stands still would wait for as long. */
const STILL_MS = 7_000;

describe('an outage longer than the lease', () => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await Stage.open(['r1', 'r2', 'r3']);
  });
  afterAll(() => stage?.close());

  it('F026 F042 nobody who is alive is reaped: what ended by itself keeps its end and its output, the rest was stopped', async () => {
    const watch = Watch.over(stage.all());
    const go = `${stage.db.scratch}/go`;
    const short = await submitAll(4, [
      ...[
        'bash',
        '-c',
        `while [ ! -e ${go} ]; do sleep 0.1; done; sleep 1; for i in $(seq ${LINES}); do echo "line $i"; done`,
      ],
    ]);
    const long = await submitAll(5, stage.effects.tool(120));
    await stage.untilRunning(9);
    const before = await workers();

    for (const { proxy } of stage.all()) proxy.goSilent();
    await writeFile(go, '');
    await wait(OUTAGE_MS);
    const [first, ...others] = stage.all();
    comeBack(first);
    await wait(LATE_MS);
    others.forEach(comeBack);

    const ended = await stage.untilEnded(30_000);
    expect(endsOf(short, ended)).toEqual(Array(4).fill('succeeded ok'));
    expect(endsOf(long, ended)).toEqual(Array(5).fill('interrupted worker_lost'));
    const expected = Array.from({ length: LINES }, (_, i) => `line ${i + 1}\n`).join('');
    for (const id of short) expect(await stage.outputOf(id)).toBe(expected);
    expect(await workers()).toEqual(before);
    expect(await stage.effects.judge(ended.filter(({ id }) => long.includes(id)))).toEqual(CLEAN);
    await until('everybody is ready again', () => watch.allReady(), 10_000);
    expect(watch.faults()).toEqual([]);
    await watch.stop();
    expect(await stage.faults()).toEqual([]);
  });

  it('F023 two replicas killed together and started together leave one interrupted end for each of their runs', async () => {
    const runs = await submitAll(10, stage.effects.tool(120));
    await stage.untilRunning(10);
    const lost = await stage.db.query<{ n: number }>(
      `select count(*)::integer as n from live_runs l join workers w on w.id = l.holder where w.name in ('r1', 'r2')`,
    );
    await Promise.all([stage.kill('r1'), stage.kill('r2')]);
    await Promise.all([stage.add('r1'), stage.add('r2')]);
    await until(
      'the lost runs have ended',
      async () => (await stage.ended()).filter(({ id }) => runs.includes(id)).length >= (lost[0]?.n ?? 0),
      60_000,
    );
    const ended = (await stage.ended()).filter(({ id }) => runs.includes(id));
    expect(ended).toHaveLength(lost[0]?.n ?? 0);
    expect(new Set(ended.map(({ state, code }) => `${state} ${code}`))).toEqual(new Set(['interrupted worker_lost']));
    expect(await stage.effects.judge(ended)).toEqual(CLEAN);
    await Promise.all(runs.map((id) => stage.call(stage.get('r1'), 'POST', `/v1/runs/${id}/cancel`)));
    await stage.untilEnded(30_000);
    expect(await stage.faults()).toEqual([]);
  });

  it('a replica that stands still in the middle of its writes holds nobody up', async () => {
    const [still, ...others] = [stage.get('r3'), stage.get('r1'), stage.get('r2')];
    const flood = Load.start(stage, { perSecond: 30, at: () => [still] });
    const load = Load.start(stage, { perSecond: 10, at: () => others });
    for (let moment = 0; moment < scaled(2, 20); moment += 1) {
      await wait(500 + Math.random() * 500);
      still.server.child.kill('SIGSTOP');
      await wait(STILL_MS);
      still.server.child.kill('SIGCONT');
    }
    await Promise.all([load.stop(), flood.stop()]);
    await stage.untilEnded(60_000);
    expect([...(await load.faults()), ...(await flood.faults())]).toEqual([]);
    expect(load.slowestMs).toBeLessThan(STILL_MS - 2_000);
    expect(await stage.faults()).toEqual([]);
  });

  const submitAll = (count: number, argv: readonly string[]) =>
    Promise.all(Array.from({ length: count }, () => stage.submit(argv)));

  async function workers(): Promise<unknown[]> {
    return stage.db.query('select id, name, state from workers order by id');
  }
});

/** What was under way is lost, as behind a network that dropped it. */
function comeBack(member: Member | undefined): void {
  member?.proxy.speak();
  member?.proxy.reset();
}

function endsOf(ids: readonly string[], ended: readonly EndedRun[]): string[] {
  return ids.map((id) => {
    const run = ended.find((each) => each.id === id);
    return `${run?.state} ${run?.code}`;
  });
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
