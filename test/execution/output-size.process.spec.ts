/** Output of any size through the whole program: nothing is lost under the limit, and memory does not grow with it. */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Client, type RunJson } from '../client.js';
import { dataFolder, type ServerProcess, startServer } from '../server.js';

const MIB = 1024 * 1024;
/** Hundreds of MB go through one pipe, one chain of credit and one database. */
const LONG_MS = 240_000;

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

async function memoryOf(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) * 1024;
}

/** Runs the command to its end; the most that the replica's memory grew over what it was before, in bytes. */
async function growthDuring(command: string): Promise<{ readonly run: RunJson; readonly growth: number }> {
  const before = await memoryOf(server.child.pid);
  let most = before;
  const sampling = setInterval(() => {
    void memoryOf(server.child.pid).then((bytes) => {
      most = Math.max(most, bytes);
    });
  }, 100);
  const run = await client.ended(await client.submit(command), LONG_MS);
  clearInterval(sampling);
  return { run, growth: most - before };
}

async function keptBytes(id: string): Promise<number> {
  return Number((await client.ask(`/${id}/output`, { method: 'HEAD' })).headers.get('content-length'));
}

/** Of the lines `1` to `n`. */
function bytesOfNumbers(n: number): number {
  let bytes = n;
  for (let least = 1; least <= n; least *= 10) bytes += n - least + 1;
  return bytes;
}

describe('200 MB of output', () => {
  it.each([
    ['lines', 'yes | head -c 200000000'],
    ['one line without an end', `head -c 200000000 /dev/zero | tr '\\0' x`],
  ])(
    'F074 in %s leave the memory of the replica within 64 MiB of what it was',
    async (_, command) => {
      const { run, growth } = await growthDuring(command);
      expect(run).toMatchObject({ state: 'succeeded', end: { exitCode: 0 } });
      expect(growth).toBeLessThan(64 * MIB);
      const kept = await keptBytes(run.id);
      expect(kept).toBeGreaterThan(59 * MIB);
      expect(kept).toBeLessThanOrEqual(64 * MIB + 200);
    },
    LONG_MS,
  );

  it(
    'F071 of numbered lines: every number is there, or in the range that one line names; the exit code is right',
    async () => {
      const run = await client.ended(await client.submit('seq 1 12000000; exit 3'), LONG_MS);
      expect(run).toMatchObject({ state: 'failed', end: { exitCode: 3 } });
      const text = await client.output(run.id);
      const [head = '', line = '', tail = ''] = text.split(/\n(\[capstan: bytes [^\n]+\])\n/);
      const [, from = 0, last = 0] = /bytes (\d+)-(\d+) of the output were dropped/.exec(line)?.map(Number) ?? [];
      expect(head.length).toBe(from);
      expect(from).toBeLessThanOrEqual(32 * MIB);
      // The numbers beside the gap may be cut.
      const first = head.split('\n').slice(0, -1);
      expect(first.findIndex((number, i) => number !== String(i + 1))).toBe(-1);
      const rest = tail.split('\n').slice(1, -1);
      const before = 12_000_000 - rest.length;
      expect(rest.findIndex((number, i) => number !== String(before + 1 + i))).toBe(-1);
      expect(last + 1 + tail.length, 'what is named missing and what is there make up the whole').toBe(
        bytesOfNumbers(12_000_000),
      );
    },
    LONG_MS,
  );
});

it(
  'F109 5 MB, fifty times: every byte of every run is there',
  async () => {
    const ids = await Promise.all(Array.from({ length: 50 }, () => client.submit('yes | head -c 5000000; exit 0')));
    for (const id of ids) {
      expect((await client.ended(id, LONG_MS)).state).toBe('succeeded');
      expect(await keptBytes(id)).toBe(5_000_000);
    }
  },
  LONG_MS,
);
