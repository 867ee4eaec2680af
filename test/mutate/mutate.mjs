/**
 * Proves that the tests test: each listed guard is removed in a copy of the project, and the spec named for it must
 * fail there. A spec that still passes fails this run. `node test/mutate/mutate.mjs [part of a name…]`
 */
import { spawn } from 'node:child_process';
import { chmod, cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MUTATIONS } from './mutations.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const COPIED = [
  'src',
  'test',
  'migrations',
  'helm',
  'Dockerfile',
  '.dockerignore',
  'README.md',
  'package.json',
  'tsconfig.json',
  'vitest.config.ts',
  '.swcrc',
];
const LIMIT_MS = 180_000;
const LANES = Math.max(1, Math.min(2, availableParallelism()));

const running = new Set();

/** A copy of the project with the same dependencies. */
async function copyProject() {
  const folder = await mkdtemp(join(tmpdir(), 'capstan-mutate-'));
  // Some tests start a process as another user.
  await chmod(folder, 0o755);
  for (const name of COPIED) await cp(join(ROOT, name), join(folder, name), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'dir');
  return folder;
}

/** Runs specs in a copy: whether they all passed, and what failed first. */
async function runSpecs(folder, specs) {
  const report = join(folder, 'report.json');
  await rm(report, { force: true });
  const args = ['run', '--bail=1', '--reporter=json', `--outputFile=${report}`, ...specs];
  const child = spawn(join(folder, 'node_modules/.bin/vitest'), args, { cwd: folder, stdio: 'ignore', detached: true });
  running.add(child);
  const timer = setTimeout(() => stop(child), LIMIT_MS);
  const code = await new Promise((resolve) => child.once('close', resolve));
  clearTimeout(timer);
  running.delete(child);
  const text = await readFile(report, 'utf8').catch(() => undefined);
  if (text === undefined)
    return { passed: false, ran: 0, first: code === null ? 'no end within its time' : `vitest ended with ${code}` };
  const { testResults, numPassedTests, numFailedTests } = JSON.parse(text);
  const failed = testResults.flatMap((file) => file.assertionResults).find((test) => test.status === 'failed');
  const first = failed?.fullName ?? testResults.find((file) => file.status === 'failed')?.message?.split('\n')[0];
  return { passed: code === 0, ran: numPassedTests + numFailedTests, first: first?.trim() };
}

/** The whole group: vitest, its workers and the PostgreSQL that its set-up started end themselves on SIGTERM. */
function stop(child) {
  try {
    process.kill(-child.pid, 'SIGTERM');
  } catch {
    // It has ended by itself.
  }
}

/** Applies a mutation, asks its spec, and puts the file back. */
async function prove(folder, mutation) {
  const path = join(folder, mutation.file);
  const original = await readFile(path, 'utf8');
  let mutated = original;
  for (const [find, replace] of mutation.edits) {
    const places = mutated.split(find).length - 1;
    if (places !== 1) return { found: false, why: `what it changes stands ${places} times in ${mutation.file}` };
    mutated = mutated.replace(find, () => replace);
  }
  await writeFile(path, mutated);
  try {
    const { passed, ran, first } = await runSpecs(folder, [mutation.test]);
    if (passed) return { found: false, why: `${mutation.test} still passes` };
    if (ran === 0) return { found: false, why: `${mutation.test} did not run: ${first}` };
    return { found: true, why: first };
  } finally {
    await writeFile(path, original);
  }
}

async function main(wanted) {
  const chosen = MUTATIONS.filter(({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)));
  const begun = performance.now();
  const folders = await Promise.all(Array.from({ length: LANES }, copyProject));
  const tally = { passed: 0, failed: 0 };
  try {
    const sound = await runSpecs(folders[0], [...new Set(chosen.map(({ test }) => test))]);
    if (!sound.passed) {
      console.log(`✗ the specs fail without any mutation: ${sound.first}`);
      tally.failed += 1;
      return tally;
    }
    const queue = [...chosen];
    const work = async (folder) => {
      for (let mutation = queue.shift(); mutation; mutation = queue.shift()) {
        const { found, why } = await prove(folder, mutation);
        tally[found ? 'passed' : 'failed'] += 1;
        console.log(`${found ? '✓' : '✗'} ${mutation.name.padEnd(58)} ${(why ?? '').slice(0, 120)}`);
      }
    };
    await Promise.all(folders.map(work));
    console.log(`${chosen.length} mutations in ${Math.round((performance.now() - begun) / 1_000)} s`);
    return tally;
  } finally {
    await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })));
  }
}

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    for (const child of running) stop(child);
    process.exitCode = 1;
  });
}
const { passed, failed } = await main(process.argv.slice(2));
if (failed > 0 || passed === 0) process.exitCode = 1;
console.log(`${passed} passed, ${failed} failed`);
