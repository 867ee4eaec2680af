/** The last line of a run is what a machine reads: each way in which a run can be less than good has to show in it. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '..');
const folders: string[] = [];

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

/** Runs vitest in a folder of its own that holds these files. */
async function run(files: Record<string, string>, config = ''): Promise<{ lastLine: string; code: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'capstan-reporter-'));
  folders.push(folder);
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  await writeFile(
    join(folder, 'vitest.config.ts'),
    `import { LastLineReporter } from '${join(ROOT, 'test/reporter.ts')}';
     export default { test: { include: ['*.spec.ts'], reporters: ['default', new LastLineReporter()], ${config} } };`,
  );
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(folder, name), `import { beforeAll, describe, expect, it } from 'vitest';\n${text}`);
  }
  return new Promise((done) => {
    const command = [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', '--root', folder];
    const child = execFile(process.execPath, command, { cwd: folder }, (_error, stdout) => {
      done({ lastLine: stdout.trimEnd().split('\n').at(-1) ?? '', code: child.exitCode ?? -1 });
    });
  });
}

const GOOD = `it('a', () => {}); describe('in', () => { it('b', () => {}); });`;

it('counts passed tests over all files, and nothing failed', async () => {
  expect(await run({ 'a.spec.ts': GOOD, 'b.spec.ts': GOOD })).toEqual({ lastLine: '4 passed, 0 failed', code: 0 });
});

it('counts failed tests', async () => {
  const failing = `it('c', () => { expect(1).toBe(2); }); it('d', () => { throw new Error('x'); });`;
  expect(await run({ 'a.spec.ts': GOOD, 'b.spec.ts': failing })).toEqual({ lastLine: '2 passed, 2 failed', code: 1 });
});

it('counts each file that cannot be loaded as a failure', async () => {
  const broken = `import './nowhere.js'; it('c', () => {});`;
  const files = { 'a.spec.ts': GOOD, 'b.spec.ts': broken, 'c.spec.ts': broken };
  expect(await run(files)).toEqual({ lastLine: '2 passed, 2 failed', code: 1 });
});

it('counts a file without any test as a failure', async () => {
  expect(await run({ 'a.spec.ts': GOOD, 'b.spec.ts': '' })).toEqual({ lastLine: '2 passed, 1 failed', code: 1 });
});

it('counts a failed beforeAll as a failure though none of its tests ran', async () => {
  const hook = `describe('in', () => { beforeAll(() => { throw new Error('x'); }); it('c', () => {}); });`;
  const { lastLine, code } = await run({ 'a.spec.ts': GOOD, 'b.spec.ts': hook });
  expect(lastLine).toMatch(/^2 passed, 1 failed/);
  expect(code).toBe(1);
});

it('counts an error outside any test as a failure of its own', async () => {
  const late = `it('c', () => { void Promise.reject(new Error('nobody waits')); }); it('d', () => expect(1).toBe(2));`;
  expect(await run({ 'a.spec.ts': late })).toEqual({ lastLine: '1 passed, 2 failed', code: 1 });
});

it('counts as failures the tests that a dying worker left without a result', async () => {
  const death = `it('c', () => { process.kill(process.pid, 'SIGKILL'); }); it('d', () => {});`;
  const { lastLine, code } = await run({ 'a.spec.ts': GOOD, 'b.spec.ts': death }, `pool: 'forks',`);
  expect(lastLine).toBe('2 passed, 3 failed');
  expect(code).toBe(1);
});

it('counts a global set-up that threw as a failure', async () => {
  const files = { 'a.spec.ts': GOOD, 'setup.ts': `export default () => { throw new Error('no database'); };` };
  expect(await run(files, `globalSetup: ['./setup.ts'],`)).toEqual({ lastLine: '0 passed, 1 failed', code: 1 });
});

it('counts as a failure what only the exit code tells', async () => {
  const files = { 'a.spec.ts': GOOD, 'setup.ts': `export default () => () => { process.exitCode = 3; };` };
  expect(await run(files, `globalSetup: ['./setup.ts'],`)).toEqual({ lastLine: '2 passed, 1 failed', code: 3 });
});

it('calls a run without any test failed, even where vitest is told to let it pass', async () => {
  expect(await run({}, 'passWithNoTests: true,')).toEqual({ lastLine: '0 passed, 1 failed', code: 1 });
});
