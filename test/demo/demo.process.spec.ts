/**
 * `npm run demo` as its user meets it: what it claims holds, and nothing is left of it however it ends. The demos run
 * side by side, as they would when two people try it on one machine.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmod, mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, it } from 'vitest';
import { compiledSource } from '../compiled.js';
import { finishOf, isAlive, supervisorOf, until } from '../server.js';

const ROOT = resolve(import.meta.dirname, '../..');
const TAKES_MS = 170_000;

/** A build of the sources as they are now, with the verifier that stands beside a build. */
let dist: string;
beforeAll(async () => {
  dist = await compiledSource();
  await promisify(execFile)(process.execPath, [join(ROOT, 'src/build-verifier.mjs'), dist]);
});

/** A demo that was begun, in a folder for temporary files of its own. */
class Demo {
  private text = '';
  private started: readonly number[] = [];

  private constructor(
    readonly child: ChildProcess,
    readonly finished: ReturnType<typeof finishOf>,
    readonly folder: string,
  ) {
    child.stderr?.on('data', (data) => {
      this.text += data;
    });
  }

  /** As `npm run demo -- --json` does. */
  static async begin(): Promise<Demo> {
    const folder = await mkdtemp(join(tmpdir(), 'capstan-demo-test-'));
    await chmod(folder, 0o755);
    const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    const file = /node (\S+)$/.exec(scripts.demo)?.[1] ?? '';
    const env = { ...process.env, TMPDIR: folder };
    const child = spawn(process.execPath, [file, '--json', '--dist', dist], {
      cwd: ROOT,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return new Demo(child, finishOf(child), folder);
  }

  /** Resolves once it has told that. */
  told(what: RegExp): Promise<unknown> {
    return until(`the demo tells ${what}: ${this.text}`, () => what.test(this.text), TAKES_MS);
  }

  /** Its replicas and their supervisors, once all have been started. */
  async processes(): Promise<readonly number[]> {
    await this.told(/replica r3 +pid \d+/);
    const replicas = [...this.text.matchAll(/replica r\d +pid (\d+)/g)].map(([, pid]) => Number(pid));
    this.started = [...replicas, ...(await Promise.all(replicas.map(supervisorOf)))];
    return this.started;
  }

  /** What works in its folder, and what is in there. */
  async leftovers(): Promise<string[]> {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const places = await Promise.all(pids.map((pid) => readlink(`/proc/${pid}/cwd`).catch(() => '')));
    const working = pids.filter((_, i) => places[i]?.startsWith(this.folder));
    return [...working, ...(await readdir(this.folder))];
  }

  async remove(): Promise<void> {
    this.child.kill();
    await this.finished;
    for (const pid of this.started.filter(isAlive)) process.kill(pid, 'SIGKILL');
    await rm(this.folder, { recursive: true });
  }
}

describe.concurrent('a demo', () => {
  it('shows that each run ends once, whatever dies, and that the record of it verifies', {
    timeout: TAKES_MS,
  }, async ({ expect, onTestFinished }) => {
    const demo = await Demo.begin();
    onTestFinished(() => demo.remove());
    const processes = await demo.processes();
    expect(processes).toHaveLength(6);
    const { code, stdout, stderr } = await demo.finished;
    expect(code, stderr).toBe(0);
    const { ok, fates, claims, commands } = JSON.parse(stdout);
    expect(ok).toBe(true);
    expect(claims.length).toBeGreaterThanOrEqual(9);
    expect(claims.filter(({ holds }: { holds: boolean }) => !holds)).toEqual([]);
    expect(commands.map(({ code }: { code: number }) => code)).toEqual(commands.map(() => 0));
    const interrupted = fates.filter(({ state }: { state: string }) => state === 'interrupted');
    expect(new Set(interrupted.map(({ ranOn }: { ranOn: string }) => ranOn))).toEqual(new Set(['r2', 'r3']));
    expect(Math.max(...fates.map((fate: { processes: number }) => fate.processes))).toBe(1);
    const [, killed] = /\$ kill -9 (\d+)/.exec(stderr) ?? [];
    const [, stopped] = /\$ kill -STOP (\d+)/.exec(stderr) ?? [];
    expect(processes).toEqual(expect.arrayContaining([Number(killed), Number(stopped)]));
    expect(stderr).not.toContain('\u001b');
    expect(processes.filter(isAlive)).toEqual([]);
    expect(await demo.leftovers()).toEqual([]);
  });

  it('that is interrupted with one replica dead and one standing still leaves nothing behind', {
    timeout: TAKES_MS,
  }, async ({ expect, onTestFinished }) => {
    const demo = await Demo.begin();
    onTestFinished(() => demo.remove());
    const processes = await demo.processes();
    await demo.told(/kill -STOP/);
    demo.child.kill('SIGINT');
    demo.child.kill('SIGINT');
    expect(await demo.finished).toMatchObject({ code: 130, stdout: '' });
    expect(processes.filter(isAlive)).toEqual([]);
    expect(await demo.leftovers()).toEqual([]);
  });

  it('that is killed itself leaves nothing behind for long', {
    timeout: TAKES_MS,
  }, async ({ expect, onTestFinished }) => {
    const demo = await Demo.begin();
    onTestFinished(() => demo.remove());
    const processes = await demo.processes();
    demo.child.kill('SIGKILL');
    expect(await demo.finished).toMatchObject({ signal: 'SIGKILL' });
    await until('nothing is left', async () => (await demo.leftovers()).length === 0 && !processes.some(isAlive));
    expect(processes.filter(isAlive)).toEqual([]);
  });
});

it('says what it does, and refuses what it doesn’t know', async ({ expect }) => {
  const run = promisify(execFile);
  const file = join(import.meta.dirname, 'demo.mjs');
  const { stdout } = await run(process.execPath, [file, '--help']);
  expect(stdout).toMatch(/^Usage: npm run demo -- \[options\]\n/);
  await expect(run(process.execPath, [file, '--fast'])).rejects.toMatchObject({ code: 2, stdout: '' });
});
