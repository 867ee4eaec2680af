/** The only replica is killed and started again at once under its own name: two lives, which share nothing. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Client, type RunJson } from '../client.js';
import { capstan, dataFolder, type ServerProcess, startServer, until } from '../server.js';

interface WorkerJson {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly running: number;
}

let folder: Awaited<ReturnType<typeof dataFolder>>;
let server: ServerProcess;
const start = () => startServer({ CAPSTAN_DATA_DIR: folder.path, CAPSTAN_NAME: 'ctl-0' });

beforeAll(async () => {
  folder = await dataFolder();
  server = await start();
});
afterAll(async () => {
  server.child.kill('SIGTERM');
  await server.finished;
  await folder.remove();
});

/** Whatever the path below `/v1`. */
async function look<T>(path: string): Promise<T> {
  const token = (await readFile(join(folder.path, 'admin-token'), 'utf8')).trim();
  const answer = await fetch(`${server.url}/v1${path}`, { headers: { authorization: `Bearer ${token}` } });
  expect(answer.status).toBe(200);
  return (await answer.json()) as T;
}

const workers = async () => (await look<{ items: WorkerJson[] }>('/workers')).items;
const show = (id: string) => look<RunJson & { worker: { id: string } | null }>(`/runs/${id}`);

it('S0-31 F005 F033 the new life has an id of its own, takes over nothing, and a cancel at once is answered and carried out', async () => {
  const before = await Client.of(server, folder.path);
  const [canceled, left] = [await before.submit('sleep 300'), await before.submit('sleep 300')];
  for (const id of [canceled, left]) {
    await until(`${id} runs`, async () => (await show(id)).state === 'running');
  }
  const [old] = await workers();
  server.child.kill('SIGKILL');
  await server.finished;
  server = await start();

  const client = await Client.of(server, folder.path);
  const cancel = await client.ask(`/${canceled}/cancel`, { method: 'POST' });
  expect(cancel.status).toBe(202);
  const [fresh, former] = await workers();
  expect([fresh?.name, former?.name]).toEqual(['ctl-0', 'ctl-0']);
  expect(former?.id).toBe(old?.id);
  expect(fresh?.id).not.toBe(old?.id);

  await until(
    'both runs have ended',
    async () => {
      const runs = await Promise.all([canceled, left].map((id) => show(id)));
      for (const run of runs) expect(run.worker?.id).toBe(old?.id);
      const now = await workers();
      expect(now.find(({ id }) => id === fresh?.id)).toMatchObject({ state: 'live', running: 0 });
      return runs.every(({ endedAt }) => endedAt !== null);
    },
    // The lease of 15 s, a look of the janitor, and room.
    45_000,
  );
  expect(await show(left)).toMatchObject({ state: 'interrupted', end: { code: 'worker_lost' } });
  expect(['canceled', 'interrupted']).toContain((await show(canceled)).state);
  expect((await workers()).map(({ id, state }) => [id, state])).toEqual([
    [fresh?.id, 'live'],
    [old?.id, 'lost'],
  ]);
  // Now the name stands for the one that lives.
  expect(await capstan(server, folder.path, ['workers', 'drain', 'ctl-0'])).toMatchObject({
    code: 0,
    stdout: `ctl-0 (${fresh?.id}) draining: nothing runs there\n`,
  });
}, 90_000);
