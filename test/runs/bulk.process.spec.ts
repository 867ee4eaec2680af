/** A cancel by filter reaches tools that run, and what waits behind them. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Client } from '../client.js';
import { dataFolder, isAlive, type ServerProcess, startServer, until } from '../server.js';

let folder: Awaited<ReturnType<typeof dataFolder>>;
let server: ServerProcess;
let client: Client;
beforeAll(async () => {
  folder = await dataFolder();
  server = await startServer({ CAPSTAN_DATA_DIR: folder.path, CAPSTAN_SLOTS: '2' });
  client = await Client.of(server, folder.path);
});
afterAll(async () => {
  server.child.kill('SIGTERM');
  await server.finished;
  await folder.remove();
});

it('F161 by filter the tools of what runs are stopped, and what waits never starts', async () => {
  const ids = await Promise.all(Array.from({ length: 5 }, () => client.submit('echo $$; exec sleep 300')));
  const pids = await until('two tools run', async () => {
    const outputs = await Promise.all(ids.map((id) => client.output(id)));
    const said = outputs.map(Number).filter((pid) => pid > 0);
    return said.length === 2 ? said : undefined;
  });
  const answer = await client.ask('/cancel', {
    method: 'POST',
    body: JSON.stringify({ filter: { kind: 'command', state: ['pending', 'claimed', 'running'] } }),
  });
  expect([answer.status, await answer.json()]).toEqual([
    200,
    { dryRun: false, matched: 5, canceled: 3, stopping: 2, next: null },
  ]);
  for (const id of ids) expect(await client.ended(id, 20_000)).toMatchObject({ state: 'canceled' });
  await until('no tool is left', () => !pids.some(isAlive));
  const outputs = await Promise.all(ids.map((id) => client.output(id)));
  expect(outputs.filter((text) => text !== '')).toHaveLength(2);
});
