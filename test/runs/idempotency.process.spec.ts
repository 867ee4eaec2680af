/** One key over three real replicas, one of which is killed in the middle of the burst: for every POST that makes something. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { newId } from '../../src/kernel/ids.js';
import { createDatabase, type TestDatabase } from '../database.js';
import type { Request } from '../send.js';
import { type ServerProcess, startServer } from '../server.js';
import { CREATING, type Told, under } from './creating.fixture.js';

const TOKEN = 'a-token-of-the-operator-0123456789';
const NAMES = ['r1', 'r2', 'r3'];

let db: TestDatabase;
let replicas: ServerProcess[];
const start = (name: string) =>
  startServer({ DATABASE_URL: db.url, CAPSTAN_BOOTSTRAP_TOKEN: TOKEN, CAPSTAN_NAME: name });

beforeAll(async () => {
  db = await createDatabase({ empty: true });
  replicas = await Promise.all(NAMES.map(start));
});

afterAll(async () => {
  for (const { child } of replicas) child.kill('SIGTERM');
  await Promise.all(replicas.map(({ finished }) => finished));
  await db.drop();
});

const at = (i: number): ServerProcess => {
  const server = replicas[i % replicas.length];
  if (!server) throw new Error('there is no replica');
  return server;
};

/** One try; rejects when the connection breaks. */
async function send(server: ServerProcess, { method = 'GET', path, json, headers }: Request): Promise<Told> {
  const answer = await fetch(server.url + path, {
    method,
    headers: {
      authorization: `Bearer ${TOKEN}`,
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...(headers as Record<string, string>),
    },
    ...(json === undefined ? {} : { body: JSON.stringify(json) }),
  });
  return { status: answer.status, json: await answer.json() };
}

/** As a client does it: what got no answer is sent again, to the next replica. */
async function sendUntilAnswered(first: number, request: Request): Promise<Told> {
  for (let i = first; ; i += 1) {
    try {
      return await send(at(i), request);
    } catch (error) {
      if (i > first + 5) throw error;
    }
  }
}

async function countRuns(queue: string): Promise<number> {
  const session = await db.session();
  const { rows } = await session.query('select count(*)::integer as n from runs where queue = $1', [queue]);
  await session.end();
  return rows[0].n;
}

const CASES = CREATING.map((creating, i) => [creating.operationId, i, creating] as const);

it.each(CASES)(
  'F093 F095 S4-110 %s: 100 at once with one key make one set, though a replica is killed',
  async (_, i, creating) => {
    const queue = `q-${newId()}`;
    const { request, other, makes } = await creating.prepare((prepared) => send(at(0), prepared), queue);
    const [key, before] = [newId(), await countRuns(queue)];
    const killed = i % NAMES.length;
    let answered = 0;
    const burst = Array.from({ length: 100 }, async (_, n) => {
      const told = await sendUntilAnswered(n, under(key, request));
      answered += 1;
      // Earlier and later in the burst, from one of them to the next.
      if (answered === 1 + 20 * i) at(killed).child.kill('SIGKILL');
      return told;
    });
    const answers = await Promise.all(burst);
    expect(answers.map(({ status }) => status).filter((status) => !creating.status.includes(status))).toEqual([]);
    expect(new Set(answers.map((told) => creating.idsOf(told).join())).size).toBe(1);
    expect(await countRuns(queue)).toBe(before + makes);

    await at(killed).finished;
    const late = await Promise.all([1, 2].map((n) => send(at(killed + n), under(key, request))));
    expect(late.map(({ status }) => status)).toEqual([creating.status[1], creating.status[1]]);
    expect(late.map((told) => creating.idsOf(told))).toEqual(Array(2).fill(answers[0] && creating.idsOf(answers[0])));
    const reused = await send(at(killed + 1), under(key, other));
    expect([reused.status, reused.json.code]).toEqual([422, 'idempotency_key_reused']);
    expect(await countRuns(queue)).toBe(before + makes);
    replicas[killed] = await start(NAMES[killed] ?? '');
  },
);

it('each run that was made has its one entry, and the chain holds', async () => {
  expect((await send(at(0), { path: '/v1/audit/verify' })).json).toMatchObject({ ok: true });
  const session = await db.session();
  const { rows } = await session.query(
    `select count(*)::integer as n from runs r
     where (select count(*) from audit_entries e where e.run_id = r.id and e.action = 'run.submitted') <> 1`,
  );
  expect(rows).toEqual([{ n: 0 }]);
});
