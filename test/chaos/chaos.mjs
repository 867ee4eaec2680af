#!/usr/bin/env node
/** `npm run chaos`: what can go wrong, done to real processes. Prints how it went; exits 1 when a promise was broken. */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command, InvalidArgumentError } from 'commander';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

function positive(text) {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError('It has to be a number above 0.');
  return value;
}

const program = new Command('npm run chaos --')
  .description(
    'Kills, stalls, cuts off and restarts real replicas and their database, and checks that nothing ran twice or was lost.\n' +
      'Without options: every fault a few times, as CI does. Needs nginx, haproxy, pgbouncer and faketime (packages of Debian).',
  )
  .option('--full', 'every fault as often as promised: 100 tools each, 20 rolling cycles')
  .option('--minutes <n>', 'soak: faults at random moments for this long, default settings', positive)
  .option('--seed <n>', 'the order of the faults of a soak', positive)
  .option('--json', "a soak's summary as one JSON document on standard output")
  .parse();
const options = program.opts();
if (options.full && options.minutes) program.error("error: '--full' and '--minutes' are two different things to do");
if ((options.seed || options.json) && !options.minutes)
  program.error("error: '--seed' and '--json' go with '--minutes'");

const PROGRAMS = {
  nginx: '/usr/sbin/nginx',
  haproxy: '/usr/sbin/haproxy',
  pgbouncer: '/usr/sbin/pgbouncer',
  faketime: '/usr/bin/faketime',
};
const needed = options.minutes ? ['nginx', 'haproxy'] : Object.keys(PROGRAMS);
const missing = needed.filter((name) => !existsSync(PROGRAMS[name]));
if (missing.length > 0)
  program.error(`error: missing: ${missing.join(' ')} (apt-get install ${missing.join(' ')})`, { exitCode: 2 });

const folder = mkdtempSync(join(tmpdir(), 'capstan-soak-'));
const file = join(folder, 'summary.json');
const what = options.minutes ? ['test/chaos/soak.system.spec.ts'] : ['test/chaos'];
const child = spawn(
  process.execPath,
  [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', '--project', 'system', ...what],
  {
    cwd: ROOT,
    env: {
      ...process.env,
      ...(options.full && { CHAOS_FULL: '1' }),
      ...(options.minutes && { CHAOS_MINUTES: String(options.minutes), CHAOS_SUMMARY: file }),
      ...(options.seed && { CHAOS_SEED: String(options.seed) }),
    },
    // A soak is told by its summary and its progress; the runner's own report goes beside them.
    stdio: ['ignore', options.minutes ? 2 : 'inherit', 'inherit'],
  },
);
child.on('exit', (code, signal) => {
  if (options.minutes) tell(code === 0);
  rmSync(folder, { recursive: true, force: true });
  process.exitCode = signal === null ? (code ?? 1) : 1;
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));

function tell(isKept) {
  let text;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    process.stderr.write('the soak ended without a summary; see above\n');
    return;
  }
  const summary = JSON.parse(text);
  if (options.json) {
    process.stdout.write(`${text}\n`);
    return;
  }
  const counted = (counts) =>
    Object.entries(counts)
      .map(([name, n]) => `${n} ${name}`)
      .join(', ');
  const total = (counts) => Object.values(counts).reduce((sum, n) => sum + n, 0);
  process.stdout.write(`
seed              ${summary.seed}
faults injected   ${total(summary.faults)}: ${counted(summary.faults)}
runs              ${summary.runs}: ${counted(summary.ends)}
duplicates        ${summary.duplicates.length} ${summary.duplicates.join(' ')}
losses            ${summary.losses.length + summary.forgotten.length} ${[...summary.losses, ...summary.forgotten].join(' ')}
late effects      ${summary.late.length} ${summary.late.map(({ id, byMs }) => `${id} by ${byMs} ms`).join(' ')}
longest takeover  ${(summary.longestTakeoverMs / 1000).toFixed(1)} s after the last renewal
contradictions    ${summary.contradictions.length} ${summary.contradictions.join('; ')}
verdict           ${isKept ? 'every promise was kept' : 'a promise was BROKEN: see above'}
`);
}
