/** The image's entry point as process 1 of a PID namespace, as a container runs it. No engine for containers is needed. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ChaosDatabase } from '../chaos/database.fixture.js';
import { type ServerProcess, startServer, until } from '../server.js';

const ROOT = resolve(import.meta.dirname, '../..');
const TOKEN = 'a-token-of-the-operator-0123456789';
const RUNS = 40;

let db: ChaosDatabase;
let server: ServerProcess;
let first: number;

beforeAll(async () => {
  db = await ChaosDatabase.start();
  const words = await entryPoint();
  expect(words.slice(-2)).toEqual(['node', '/app/dist/main.js']);
  const prefix = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child', ...words.slice(0, -2)];
  server = await startServer({ DATABASE_URL: db.url, CAPSTAN_BOOTSTRAP_TOKEN: TOKEN }, prefix);
  const [child] = await childrenOf(server.child.pid ?? 0);
  first = child ?? 0;
});
afterAll(async () => {
  process.kill(first, 'SIGTERM');
  await server.finished;
  await db.close();
});

async function entryPoint(): Promise<string[]> {
  const [, words = ''] = /^ENTRYPOINT (\[.*\])$/m.exec(await readFile(resolve(ROOT, 'Dockerfile'), 'utf8')) ?? [];
  return JSON.parse(words) as string[];
}

async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text.split(' ').filter(Boolean).map(Number);
}

/** All processes of the container, by the state that `/proc` says. */
async function states(): Promise<string[]> {
  const found: string[] = [];
  const waiting = [first];
  for (let pid = waiting.pop(); pid !== undefined; pid = waiting.pop()) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    found.push(stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3));
    waiting.push(...(await childrenOf(pid).catch(() => [])));
  }
  return found;
}

it('F032 what tools leave behind is collected: no zombie stays, and no process', async () => {
  const before = (await states()).length;
  const contents = ['(sleep 0.3 &) ; exit 0', 'setsid sleep 0.3 & exit 0'];
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
  for (let index = 0; index < RUNS; index += 1) {
    const body = JSON.stringify({ kind: 'script', spec: { interpreter: 'bash', content: contents[index % 2] } });
    expect((await fetch(`${server.url}/v1/runs`, { method: 'POST', headers, body })).status).toBe(201);
  }
  await until('all have ended', async () => {
    const [row] = await db.query<{ count: string }>(`select count(*) from runs where state = 'succeeded'`);
    return Number(row?.count) === RUNS;
  });
  await until('nothing is left', async () => (await states()).length <= before);
  expect((await states()).filter((state) => state === 'Z')).toEqual([]);
});

it('has in it what the program looks for beside itself', async () => {
  const dockerfile = await readFile(resolve(ROOT, 'Dockerfile'), 'utf8');
  const copied = [...dockerfile.matchAll(/^COPY --from=build (.*) \S+$/gm)].flatMap(([, files = '']) =>
    files.split(' '),
  );
  expect(copied).toEqual(
    expect.arrayContaining([
      '/app/package.json',
      '/app/node_modules',
      '/app/migrations',
      '/app/src/openapi.json',
      '/app/dist',
    ]),
  );
  const kept = (await readFile(resolve(ROOT, '.dockerignore'), 'utf8')).split('\n');
  expect(kept).toContain('*');
  for (const path of copied.filter((each) => !/node_modules|dist/.test(each))) {
    expect(kept).toContain(`!${path.split('/')[2]}`);
  }
});

it("has the chart's user, by number", async () => {
  const dockerfile = await readFile(resolve(ROOT, 'Dockerfile'), 'utf8');
  const [, user, group] = /^USER (\d+):(\d+)$/m.exec(dockerfile) ?? [];
  const pod = await readFile(resolve(ROOT, 'helm/capstan/templates/_pod.tpl'), 'utf8');
  expect(pod).toContain(`runAsUser: ${user}\n`);
  expect(pod).toContain(`fsGroup: ${group}\n`);
});
