/**
 * The api suite, spoken to three replicas and a worker through a real balancer: the same files that otherwise speak to
 * an application in the test's process. Each request goes to the next replica; they share nothing but the database.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { finishOf } from '../server.js';
import { type Balancer, type BalancerKind, type BalancerOptions, startBalancer } from './balancer.fixture.js';
import { isFull } from './scale.js';
import { Stage, TOKEN } from './stage.fixture.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

interface Variant {
  readonly title: string;
  readonly kind: BalancerKind;
  readonly options: BalancerOptions;
}

const MOST_APART: readonly Variant[] = [
  {
    title: 'nginx that keeps connections and sends a POST again',
    kind: 'nginx',
    options: { keepAlive: true, repeatsPosts: true },
  },
  { title: 'HAProxy without kept connections', kind: 'haproxy', options: { keepAlive: false } },
];

const IN_BETWEEN: readonly Variant[] = [
  { title: 'nginx that keeps connections', kind: 'nginx', options: { keepAlive: true } },
  { title: 'nginx without kept connections', kind: 'nginx', options: { keepAlive: false } },
  { title: 'HAProxy that keeps connections', kind: 'haproxy', options: { keepAlive: true } },
];

let stage: Stage;
let balancer: Balancer | undefined;
let suite: ChildProcess | undefined;

// The suite says fixed keys, which a database takes once.
beforeEach(async () => {
  stage = await Stage.open(['r1', 'r2', 'r3']);
  await stage.add('w1', { kind: 'worker' });
});
afterEach(async () => {
  suite?.kill('SIGTERM');
  await balancer?.close();
  await stage?.close();
});

/** The files of the suite that speak to an installation; the others look into an application of their own. */
async function specs(): Promise<string[]> {
  const names = await readdir(join(ROOT, 'test'), { recursive: true });
  const all = names.filter((name) => name.endsWith('.api.spec.ts')).map((name) => join('test', name));
  const texts = await Promise.all(all.map((file) => readFile(join(ROOT, file), 'utf8')));
  return all.filter((_, i) => texts[i]?.includes('await openSurface()'));
}

/** Runs them in a child with an environment of its own, so that nothing of this run leads it. Resolves with what it said. */
async function run(files: readonly string[], env: Readonly<Record<string, string>>): Promise<string> {
  const { PATH = '', HOME = '/tmp' } = process.env;
  const vitest = join(ROOT, 'node_modules', 'vitest', 'vitest.mjs');
  // One process for many files: what they import is most of their time.
  suite = spawn(process.execPath, [vitest, 'run', '--project', 'integration', '--no-isolate', ...files], {
    cwd: ROOT,
    env: { PATH, HOME, NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { stdout, stderr } = await finishOf(suite);
  return `${stderr}${stdout}`.trimEnd();
}

it.each([...MOST_APART, ...(isFull ? IN_BETWEEN : [])])(
  'S4-50 S3-08 S3-20 the api suite passes through $title',
  { timeout: 400_000 },
  async ({ kind, options }) => {
    const ports = ['r1', 'r2', 'r3'].map((name) => stage.get(name).port);
    balancer = await startBalancer(kind, ports, options);
    const files = await specs();
    const said = await run(files, {
      CAPSTAN_TEST_URL: balancer.url,
      CAPSTAN_TOKEN: TOKEN,
      DATABASE_URL: stage.db.url,
    });
    expect(said).toMatch(new RegExp(`Test Files +${files.length} passed`));
    expect(said).toMatch(/\n[1-9]\d\d passed, 0 failed$/);
  },
);
