/**
 * `kill -9` in each phase of a run. Within lease and janitor interval every run is where the table says, and nothing is
 * left with a life that is gone; what had not started runs once elsewhere, what had is never run again.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { decodeId, encodeId } from '../../src/kernel/ids.js';
import { until } from '../server.js';
import { CLEAN } from './effects.fixture.js';
import { type Cast, KILLED, killInPhase, openScene, PAIR_RUNS, type Phase } from './phases.fixture.js';
import { isFull } from './scale.js';

const JANITOR_MS = 5_000;
/** For a busy machine. */
const ROOM_MS = 5_000;

interface Life {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly leaseUntilMs: number;
  readonly endedAtMs: number | null;
  readonly ttlMs: number;
}

/** What the store has of a run, whether it has ended or not. */
interface Standing {
  readonly state: string;
  readonly code: string | null;
  readonly by: string | null;
  readonly fence: number;
  readonly holder: string | null;
  /** When it was taken from the life that was gone. */
  readonly settledAtMs: number | null;
}

let cast: Cast;
let lives: Map<string, Life>;
let standings: Record<Phase, Standing>;
let all: readonly Life[];
let later: () => Promise<string>;
let before: string;

beforeAll(async () => {
  cast = await openScene();
  await killInPhase(cast);
  const { stage } = cast;
  later = () => recordsOf(cast.pair);
  await until('the pair is settled', async () => (await ofGone("l.queue = 'pair'")) === 0, 60_000);
  before = await later();
  await until('nothing is left with a life that is gone', async () => (await ofGone('true')) === 0, 60_000);
  await stage.untilEnded(30_000);
  all = await livesOf();
  lives = new Map(all.map((life) => [life.name, life]));
  const stood = await Promise.all(KILLED.map(async (name) => [name, await standingOf(cast.runs[name])] as const));
  standings = Object.fromEntries(stood) as Record<Phase, Standing>;
}, 240_000);

afterAll(() => cast?.stage.close());

it.each(KILLED)(
  'F020 S3-07 S3-12 S3-29 a life killed while %s is lost within its lease and a janitor interval',
  (name) => {
    const life = lifeOf(name);
    expect(life.state).toBe('lost');
    expect(life.endedAtMs).toBeGreaterThan(life.leaseUntilMs);
    expect(life.endedAtMs).toBeLessThan(life.leaseUntilMs + JANITOR_MS + ROOM_MS);
  },
);

it.each(['claimed', 'releasing'] as const)(
  'F011 S1-24 S3-13 S4-13 S4-60 S4-62 what was killed while %s is run once by another, under the next fence',
  (name) => {
    const { settledAtMs, ...standing } = standings[name];
    expect(standing).toMatchObject({ state: 'succeeded', fence: 2, holder: expect.stringMatching(/^pair[12]$/) });
    expect(settledAtMs).toBeLessThan(lifeOf(name).leaseUntilMs + JANITOR_MS + ROOM_MS);
  },
);

it.each(['defaults', 'finishing', 'canceling'] as const)(
  'F020 S4-09 S4-14 S4-61 a run whose replica was killed while %s ends interrupted, by the janitor of a survivor',
  (name) => {
    const standing = standings[name];
    expect(standing).toMatchObject({ state: 'interrupted', code: 'worker_lost', fence: 1, holder: name });
    expect(othersAt(standing.settledAtMs ?? 0, name)).toContain(standing.by);
    expect(standing.settledAtMs).toBeLessThan(lifeOf(name).leaseUntilMs + JANITOR_MS + ROOM_MS);
  },
);

it('S4-08 an end that is carried out when its sender is gone stands: by the holder, and no janitor adds another', () => {
  const { by, ...standing } = standings.finished;
  expect(standing).toMatchObject({ state: 'succeeded', code: 'ok', fence: 1, holder: 'finished' });
  expect(by).toBe(encodeId('wrk', lifeOf('finished').id));
});

it('F020 a life that was registered when its process was gone is lost like any other, and held nothing', () => {
  const life = lifeOf('newborn');
  expect(life.state).toBe('lost');
  expect(life.endedAtMs).toBeLessThan(life.leaseUntilMs + JANITOR_MS + ROOM_MS);
});

