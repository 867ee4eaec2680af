/**
 * Two real replicas with short leases, a burst of runs that are due at once, a kill and a restart under the same name, a
 * storm of cancels and a drain: no law and no check of the doctor cries wolf meanwhile.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { violations } from '../../src/doctor/invariants.js';
import type { Violation } from '../../src/doctor/laws.js';
import { lookAtStanding } from '../../src/doctor/standing.sql.js';
import type { Check } from '../../src/kernel/diagnosis.js';
import type { Pool } from '../../src/platform/db/db.js';
import { capstan as cli } from '../cli/cli.fixture.js';
import { createDatabase, type TestDatabase } from '../database.js';
import { type ServerProcess, startServer, until } from '../server.js';

const TOKEN = 'a-token-of-the-operator-0123456789';
const DUE = 2_000;
/** Instead of two minutes: so late nothing is here, and the sessions of keepers grow so old. */
const LATE_MS = 12_000;

let db: TestDatabase;
let pool: Pool;
let replicas: ServerProcess[];

const start = (name: string) =>
  startServer({ DATABASE_URL: db.url, CAPSTAN_BOOTSTRAP_TOKEN: TOKEN, CAPSTAN_NAME: name, CAPSTAN_SLOTS: '16' });

beforeAll(async () => {
  db = await createDatabase();
  pool = db.pool(2);
  replicas = await Promise.all(['r1', 'r2'].map(start));
});
afterAll(async () => {
  for (const { child } of replicas) child.kill('SIGTERM');
  await Promise.all(replicas.map(({ finished }) => finished));
  await db.drop();
});

const at = (i: number): ServerProcess => {
  const server = replicas[i];
  if (!server) throw new Error(`there is no replica ${i}`);
  return server;
};

async function call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
  const answer = await fetch(at(1).url + path, {
    method,
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify(body ?? {}),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as Record<string, unknown>;
}

const count = async (what: string): Promise<number> =>
  (await pool.run<{ n: number }[]>((sql) => sql`select count(*)::integer as n from ${sql.unsafe(what)}`))[0]?.n ?? 0;

/** Looks in every way there is until it is over; the real program and the laws by turns. */
class Watch {
  readonly found: (Violation | string)[] = [];
  judged = 0;
  doctored = 0;

  async look(isOver: () => boolean): Promise<void> {
    const doctor = this.askDoctor(isOver);
    while (!isOver()) {
      const standing = await lookAtStanding(pool, LATE_MS);
      if (standing.isAnybodyAble) this.judged += 1;
      this.found.push(...standing.violations, ...(await violations(pool)));
    }
    await doctor;
  }

  private async askDoctor(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const { code, stdout, stderr } = await cli(['doctor', '--json'], { env: { DATABASE_URL: db.url } });
      const { checks } = JSON.parse(stdout) as { checks: Check[] };
      this.found.push(...checks.flatMap(({ faults }) => faults.map(({ what }) => what)));
      if (code !== 0) this.found.push(`the doctor ended with ${code}: ${stderr}`);
      this.doctored += 1;
    }
  }
}

it('nothing is told while replicas are killed, restarted, drained, and flooded with runs and cancels', async () => {
  let isOver = false;
  const watch = new Watch();
  const watching = watch.look(() => isOver);
  watching.catch(() => undefined);
  try {
    const notBefore = new Date(Date.now() + 6_000).toISOString();
    for (let made = 0; made < DUE; made += 200) {
      const runs = Array.from({ length: 200 }, () => ({ kind: 'noop', notBefore }));
      await Promise.all(runs.map((run) => call('POST', '/v1/runs', run)));
    }
    const sleep = { kind: 'command', spec: { argv: ['sleep', '60'] } };
    const sleepers = await Promise.all(Array.from({ length: 24 }, () => call('POST', '/v1/runs', sleep)));
    await until(
      'both replicas hold some',
      async () => (await count(`(select distinct holder from live_runs where state = 'running') h`)) === 2,
    );

    at(0).child.kill('SIGKILL');
    await at(0).finished;
    replicas[0] = await start('r1');
    await until(
      'two lives of one name are told apart',
      async () => (await count(`workers where name = 'r1' and ended_at is null`)) === 2,
    );
    await until(
      'the one that was killed is lost',
      async () => (await count(`workers where state = 'lost'`)) === 1,
      40_000,
    );

    await Promise.all(sleepers.map(({ id }) => call('POST', `/v1/runs/${id}/cancel`).catch(() => undefined)));
    replicas[0].child.kill('SIGTERM');
    await until('all have ended', async () => (await count('live_runs')) === 0, 40_000);
    await until('what waits was judged, and the doctor asked', () => watch.judged >= 5 && watch.doctored >= 5);
  } finally {
    isOver = true;
  }
  await watching;
  expect(watch.found).toEqual([]);
  expect(await count('runs where state is not null')).toBe(DUE + 24);
}, 120_000);
