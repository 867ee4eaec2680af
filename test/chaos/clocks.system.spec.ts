/**
 * Replicas whose clocks are wrong, ahead and behind by ten minutes, or set back and forth while they work: leases, due
 * times and what the store says go by the database's clock, and how long something takes by a clock that nobody sets.
 */
import { existsSync, readdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { encodeId } from '../../src/kernel/ids.js';
import { until } from '../server.js';
import { CLEAN } from './effects.fixture.js';
import { isFull, scaled } from './scale.js';
import { type Member, Stage } from './stage.fixture.js';

const RUNS = scaled(25, 50);
/** Longer than a lease. */
const LONG_S = scaled(18, 40);
const DUE_IN_MS = 5_000;

const MEMBERS = ['right', 'ahead', 'behind', 'set'] as const;
type Name = (typeof MEMBERS)[number];

/** A run, as the database has it. Instants are ms since 1970 by its clock. */
interface Row {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly state: string;
  readonly code: string;
  readonly fence: number;
  readonly notBeforeMs: number | null;
  readonly createdAtMs: number;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}

let stage: Stage;
let rows: Row[];
let startedAtMs: number;
/** How far what a replica answered was from the database's clock, in ms. */
const answered: { at: Name; what: 'createdAt' | 'leaseUntil'; byMs: number }[] = [];

/** Gives the supervisor, whose environment is clean, the same wrong clock as the replica. */
const ALSO_SUPERVISORS = `
  import processes from 'node:child_process';
  import { syncBuiltinESMExports } from 'node:module';
  const { spawn } = processes;
  const clock = Object.fromEntries(Object.entries(process.env).filter(([name]) => /^(LD_PRELOAD|FAKETIME)/.test(name)));
  processes.spawn = (program, args, options) => {
    const isSupervisor = Array.isArray(args) && args.some((arg) => arg.includes('supervisor.main'));
    return spawn(program, args, isSupervisor ? { ...options, env: { ...options.env, ...clock } } : options);
  };
  syncBuiltinESMExports();`;

/**
 * The program sees another time of day, its tools don't. The monotonic clock is left alone, as on a machine whose clock
 * was set wrong. (`faketime` itself would stand between us and the process.) A supervisor takes a clock that is set
 * while it works for a machine that slept, and stops its tools; so the clock that moves is the replica's alone.
 */
function wrongClock(offset: { FAKETIME: string } | { FAKETIME_TIMESTAMP_FILE: string }): Record<string, string> {
  const folder = readdirSync('/usr/lib')
    .map((name) => join('/usr/lib', name, 'faketime'))
    .find((path) => existsSync(join(path, 'libfaketime.so.1')));
  if (!folder) throw new Error('faketime is missing: install the Debian package "faketime"');
  return {
    LD_PRELOAD: join(folder, 'libfaketime.so.1'),
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    FAKETIME_CACHE_DURATION: '1',
    ...('FAKETIME' in offset && {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(ALSO_SUPERVISORS)}`,
    }),
    ...offset,
  };
}

async function databaseMs(): Promise<number> {
  const [row] = await stage.db.query<{ ms: number }>(
    'select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms',
  );
  return row?.ms ?? 0;
}

/** Submits at one replica, and notes what it says about when that was. */
async function submit(at: Member, argv: readonly string[], extra: object): Promise<string> {
  const before = await databaseMs();
  const body = { kind: 'command', spec: { argv }, ...extra };
  const answer = await stage.call(at, 'POST', '/v1/runs', body);
  const after = await databaseMs();
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  const { id, createdAt } = answer.body as { id: string; createdAt: string };
  const createdMs = Date.parse(createdAt);
  // Instants are cut to the millisecond.
  const byMs = createdMs < before - 1 ? before - createdMs : Math.max(0, createdMs - after);
  answered.push({ at: at.name as Name, what: 'createdAt', byMs });
  return id;
}

async function noteLeases(): Promise<void> {
  const ends = await stage.db.query<{ id: string; ms: number }>(
    `select id, (extract(epoch from lease_until) * 1000)::float8 as ms from workers where state = 'live'`,
  );
  for (const member of stage.all()) {
    const { body } = await stage.call(member, 'GET', '/v1/workers');
    for (const { id, leaseUntil } of (body as { items: { id: string; leaseUntil: string }[] }).items) {
      const end = ends.find((row) => encodeId('wrk', row.id) === id);
      if (!end) throw new Error(`${member.name} shows a life that is not live`);
      const byMs = Math.abs(Date.parse(leaseUntil) - end.ms);
      answered.push({ at: member.name as Name, what: 'leaseUntil', byMs });
    }
  }
}

beforeAll(async () => {
  stage = await Stage.open(['right']);
  const clock = join(stage.db.scratch, 'clock');
  await writeFile(clock, '+0', { mode: 0o644 });
  const envOf = (name: Name) => ({ CAPSTAN_QUEUES: `default,${name}`, CAPSTAN_SLOTS: '12' });
  await Promise.all([
    stage.add('ahead', { env: { ...envOf('ahead'), ...wrongClock({ FAKETIME: '+10m' }) } }),
    stage.add('behind', { env: { ...envOf('behind'), ...wrongClock({ FAKETIME: '-10m' }) } }),
    stage.add('set', { env: { ...envOf('set'), ...wrongClock({ FAKETIME_TIMESTAMP_FILE: clock }) } }),
  ]);
  startedAtMs = await databaseMs();
  const setClock = async () => {
    for (const offset of ['+1h', '-1h', '+0', '-10m']) {
      await sleep(3_000);
      await writeFile(clock, offset);
    }
  };
  const setting = setClock();
  const { effects } = stage;
  const members = stage.all();
  // Its own queue: what it holds meanwhile must outlast a lease.
  for (const at of members) {
    if (at.name === 'right') continue;
    await submit(at, effects.tool(LONG_S, 'polite', 'says'), { name: 'long', queue: at.name });
    await submit(at, effects.tool(60), { name: 'timeout', queue: at.name, timeout: '2s' });
  }
  for (let i = 0; i < RUNS; i += 1) {
    await submit(members[i % members.length] ?? stage.get('right'), effects.tool(2), { name: 'short' });
  }
  const notBefore = new Date((await databaseMs()) + DUE_IN_MS).toISOString();
  for (const at of members) {
    await submit(at, effects.tool(0), { name: 'due', notBefore });
    if (at.name !== 'right') await submit(at, effects.tool(0), { name: 'due', queue: at.name, notBefore });
  }
  await until('all are claimed', async () => ((await stage.live()).pending ?? 0) === 0, 60_000);
  await noteLeases();
  await setting;
  await noteLeases();
  await stage.untilEnded(120_000);
  rows = await stage.db.query<Row>(
    `select id, name, queue, state, end_code as code, fence,
            (extract(epoch from not_before) * 1000)::float8 as "notBeforeMs",
            (extract(epoch from created_at) * 1000)::float8 as "createdAtMs",
            (extract(epoch from started_at) * 1000)::float8 as "startedAtMs",
            (extract(epoch from ended_at) * 1000)::float8 as "endedAtMs"
     from runs order by id`,
  );
}, 240_000);

afterAll(() => stage.close());

/** How far the clock of a replica's log and the instants that its supervisor gave are off, in minutes. */
async function offsets(name: Name): Promise<{ replica: number; supervisor: number }> {
  const [row] = await stage.db.query<{ ms: number; started: number }>(
    `select (extract(epoch from o.at) * 1000)::float8 as ms, (extract(epoch from r.started_at) * 1000)::float8 as started
     from run_output o join runs r on r.id = o.run_id where r.queue = $1 order by o.at limit 1`,
    [name],
  );
  const started = /"time":"([^"]+)","code":"started"/.exec(stage.get(name).server.log());
  const minutes = (ms: number) => Math.round(ms / 60_000);
  return {
    replica: minutes(Date.parse(started?.[1] ?? '') - startedAtMs),
    supervisor: minutes((row?.ms ?? 0) - (row?.started ?? 0)),
  };
}

const named = (name: string): Row[] => rows.filter((row) => row.name === name);

it('the clocks are wrong indeed', async () => {
  expect(await offsets('ahead')).toEqual({ replica: 10, supervisor: 10 });
  expect(await offsets('behind')).toEqual({ replica: -10, supervisor: -10 });
});

it('F009 replicas ten minutes ahead and behind steal no run, interrupt none and run none twice', async () => {
  const expected = rows.filter(({ name }) => name !== 'timeout');
  expect(expected.filter(({ state, fence }) => state !== 'succeeded' || fence !== 1)).toEqual([]);
  expect(await stage.effects.judge(await stage.ended())).toEqual(CLEAN);
  expect(await stage.faults()).toEqual([]);
});

it('F009 no life of theirs is taken for over while it runs', async () => {
  const lives = await stage.db.query('select name, state from workers order by name');
  expect(lives).toEqual([...MEMBERS].sort().map((name) => ({ name, state: 'live' })));
  const codes = stage.all().flatMap(({ server }) => server.log().match(/"code":"(worker_lost|lease_over|life_over)"/g));
  expect(codes.filter((code) => code !== null)).toEqual([]);
});

it('F009 a run is due by the clock of the database, whoever accepted it and whoever starts it', () => {
  const due = named('due').map(({ queue, startedAtMs, notBeforeMs }) => ({
    queue,
    lateMs: startedAtMs - (notBeforeMs ?? 0),
  }));
  expect(due).toHaveLength(MEMBERS.length * 2 - 1);
  expect(due.filter(({ lateMs }) => lateMs < 0 || lateMs > 3_000)).toEqual([]);
});

it('a timeout of 2 s comes after 2 s, whatever the time of day does', () => {
  const took = named('timeout').map(({ state, queue, startedAtMs, endedAtMs }) => ({
    state,
    queue,
    ms: endedAtMs - startedAtMs,
  }));
  expect(took).toHaveLength(MEMBERS.length - 1);
  expect(took.filter(({ state, ms }) => state !== 'timed_out' || ms < 2_000 || ms > 5_000)).toEqual([]);
});

it('F009 what they answer of creation and leases is the time of the database', () => {
  expect(new Set(answered.map(({ at }) => at)).size).toBe(MEMBERS.length);
  // A lease is renewed between two looks.
  expect(answered.filter(({ what, byMs }) => byMs > (what === 'createdAt' ? 0 : 4_000))).toEqual([]);
  if (isFull) process.stdout.write(`${answered.length} instants compared\n`);
});
