import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EXIT_CODES } from '../../src/cli/exit-codes.js';
import { at, capstan, inFolder, mainFile, startProcess } from './cli.fixture.js';
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
    for (const command of [
      'serve',
      'worker',
      'migrate',
      'run -- ARGV...',
      'script FILE',
      'runs',
      'show ID',
      'batch FILE',
      'top',
    ]) {
      expect(stdout).toContain(`${command} `);
    }
    for (const command of [
      'rerun ID...',
      'http URL',
      'events ID',
      'logs ID',
      'cancel ID...',
      'why ID',
      'workers',
      'audit',
      'verify FILE...',
      'queues',
      'retention',
      'version',
      'config',
      'completion bash|zsh',
    ]) {
      expect(stdout).toContain(`${command} `);
    }
    for (const { code: exit, means } of Object.values(EXIT_CODES)) expect(stdout).toContain(`${exit} ${means}`);
    expect(stdout).toContain('Examples: capstan run --wait -- ');
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
  it('ends with exit code 2 and one line, or a JSON problem with --json', async () => {
    const plain = await capstan(['runs', '--sate', 'failed'], NOWHERE);
    expect({ code: plain.code, stdout: plain.stdout }).toEqual({ code: 2, stdout: '' });
    expect(plain.stderr).toMatch(/^capstan: usage: unknown option '--sate'/);
    const json = await capstan(['--json', 'show'], NOWHERE);
    expect({ code: json.code, stdout: json.stdout }).toEqual({ code: 2, stdout: '' });
    expect(JSON.parse(json.stderr)).toMatchObject({ title: 'usage', code: 'usage', detail: expect.any(String) });
  });

  it('is a token on the command line, which is not repeated', async () => {
    const { code, stdout, stderr } = await capstan(['runs', '--token', 'cap_secret'], NOWHERE);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('use --token-file FILE, CAPSTAN_TOKEN_FILE or CAPSTAN_TOKEN');
    expect(stderr).not.toContain('cap_secret');
  });

  it('is not what belongs to the run’s own command', async () => {
    const server = await standIn(() => problem(422, 'invalid_input'));
    await capstan(['run', 'curl', '--token', 'x', '--json', '--', 'y'], at(server.url));
    await server.close();
    expect(server.asked[0]?.body).toMatchObject({ spec: { argv: ['curl', '--token', 'x', '--json', '--', 'y'] } });
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
  for (const [, from = ''] of code.matchAll(
    /(?:^|\*\/ )(?:import|export) (?:[\w\s{},*$]+ from )?['"]([^'"]+)['"];/gm,
  )) {
    if (from.startsWith('.')) await loadedWith(join(dirname(file), from), seen);
    else seen.add(from);
  }
  return seen;
}

describe('a client command', () => {
  it('loads no framework, no driver and no table', async () => {
    const loaded = [...(await loadedWith(await mainFile()))];
    const packages = loaded.filter((name) => !name.startsWith('/') && !name.startsWith('node:'));
    // The last one reads the settings that `config show` prints.
    const light = ['commander', 'eventsource-parser', 'fastest-levenshtein', 'picocolors', 'ipaddr.js'];
    expect(packages.filter((name) => !light.includes(name))).toEqual([]);
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
      const shell = ['-c', 'exec "$0" "$1" config show > /dev/full', process.execPath, await mainFile()];
      const { code, stderr } = await startProcess('sh', shell, { cwd: folder }).finished();
      expect({ code, stderr }).toEqual({
        code: 3,
        stderr: 'capstan: output: cannot write to standard output: ENOSPC\n',
      });
    });
  });
});
