/** A cancel as a caller sees it: through real replicas on one database, down to the last process of a real tool. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDatabase, type TestDatabase } from '../database.js';
import { dataFolder, isAlive, type ServerProcess, startServer, until } from '../server.js';

const TOKEN = 'a-token-of-the-operator-0123456789';

interface RunJson {
  readonly id: string;
  readonly state: string;
  readonly end: { code: string; kind?: string; detail: string; exitCode: number | null; signal: string | null } | null;
}

let db: TestDatabase;
let folder: Awaited<ReturnType<typeof dataFolder>>;
/** A executes what is queued in `default`, one at a time what is queued in `narrow`; B executes nothing. */
let a: ServerProcess;
let narrow: ServerProcess;
let b: ServerProcess;

beforeAll(async () => {
  db = await createDatabase();
  folder = await dataFolder();
  const env = { DATABASE_URL: db.url, CAPSTAN_BOOTSTRAP_TOKEN: TOKEN };
  a = await startServer({ ...env, CAPSTAN_NAME: 'a' });
  [b, narrow] = await Promise.all([
    startServer({ ...env, CAPSTAN_NAME: 'b', CAPSTAN_SLOTS: '0' }),
    startServer({ ...env, CAPSTAN_NAME: 'narrow', CAPSTAN_SLOTS: '1', CAPSTAN_QUEUES: 'narrow' }),
  ]);
});

afterAll(async () => {
  for (const { child } of [a, b, narrow]) child.kill('SIGTERM');
  await Promise.all([a, b, narrow].map(({ finished }) => finished));
  await db.drop();
  await folder.remove();
});

async function call(server: ServerProcess, method: string, path: string, body?: unknown): Promise<Response> {
  const headers = { authorization: `Bearer ${TOKEN}`, ...(body ? { 'content-type': 'application/json' } : {}) };
  return fetch(`${server.url}/v1/runs${path}`, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
}

async function submit(script: string, rest: object = {}): Promise<string> {
  const answer = await call(b, 'POST', '', { kind: 'command', spec: { argv: ['bash', '-c', script] }, ...rest });
  expect(answer.status).toBe(201);
  return ((await answer.json()) as RunJson).id;
}

async function show(id: string): Promise<RunJson> {
  return (await (await call(b, 'GET', `/${id}`)).json()) as RunJson;
}

async function ended(id: string) {
  return until(`${id} ends`, async () => {
    const { end, ...run } = await show(id);
    return end === null ? undefined : { ...run, end };
  });
}

const outputOf = async (id: string) => (await call(b, 'GET', `/${id}/output`)).text();
const scratch = (name: string) => join(dirname(folder.path), name);
const linesOf = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []);

describe('a cancel', () => {
  it('S4-95 at another replica than the one that holds the run reaches the tool within seconds', async () => {
    const file = scratch('term');
    const id = await submit(`trap 'date +%s%3N > ${file}; exit 9' TERM; echo up; while :; do sleep 0.02; done`);
    await until('the tool runs', async () => (await outputOf(id)).includes('up'));
    const askedAtMs = Date.now();
    expect((await call(b, 'POST', `/${id}/cancel`)).status).toBe(202);
    const run = await ended(id);
    const tookMs = Number(linesOf(file)[0]) - askedAtMs;
    expect(tookMs, 'from the request to TERM').toBeLessThan(6_000);
    expect(run).toMatchObject({ state: 'canceled', end: { kind: 'requested', exitCode: 9, signal: null } });
  });

  it('S4-93 F070 leaves a tool its time to clean up: what it says then is kept, and how it exited', async () => {
    const id = await submit(`trap 'echo cleanup; sleep 0.4; echo bye; exit 0' TERM; echo up; sleep 600 & wait`);
    await until('the tool runs', async () => (await outputOf(id)).includes('up'));
    await call(b, 'POST', `/${id}/cancel`);
    expect(await ended(id)).toMatchObject({
      state: 'canceled',
      end: {
        code: 'canceled',
        kind: 'requested',
        exitCode: 0,
        signal: null,
        detail: expect.not.stringContaining('killed'),
      },
    });
    expect(await outputOf(id)).toBe('up\ncleanup\nbye\n');
  });

  it('F070 of a tool that ignores TERM kills it when its grace is over, and says so', async () => {
    const id = await submit(`trap '' TERM; echo up; while :; do sleep 0.02; done`);
    await until('the tool runs', async () => (await outputOf(id)).includes('up'));
    await call(b, 'POST', `/${id}/cancel`);
    expect(await ended(id)).toMatchObject({
      state: 'canceled',
      end: { exitCode: null, signal: 'SIGKILL', detail: expect.stringMatching(/^canceled.*; killed after 1s grace$/) },
    });
  });

  it('F064 S4-92 leaves nothing of a tool, and says that what it had started had to be killed', async () => {
    const [ticks, pids] = [scratch('ticks'), scratch('pids')];
    const ticker = `python3 -c 'import time\nwhile True:\n open("${ticks}", "a").write("x\\n"); time.sleep(0.02)' &`;
    const deaf = `sh -c 'trap "" TERM INT; echo $$ >> ${pids}; sleep 998; sleep 998'; true`;
    const id = await submit(`${ticker} echo $! >> ${pids}; ${deaf}`);
    await until('all of them run', () => linesOf(pids).length === 2 && linesOf(ticks).length > 2);
    await call(b, 'POST', `/${id}/cancel`);
    const run = await ended(id);
    expect(linesOf(pids).map(Number).filter(isAlive), 'alive after the run ended').toEqual([]);
    expect(run.end.detail).toMatch(/; what it had started was killed after 1s grace$/);
    const grown = linesOf(ticks).length;
    await show(id);
    expect(linesOf(ticks).length).toBe(grown);
  });

  it('F067 never hits the next run of a worker with one slot, however often it is sent', async () => {
    const go = (index: number) => scratch(`go-${index}`);
    // Each waits for its file, so that it is known to run when it is canceled.
    const submitted = Array.from({ length: 20 }, (_, i) =>
      submit(`until [ -e ${go(i)} ]; do sleep 0.02; done`, { queue: 'narrow' }),
    );
    const ids = await Promise.all(submitted);
    const seen = new Set<string>();
    const canceled = new Set<string>();
    const cancelOften = async (id: string) => {
      const answers = await Promise.all(Array.from({ length: 5 }, () => call(b, 'POST', `/${id}/cancel`)));
      expect(answers.every(({ status }) => status === 200 || status === 202)).toBe(true);
      const receipts = new Set(answers.map(({ headers }) => headers.get('audit-receipt')));
      expect([...receipts], 'one request, one receipt').toEqual([expect.any(String)]);
    };
    for (let turn = 0; turn < ids.length; turn += 1) {
      const { id } = await until('the next one runs', async () => {
        const runs = await Promise.all(ids.filter((id) => !seen.has(id)).map(show));
        return runs.find(({ state }) => state === 'running');
      });
      seen.add(id);
      // While this one runs, those before it are canceled once more.
      await Promise.all([...canceled].slice(-2).map(cancelOften));
      if (turn % 3 === 2) {
        writeFileSync(go(ids.indexOf(id)), '');
        expect(await ended(id)).toMatchObject({ state: 'succeeded' });
      } else {
        canceled.add(id);
        await cancelOften(id);
      }
    }
    for (const id of ids) {
      expect((await ended(id)).state).toBe(canceled.has(id) ? 'canceled' : 'succeeded');
    }
  });
});
