/** `npm run bench` as its user meets it: a document of figures, and nothing left behind however it ends. */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { compiledSource } from '../compiled.js';
import { finishOf, isAlive, supervisorOf, until } from '../server.js';

const ROOT = resolve(import.meta.dirname, '../..');

/** The bench's own folder for temporary files: all that it starts has its working directory in there. */
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'capstan-bench-test-'));
  await chmod(folder, 0o755);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Begins the bench as `npm run bench -- ARGS…` does, with the sources as they are now. */
async function bench(...args: string[]): Promise<ChildProcess> {
  const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  const file = /node (\S+)$/.exec(scripts.bench)?.[1] ?? '';
  const dist = await compiledSource();
  const env = { ...process.env, TMPDIR: folder };
  const child = spawn(process.execPath, [file, '--dist', dist, ...args], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill());
  return child;
}

interface Process {
  readonly pid: number;
  readonly commandLine: string;
}

/** All processes that work in the folder. */
async function processesInFolder(): Promise<Process[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const places = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => '')));
  const inside = pids.filter((_, i) => places[i]?.startsWith(folder));
  return Promise.all(
    inside.map(async (pid) => ({
      pid: Number(pid),
      commandLine: await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''),
    })),
  );
}

/** The supervisor of a replica that the bench started, once there is one. */
async function supervisorInBench(): Promise<number | undefined> {
  const replica = (await processesInFolder()).find(({ commandLine }) => commandLine.includes('main.js'));
  return replica && supervisorOf(replica.pid).catch(() => undefined);
}

it('gives one JSON object of figures on one line, and leaves nothing behind', { timeout: 240_000 }, async () => {
  const { code, stdout, stderr } = await finishOf(
    await bench('--tiny', '--only', 'drain', '--only', 'submit', '--json'),
  );
  expect(code, stderr).toBe(0);
  expect(stdout.split('\n')).toEqual([expect.stringMatching(/^\{.*\}$/), '']);
  const { machine, mode, figures, ratios, otherRatios, failures } = JSON.parse(stdout);
  expect(machine).toMatchObject({ node: process.version, postgres: expect.stringMatching(/^\d+/) });
  expect({ mode, ratios, otherRatios, failures }).toEqual({ mode: 'tiny', ratios: {}, otherRatios: {}, failures: [] });
  for (const figure of figures) {
    expect(figure.value).toBeGreaterThan(0);
    expect(figure).toMatchObject({ what: expect.any(String), unit: expect.any(String), n: expect.any(Number) });
  }
  const keys = figures.map(({ key }: { key?: string }) => key);
  expect(keys).toEqual(expect.arrayContaining(['drain', 'drain2', 'submit', 'submitKeyed', 'batch']));
  expect(stderr).toContain('measuring submit');
  expect(await processesInFolder()).toEqual([]);
  expect(await readdir(folder)).toEqual([]);
});

it.each(['SIGINT', 'SIGTERM'] as const)(
  'is ended by %s with all that it started',
  { timeout: 120_000 },
  async (signal) => {
    const child = await bench('--tiny', '--only', 'command');
    const finished = finishOf(child);
    const supervisor = await until('a replica has its supervisor', supervisorInBench, 60_000);
    child.kill(signal);
    child.kill(signal);
    expect(await finished).toMatchObject({ code: 130, stdout: '' });
    expect(isAlive(supervisor)).toBe(false);
    expect(await processesInFolder()).toEqual([]);
    expect(await readdir(folder)).toEqual([]);
  },
);

it('says what it can measure, and refuses what it can’t', async () => {
  const help = await finishOf(await bench('--help'));
  expect(help).toMatchObject({ code: 0, stderr: '' });
  for (const part of ['latency', 'drain', 'submit', 'idle', 'command', 'output', 'viewers', 'audit', 'recovery']) {
    expect(help.stdout).toContain(part);
  }
  const unknown = await finishOf(await bench('--only', 'speed'));
  expect(unknown).toMatchObject({ code: 2, stdout: '' });
  expect(unknown.stderr).toMatch(/^bench: there is no part speed: it is one of [^\n]*\n$/);
  expect((await finishOf(await bench('--fast'))).code).toBe(2);
  expect((await finishOf(await bench('--quick', '--full'))).code).toBe(2);
});
