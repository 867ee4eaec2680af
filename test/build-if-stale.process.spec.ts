/** `npm start` decides by itself whether to build: never on a fit dist/, always on an unfit one, never twice at once. */
import { type ChildProcess, spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, readlink, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

const SCRIPT = resolve(import.meta.dirname, '../src/build-if-stale.mjs');

/** Notes when it begins and ends, waits while a file `gate` exists, and fails when there is a source named `bad.ts`. */
const FAKE_BUILD = `
import * as fs from 'node:fs';
fs.rmSync('dist', { recursive: true, force: true });
fs.appendFileSync('builds.log', 'begin ');
while (fs.existsSync('gate')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
if (fs.existsSync('src/bad.ts')) { console.error('bad.ts: expression expected'); process.exit(2); }
fs.mkdirSync('dist', { recursive: true });
fs.writeFileSync('dist/main.js', '');
fs.appendFileSync('builds.log', 'end ');
`;

let folder = '';
const started: ChildProcess[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'capstan-build-'));
  await mkdir(join(folder, 'node_modules/@nestjs/cli'), { recursive: true });
  await mkdir(join(folder, 'migrations'));
  await mkdir(join(folder, 'src/inner'), { recursive: true });
  await cp(SCRIPT, join(folder, 'src/build-if-stale.mjs'));
  await put('package.json', JSON.stringify({ type: 'module', scripts: { build: 'node fake-build.js' } }));
  await put('fake-build.js', FAKE_BUILD);
  await put('src/main.ts', '1');
});

afterEach(async () => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
  await rm(join(folder, 'gate'), { force: true });
  await rm(folder, { recursive: true, maxRetries: 5 });
});

const put = (name: string, text: string) => writeFile(join(folder, name), text);
const builds = async () => (await readFile(join(folder, 'builds.log'), 'utf8').catch(() => '')).trim();
const lock = () => readlink(join(folder, 'dist.lock')).catch(() => 'none');

interface Started {
  readonly child: ChildProcess;
  /** What it has printed so far, on both streams. */
  said(): string;
  readonly ended: Promise<{ code: number | null; said: string }>;
}

function start(): Started {
  const child = spawn(process.execPath, [join(folder, 'src/build-if-stale.mjs')], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  started.push(child);
  let text = '';
  const keep = (chunk: unknown) => {
    text += String(chunk);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  return {
    child,
    said: () => text,
    ended: new Promise((done) => child.once('close', (code) => done({ code, said: text }))),
  };
}

it('builds what was never built, and then says nothing and builds nothing', async () => {
  expect(await start().ended).toMatchObject({ code: 0, said: expect.stringContaining('building') });
  expect(await start().ended).toEqual({ code: 0, said: '' });
  expect(await builds()).toBe('begin end');
  expect(await lock()).toBe('none');
});

it('builds again after each change that matters, once', async () => {
  await put('src/old.ts', '');
  await put('migrations/0001.sql', 'select 1');
  await start().ended;
  const changes: Record<string, () => Promise<void>> = {
    'an edited source of the same length': () => put('src/main.ts', '2'),
    'a new source': () => put('src/inner/new.ts', ''),
    'a removed source': () => rm(join(folder, 'src/old.ts')),
    'an edited migration': () => put('migrations/0001.sql', 'select 2'),
    'another compiler setting': () => put('tsconfig.build.json', '{}'),
    'a lost dist/main.js': () => rm(join(folder, 'dist/main.js')),
    'a build whose end nobody noted': () => rm(join(folder, 'dist/.built')),
  };
  for (const [what, change] of Object.entries(changes)) {
    await rm(join(folder, 'builds.log'));
    await change();
    await start().ended;
    expect(await start().ended, what).toEqual({ code: 0, said: '' });
    expect(await builds(), what).toBe('begin end');
  }
});

it('takes no notice of a clock: a source from the future is built once', async () => {
  await utimes(join(folder, 'src/main.ts'), new Date('2040-01-01'), new Date('2040-01-01'));
  await start().ended;
  expect(await start().ended).toEqual({ code: 0, said: '' });
});

it('ends with the exit code and the words of a failed build, and tries again at the next start', async () => {
  await put('src/bad.ts', '');
  const failed = await start().ended;
  expect(failed.code).toBe(2);
  expect(failed.said).toContain('bad.ts: expression expected');
  await rm(join(folder, 'src/bad.ts'));
  expect((await start().ended).code).toBe(0);
});

it('builds once for two that start together: the other waits and says so', async () => {
  await put('gate', '');
  const [a, b] = [start(), start()];
  await vi.waitFor(() => expect(a.said() + b.said()).toContain('waiting for it'), 10_000);
  await vi.waitFor(async () => expect(await builds()).toBe('begin'), 10_000);
  await rm(join(folder, 'gate'));
  const ends = await Promise.all([a.ended, b.ended]);
  expect(ends.map(({ code }) => code)).toEqual([0, 0]);
  expect(await builds()).toBe('begin end');
});

it('waits for the build of a starter that was killed, and builds anew after it, never beside it', async () => {
  await put('gate', '');
  const killed = start();
  await vi.waitFor(async () => expect(await builds()).toBe('begin'), 10_000);
  await vi.waitFor(async () => expect(await lock()).toMatch(/^\d+\+\d+$/), 10_000);
  killed.child.kill('SIGKILL');
  await new Promise((done) => killed.child.once('exit', done));
  const next = start();
  await vi.waitFor(() => expect(next.said()).toContain('waiting for it'), 10_000);
  expect(await builds()).toBe('begin');
  await rm(join(folder, 'gate'));
  expect((await next.ended).code).toBe(0);
  expect(await builds()).toBe('begin end begin end');
});

it('takes over the lock of a dead process, one of four that see it', async () => {
  const dead = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
  await new Promise((done) => dead.once('exit', done));
  await symlink(String(dead.pid), join(folder, 'dist.lock'));
  const ends = await Promise.all([start(), start(), start(), start()].map(({ ended }) => ended));
  expect(ends.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
  expect(await builds()).toBe('begin end');
  expect(await lock()).toBe('none');
});

it('says in one line what to do when nothing is installed', async () => {
  await rm(join(folder, 'node_modules'), { recursive: true });
  expect(await start().ended).toEqual({ code: 1, said: 'capstan: node_modules is missing: run npm ci first\n' });
});
