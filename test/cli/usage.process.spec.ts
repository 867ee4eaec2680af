import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EXIT_CODES } from '../../src/cli/exit-codes.js';
import { at, capstan, inFolder, mainFile } from './cli.fixture.js';
import { problem, standIn } from './stand-in.fixture.js';

/** Nobody listens on port 1 of this machine. */
const NOWHERE = { env: { CAPSTAN_URL: 'http://127.0.0.1:1' } };

describe('help', () => {
  it('fits a terminal of 80 columns and 24 lines and names every command, every exit code and examples', async () => {
    const { code, stdout, stderr } = await capstan(['--help']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stdout.trimEnd().split('\n');
    expect(lines.length).toBeLessThanOrEqual(24);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
    for (const command of ['serve', 'worker', 'migrate', 'run -- ARGV...', 'script FILE', 'runs', 'show ID']) {
      expect(stdout).toContain(`${command} `);
    }
    for (const command of ['logs ID', 'cancel ID', 'workers', 'audit verify', 'config show']) {
      expect(stdout).toContain(`${command} `);
    }
    for (const { code: exit, means } of Object.values(EXIT_CODES)) expect(stdout).toContain(`${exit} ${means}`);
    expect(stdout).toContain('Examples:\n  capstan run --wait -- ');
    expect(stdout).not.toMatch(/--token\b(?!-file)/);
  });

  it('of a command says what is its own', async () => {
    const { code, stdout } = await capstan(['run', '--help']);
    expect(code).toBe(0);
    for (const option of ['--queue', '--label', '--wait-limit', '--idempotency-key', '--json', '--token-file']) {
      expect(stdout).toContain(option);
    }
  });

  it('stands on standard error with exit code 2 when there is no command', async () => {
    const { code, stdout, stderr } = await capstan([]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('Usage: capstan COMMAND');
  });

  it('and the version need no server; the version is the package’s', async () => {
    const manifest = JSON.parse(await readFile('package.json', 'utf8')) as { version: string };
    expect(await capstan(['--version'])).toMatchObject({ code: 0, stdout: `${manifest.version}\n`, stderr: '' });
  });
});

describe('wrong usage', () => {
  const cases: [title: string, args: string[], says: RegExp][] = [
    ['an unknown command', ['rnus'], /unknown command 'rnus'.*Did you mean runs\?/],
    ['an unknown option', ['runs', '--sate', 'failed'], /unknown option '--sate'.*--state/],
    ['an unknown option before the command', ['run', '-x', 'ls'], /unknown option '-x'/],
    ['no command to run', ['run', '--name', 'x'], /missing required argument 'argv'/],
    ['no id', ['show'], /missing required argument 'id'/],
    ['two ids', ['show', 'run_1', 'run_2'], /too many arguments/],
    ['an id that would be another path', ['show', '../workers'], /expected the id of a run/],
    ['a label without =', ['run', '--label', 'prod', '--', 'ls'], /--label: expected KEY=VALUE/],
    ['the same label twice', ['runs', '--label', 'a=1', '--label', 'a=2'], /--label: a is given twice/],
    ['a timeout that is none', ['run', '--timeout', '15', '--', 'ls'], /--timeout.*Expected an integer and ms, s/],
    ['a priority out of range', ['run', '--priority', '101', '--', 'ls'], /Expected an integer from -100 to 100/],
    ['an exit code out of range', ['run', '--success-code', '256', '--', 'ls'], /from 0 to 255/],
    ['a key with blanks at its end', ['run', '--idempotency-key', 'a ', '--', 'ls'], /1 to 255 bytes/],
    ['a key that is too long', ['run', '--idempotency-key', 'é'.repeat(128), '--', 'ls'], /1 to 255 bytes/],
    ['an unknown interpreter', ['script', '-', '--interpreter', 'perl'], /Allowed choices are bash, sh, python3, node/],
    ['a script’s options without --', ['script', 'a.sh', '-v'], /arguments of the script stand behind --/],
    ['a script that isn’t there', ['script', 'no-such-file.sh'], /no-such-file\.sh does not exist/],
    ['a script that is a folder', ['script', '/tmp'], /\/tmp cannot be read: EISDIR/],
    ['a limit with --all', ['runs', '--all', '--limit', '3'], /cannot be used with option/],
    ['a URL that is none', ['runs', '--url', 'localhost:8080'], /--url: expected http:\/\/HOST:PORT/],
  ];
  it.each(cases)('%s is told in one line with exit code 2, and no server is asked', async (_, args, says) => {
    const { code, stdout, stderr } = await capstan(args, NOWHERE);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^capstan: usage: /);
    expect(stderr).toMatch(says);
  });

  it('is a JSON problem with --json, wherever that stands', async () => {
    for (const args of [
      ['--json', 'rnus'],
      ['runs', '--sate', 'x', '--json'],
    ]) {
      const { code, stdout, stderr } = await capstan(args);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(JSON.parse(stderr)).toMatchObject({ title: 'usage', code: 'usage', detail: expect.any(String) });
    }
  });

  it('takes no value from the caller’s environment for --env, and never shows one', async () => {
    const secret = { env: { ...NOWHERE.env, DB_PASSWORD: 'hunter2' } };
    const bare = await capstan(['run', '--env', 'DB_PASSWORD', '--', 'ls'], secret);
    expect(bare).toMatchObject({ code: 2, stderr: expect.stringContaining('--env: expected KEY=VALUE') });
    const slip = await capstan(['run', '--evn=DB_PASSWORD=hunter2', '--', 'ls'], secret);
    expect(slip).toMatchObject({ code: 2, stderr: expect.stringContaining("unknown option '--evn'") });
    expect(bare.stderr + slip.stderr).not.toContain('hunter2');
  });
});

describe('a token on the command line', () => {
  it.each([
    ['before the command', ['--token', 'cap_secret', 'runs']],
    ['behind it', ['runs', '--token', 'cap_secret']],
    ['with =', ['show', '--token=cap_secret', 'run_1']],
    ['of a command in a group', ['audit', 'verify', '--token=cap_secret']],
    ['without a value', ['runs', '--token']],
  ])('%s is refused with a hint and not repeated', async (_, args) => {
    const { code, stdout, stderr } = await capstan(args, NOWHERE);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('use --token-file FILE, CAPSTAN_TOKEN_FILE or CAPSTAN_TOKEN');
    expect(stderr).not.toContain('cap_secret');
  });

  it('that belongs to the run’s own command is passed on', async () => {
    const server = await standIn(() => problem(422, 'invalid_input'));
    await capstan(['run', 'curl', '--token', 'x', '--json'], at(server.url));
    await server.close();
    expect(server.asked[0]?.body).toMatchObject({ spec: { argv: ['curl', '--token', 'x', '--json'] } });
  });
});

describe('config show', () => {
  it('prints the settings that a server would have, secrets hidden, without asking any', async () => {
    const env = { CAPSTAN_PORT: '9999', DATABASE_URL: 'postgres://u:hunter2@db/app' };
    const { code, stdout, stderr } = await capstan(['config', 'show'], { env });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stdout.split('\n');
    expect(lines).toContain('CAPSTAN_PORT\t9999\tenvironment');
    expect(lines).toContain('DATABASE_URL\t(hidden)\tenvironment');
    expect(lines).toContain('CAPSTAN_SLOTS\t4\tdefault');
    const json = await capstan(['config', 'show', '--json'], { env });
    expect(JSON.parse(json.stdout)).toMatchObject({ faults: [], items: expect.any(Array) });
    expect(stdout + json.stdout).not.toContain('hunter2');
  });

  it('names what a server would refuse, with exit code 2', async () => {
    const env = { CAPSTAN_PORT: 'http', CAPSTAN_SLOT: '3' };
    const { code, stdout, stderr } = await capstan(['config', 'show'], { env });
    expect(code).toBe(2);
    expect(stdout).toContain('CAPSTAN_PORT\t(refused)\tenvironment');
    expect(stderr).toContain('capstan: CAPSTAN_PORT: expected integer 0 to 65535');
    expect(stderr).toContain('did you mean CAPSTAN_SLOTS?');
    const json = await capstan(['config', 'show', '--json'], { env });
    expect(json).toMatchObject({ code: 2, stderr: '' });
    expect(JSON.parse(json.stdout).faults).toHaveLength(2);
  });
});

/** Every module that is loaded with `file`, found by its static imports. */
async function loadedWith(file: string, seen = new Set<string>()): Promise<Set<string>> {
  if (seen.has(file)) return seen;
  seen.add(file);
  const code = await readFile(file, 'utf8');
  for (const [, from = ''] of code.matchAll(/^(?:import|export)\s[^'"]*?['"]([^'"]+)['"]/gm)) {
    if (from.startsWith('.')) await loadedWith(join(dirname(file), from), seen);
    else seen.add(from);
  }
  return seen;
}

describe('a client command', () => {
  it('loads no framework, no driver and no table', async () => {
    const loaded = [...(await loadedWith(await mainFile()))];
    const packages = loaded.filter((name) => !name.startsWith('/') && !name.startsWith('node:'));
    expect(packages.sort()).toEqual(['commander', 'fastest-levenshtein', 'picocolors']);
  });

  it('works beside settings that no server would take', async () => {
    const server = await standIn(() => ({ body: { items: [], next: null } }));
    const { code } = await capstan(['runs'], at(server.url, { CAPSTAN_SLOTS: 'many', CAPSTAN_WHAT: '1' }));
    await server.close();
    expect(code).toBe(0);
  });
});

describe('output that can’t be written', () => {
  it('is a failure, not a success with nothing in it', async () => {
    await inFolder(async (folder) => {
      const main = await mainFile();
      const { startProcess } = await import('./cli.fixture.js');
      const running = startProcess('sh', ['-c', `exec "$0" "$1" config show > /dev/full`, process.execPath, main], {
        cwd: folder,
      });
      const { code, stderr } = await running.finished();
      expect({ code, stderr }).toEqual({
        code: 3,
        stderr: 'capstan: output: cannot write to standard output: ENOSPC\n',
      });
    });
  });
});
