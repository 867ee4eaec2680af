/**
 * The database is away for longer than any tool may go on without it, and so for all replicas at once: nobody is left
 * who could take over, and nobody has to.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { encodeId } from '../../src/kernel/ids.js';
import { until } from '../server.js';
import { CLEAN, type EndedRun, type Trace } from './effects.fixture.js';
import { scaled } from './scale.js';
import { Stage } from './stage.fixture.js';

const TOOLS = scaled(10, 50);
/** Longer than a lease. */
const OUTAGE_MS = scaled(18, 60) * 1000;
const REPLICAS = ['r1', 'r2'] as const;

let stage: Stage;
/** Stopped by their deadline while the database was away. */
let stopped: EndedRun[];
/** Died by themselves while the database was away. */
let died: EndedRun[];
let traces: Map<string, Trace>;
let backAtMs: number;

beforeAll(async () => {
  stage = await Stage.open(REPLICAS, { env: { CAPSTAN_SLOTS: String(2 * TOOLS) } });
  const { effects, db } = stage;
  const argv = (i: number) => effects.tool(600, i % 3 === 0 ? 'stubborn' : 'polite', 'says');
  const ids: string[] = [];
  for (let i = 0; i < 2 * TOOLS; i += 1) ids.push(await stage.submit(argv(i)));
  await stage.untilRunning(ids.length, 60_000);
  await until('all tools work', async () => (await effects.traces()).size === ids.length);
  const dying = new Set(ids.slice(0, 4));
  await db.stop();
  const lostAtMs = Date.now();
  await sleep(1_000);
  for (const [id, { pids }] of await effects.traces()) {
    if (dying.has(id)) for (const pid of pids) process.kill(pid, 'SIGKILL');
  }
  await sleep(lostAtMs + OUTAGE_MS - Date.now());
  backAtMs = Date.now();
  await db.start();
  const ended = await stage.untilEnded(60_000);
  stopped = ended.filter(({ id }) => !dying.has(id));
  died = ended.filter(({ id }) => dying.has(id));
  traces = await effects.traces();
}, 300_000);

afterAll(() => stage.close());

it('F026 tools of an outage longer than the lease run once, and are stopped while it lasts', async () => {
  expect(stopped).toHaveLength(2 * TOOLS - 4);
  const others = stopped.filter((run) => run.state !== 'interrupted' || run.code !== 'worker_lost' || run.fence !== 1);
  expect(others).toEqual([]);
  expect(await stage.effects.judge([...stopped, ...died])).toEqual(CLEAN);
  expect(stopped.filter(({ id }) => (traces.get(id)?.lastAtMs ?? 0) >= backAtMs)).toEqual([]);
});

it('F026 a tool that ended by itself meanwhile is told as what it was', () => {
  expect(died).toHaveLength(4);
  expect(died.filter(({ state, code, fence }) => state !== 'failed' || code !== 'tool_failed' || fence !== 1)).toEqual(
    [],
  );
});

it('F026 what they said is all there, in order', async () => {
  const said = await stage.db.query<{ id: string; lines: string; events: number[] }>(
    `select r.id,
            (select string_agg(convert_from(o.data, 'UTF8'), '' order by o.fence, o.batch) from run_output o
             where o.run_id = r.id and o.stream = 1) as lines,
            (select array_agg((e.data ->> 'n')::integer order by e.seq) from run_events e
             where e.run_id = r.id and e.type = 'effect') as events
     from runs r`,
  );
  expect(said).toHaveLength(2 * TOOLS);
  for (const { id, lines, events } of said) {
    const count = traces.get(encodeId('run', id))?.count ?? 0;
    const printed = lines.trim().split('\n').map(Number);
    // Each tenth effect is told, the first among them; between effect, line and event the tool may have been killed.
    const told = Array.from({ length: Math.ceil(count / 10) }, (_, i) => 10 * i + 1);
    expect([told, told.slice(0, -1)]).toContainEqual(printed);
    expect([printed, printed.slice(0, -1)]).toContainEqual(events);
  }
});

it('F026 no life is taken for lost: after an outage the owners renew first, and work on', async () => {
  expect(await stage.db.query('select name, state from workers order by name')).toEqual(
    REPLICAS.map((name) => ({ name, state: 'live' })),
  );
  await stage.submit(stage.effects.tool(0));
  expect((await stage.untilEnded(30_000)).filter(({ state }) => state === 'succeeded')).toHaveLength(1);
  expect(await stage.faults()).toEqual([]);
});