it('S1-15 S4-12 at the default settings a janitor acts after 30 s and within 45 s of the last renewal', () => {
  const life = lifeOf('defaults');
  expect(life.ttlMs).toBe(30_000);
  const renewedAtMs = life.leaseUntilMs - life.ttlMs;
  const tookMs = (standings.defaults.settledAtMs ?? 0) - renewedAtMs;
  if (isFull) process.stdout.write(`taken over ${tookMs} ms after its last renewal\n`);
  expect(tookMs).toBeGreaterThan(30_000);
  expect(tookMs).toBeLessThan(45_000);
});

it('F023 F025 two replicas killed and started again together leave one end for each of their runs', async () => {
  const rows = await cast.stage.db.query<{ state: string; entries: number; events: number }>(
    `select r.state,
            (select count(*)::integer from audit_entries e where e.run_id = r.id and e.action = 'run.ended') as entries,
            (select count(*)::integer from run_events e where e.run_id = r.id and e.type = 'run.ended') as events
     from runs r where r.queue = 'pair'`,
  );
  expect(rows).toEqual(Array.from({ length: PAIR_RUNS }, () => ({ state: 'interrupted', entries: 1, events: 1 })));
});

it('S4-16 an interrupted run never changes afterwards', async () => {
  expect(await later()).toBe(before);
});

it('S4-61 nothing ran twice, nothing after its end, and the chain holds one end for each run', async () => {
  const { effects } = cast.stage;
  const traced = new Set([
    ...cast.pair,
    cast.runs.claimed,
    cast.runs.releasing,
    cast.runs.finishing,
    cast.runs.defaults,
  ]);
  expect(await effects.judge((await cast.stage.ended()).filter(({ id }) => traced.has(id)))).toEqual(CLEAN);
  expect(await cast.stage.faults()).toEqual([]);
  const lost = await cast.stage.db.query<{ n: number }>(
    `select count(*)::integer as n from audit_entries where action = 'worker.lost'
     group by claim::jsonb -> 'payload' ->> 'object'`,
  );
  // The killed, the pair's first lives, and the one that was being registered.
  expect(lost).toEqual(Array.from({ length: KILLED.length + 3 }, () => ({ n: 1 })));
});

function lifeOf(name: string): Life {
  const life = lives.get(name);
  if (!life) throw new Error(`${name} has no life`);
  return life;
}

/** The TypeIDs of whoever else was not yet lost at this moment. */
function othersAt(atMs: number, name: string): string[] {
  return all
    .filter((life) => life.name !== name && (life.endedAtMs === null || life.endedAtMs > atMs))
    .map(({ id }) => encodeId('wrk', id));
}

/** Live runs of such a kind that a killed process holds: whoever is not the last of its name to have come. */
async function ofGone(condition: string): Promise<number> {
  const [row] = await cast.stage.db.query<{ n: number }>(
    `select count(*)::integer as n from live_runs l join workers w on w.id = l.holder
     where ${condition} and w.id not in (
       select distinct on (name) id from workers where name in ('survivor', 'pair1', 'pair2')
       order by name, started_at desc)`,
  );
  return row?.n ?? 0;
}

function livesOf(): Promise<Life[]> {
  return cast.stage.db.query<Life>(
    `select id, name, state, ttl_ms::integer as "ttlMs", (extract(epoch from lease_until) * 1000)::float8 as "leaseUntilMs",
            (extract(epoch from ended_at) * 1000)::float8 as "endedAtMs"
     from workers order by started_at`,
  );
}

async function standingOf(id: string): Promise<Standing> {
  const [row] = await cast.stage.db.query<Standing>(
    `select r.state, r.end_code as code, r.end_by as by, r.fence, w.name as holder,
            (extract(epoch from coalesce(
              (select min(at) from run_events e where e.run_id = r.id and e.type = 'run.requeued'), r.ended_at)) * 1000
            )::float8 as "settledAtMs"
     from runs r left join workers w on w.id = r.worker_id where r.id = $1`,
    [decodeId('run', id)],
  );
  if (!row) throw new Error(`there is no run ${id}`);
  return row;
}

/** Everything that the records of these runs say. */
async function recordsOf(ids: readonly string[]): Promise<string> {
  const rows = await cast.stage.db.query<{ record: string }>(
    'select r::text as record from runs r where id = any ($1::uuid[]) order by id',
    [ids.map((id) => decodeId('run', id))],
  );
  return rows.map(({ record }) => record).join('\n');
}
