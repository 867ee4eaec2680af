/** A tool that reports rubbish without end, through the whole program: it is told so, and nobody else waits for it. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Client } from '../client.js';
import { dataFolder, type ServerProcess, startServer, until } from '../server.js';

interface EventJson {
  readonly type: string;
  readonly data: { readonly line?: number; readonly reason?: string };
}

/** Long before the last of ten million lines was looked at one by one. */
const PROMPT_MS = 30_000;

let folder: Awaited<ReturnType<typeof dataFolder>>;
let server: ServerProcess;
let client: Client;
beforeAll(async () => {
  folder = await dataFolder();
  server = await startServer({ CAPSTAN_DATA_DIR: folder.path, CAPSTAN_LOG_LEVEL: 'error' });
  client = await Client.of(server, folder.path);
});
afterAll(async () => {
  server.child.kill('SIGTERM');
  await server.finished;
  await folder.remove();
});

async function refusalsOf(id: string): Promise<EventJson['data'][]> {
  const answer = await client.ask(`/${id}/events?limit=200`);
  const { items } = (await answer.json()) as { items: readonly EventJson[] };
  return items.filter(({ type }) => type === 'run.report_refused').map(({ data }) => data);
}

it.each([
  [
    'ten million lines that are no JSON',
    'yes x | head -c 20000000',
    10_001,
    'more than 10000 events and refused lines',
  ],
  ['ten million lines that begin as JSON', `yes '{' | head -c 20000000`, 10_001, 'more than 10000 events and refused'],
  ['200 MB of blank lines', 'yes "" | head -c 200000000', 100_001, 'more than 100000 lines'],
])(
  '%s are read as far as they are taken; another run ends and this one is canceled meanwhile',
  async (_, flood, line, reason) => {
    const id = await client.submit(`${flood} >> "$CAPSTAN_EVENTS_FILE"; sleep 600`);
    await until('the bound is reached', async () => (await refusalsOf(id)).some((one) => one.line === line), PROMPT_MS);
    const other = await client.ended(await client.submit('true'), PROMPT_MS);
    expect(other.state).toBe('succeeded');
    expect((await client.ask(`/${id}/cancel`, { method: 'POST' })).ok).toBe(true);
    expect((await client.ended(id, PROMPT_MS)).state).toBe('canceled');
    const refusals = await refusalsOf(id);
    expect(refusals.at(-1)).toMatchObject({ line, reason: expect.stringContaining(reason) });
    expect(
      refusals.filter((one) => one.line === undefined || one.line > line),
      'events behind the last',
    ).toEqual([]);
  },
  3 * PROMPT_MS,
);
