/** The database goes away in the middle of writing, twice: what tools wrote is whole when their runs read ended. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Client } from '../client.js';
import { dataFolder, type ServerProcess, startServer, until } from '../server.js';

const RUNS = 40;
const LINES = 500;
const LONG_MS = 120_000;

let folder: Awaited<ReturnType<typeof dataFolder>>;
let server: ServerProcess;
let client: Client;
beforeAll(async () => {
  folder = await dataFolder();
  server = await startServer({ CAPSTAN_DATA_DIR: folder.path, CAPSTAN_LOG_LEVEL: 'error', CAPSTAN_SLOTS: '8' });
  client = await Client.of(server, folder.path);
});
afterAll(async () => {
  server.child.kill('SIGTERM');
  await server.finished;
  await folder.remove();
});

async function databasePid(): Promise<number> {
  const file = await readFile(join(folder.path, 'postgres/postmaster.pid'), 'utf8').catch(() => '');
  return Number(file.split('\n')[0]);
}

async function countEnded(): Promise<number> {
  const answer = await client.ask('?limit=200').catch(() => undefined);
  if (!answer?.ok) return 0;
  const { items } = (await answer.json()) as { items: { endedAt: string | null }[] };
  return items.filter(({ endedAt }) => endedAt !== null).length;
}

it(
  'F073 S4-98 S4-100 a run that reads succeeded has all of its lines, in order, whatever was cut off meanwhile',
  async () => {
    const script = `for i in $(seq 1 ${LINES}); do echo $i; [ $((i % 50)) = 0 ] && sleep 0.02; done`;
    const ids = await Promise.all(Array.from({ length: RUNS }, () => client.submit(script)));
    for (const [done, signal] of [
      [RUNS / 5, 'SIGQUIT'],
      [RUNS / 2, 'SIGKILL'],
    ] as const) {
      await until('some runs have ended', async () => (await countEnded()) >= done, LONG_MS);
      const pid = await databasePid();
      process.kill(pid, signal);
      await until('another database server is up', async () => {
        const next = await databasePid();
        return next > 0 && next !== pid && (await fetch(`${server.url}/readyz`)).ok;
      });
    }
    const expected = Array.from({ length: LINES }, (_, i) => `${i + 1}\n`).join('');
    for (const id of ids) {
      expect(await client.ended(id, LONG_MS)).toMatchObject({ state: 'succeeded' });
      expect(await client.output(id)).toBe(expected);
    }
  },
  LONG_MS,
);
