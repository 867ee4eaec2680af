import { describe, expect, it } from 'vitest';
import type { Shell } from '../../src/cli/shell.js';
import { capstanHere } from './here.fixture.js';

const RUN_ID = 'run_01h455vb4pex5vsknk084sn02q';

/** Nobody listens on port 1 of this machine. */
const NOWHERE = { CAPSTAN_URL: 'http://127.0.0.1:1' };

function capstan(args: readonly string[], env: Readonly<Record<string, string>> = {}, more: Partial<Shell> = {}) {
  return capstanHere(args, { env: { ...NOWHERE, ...env }, ...more });
}

describe('wrong usage', () => {
  const cases: [title: string, args: string[], says: RegExp][] = [
    ['an unknown command', ['rnus'], /unknown command 'rnus'.*Did you mean runs\?/],
    ['an unknown option', ['runs', '--sate', 'failed'], /unknown option '--sate'.*--state/],
    ['an unknown option before the command', ['run', '-x', 'ls'], /unknown option '-x'/],
    ['no command to run', ['run', '--name', 'x'], /missing required argument 'argv'/],
    ['no id', ['show'], /missing required argument 'id'/],
    ['two ids', ['show', 'run_1', 'run_2'], /too many arguments/],
    ['an id that would be another path', ['show', '../workers'], /expected the id of a run/],
    ['a word for an id', ['logs', 'foo'], /the id of a run: run_ and 26 characters, such as run_01h4.*, or a UUID/],
    ['an id that is too short', ['rerun', 'run_01h455vb4pex5vsknk084sn02'], /expected the id of a run/],
    ['an id of something else', ['cancel', 'wrk_01h455vb4pex5vsknk084sn02q'], /expected the id of a run/],
    ['an id with a letter that none has', ['events', 'run_01h455vb4pex5vsknk084sn02u'], /expected the id of a run/],
    [
      'a state that is none',
      ['runs', '--state', 'running,faild'],
      /--state .*Expected held, pending, .*rejected\. Did you mean failed\?/,
    ],
    ['a kind that is none', ['runs', '--kind', 'htp'], /--kind .*command, script, http\. Did you mean http\?/],
    ['standard input for two', ['script', '-', '--stdin', '-'], /standard input is read once/],
    ['input that isn’t there', ['run', '--stdin', 'no-such-file', 'cat'], /no-such-file does not exist/],
    ['a word that is no state', ['runs', '--state', 'bogus'], /rejected\.\n/],
    ['a command that a list hasn’t', ['queues', 'pasue'], /queues: unknown command 'pasue'.*\n.*queues --help/],
    ['an id behind runs', ['runs', RUN_ID], /\n {2}one run: capstan show ID\n/],
    ['a principal by its name', ['runs', '--principal', 'admin'], /--principal: .* tok_ .*\n.*capstan show RUN_ID/],
    [
      'a principal that is none',
      ['cancel', '--principal', 'tok_a', '--yes'],
      /--principal: expected the id of a token/,
    ],
    ['a queue that none is called', ['runs', '--queue', 'UP'], /--queue: expected the name of a queue: lower-case/],
    ['a queue to wait in', ['run', '--queue', 'a b', '--', 'ls'], /--queue: expected the name of a queue/],
    ['a queue to pause', ['queues', 'pause', 'UP', '--reason', 'x'], /expected the name of a queue: lower-case/],
    ['a queue to resume', ['queues', 'resume', ''], /expected the name of a queue: lower-case/],
    ['a folder from here', ['run', '--cwd', 'rel', '--', 'ls'], /--cwd: expected an absolute path/],
    ['no time in between', ['runs', '--after', '1h', '--before', '2h'], /--before must be later than --after/],
    ['no time for entries', ['audit', 'list', '--after', '1h', '--before', '2h'], /--before must be later/],
    ['what has ended to cancel', ['cancel', '--state', 'held,failed', '--yes'], /--state failed: .* held, pending, /],
    ['what goes on to rerun', ['rerun', '--state', 'pending', '--yes'], /--state pending: .* succeeded, failed, /],
    ['a key for several', ['rerun', RUN_ID, RUN_ID, '--idempotency-key', 'k'], /for one id, or for filters/],
    ['a key for a time ago', ['rerun', '--after', '2h', '--idempotency-key', 'k', '--yes'], /a time ago is not/],
    ['a key without room', ['rerun', '--kind', 'noop', '--idempotency-key', 'k'.repeat(241), '--yes'], /at most 240/],
    ['no URL', ['http'], /http: expected a URL, such as https:/],
    ['a shell that isn’t known', ['completion', 'fish'], /expected bash or zsh/],
    ['no shell', ['completion'], /expected bash or zsh/],
    ['a label without =', ['run', '--label', 'prod', '--', 'ls'], /--label: expected KEY=VALUE/],
    ['a label without a key', ['runs', '--label', '=prod'], /--label: expected KEY=VALUE/],
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
    ['a tail that is no number', ['logs', 'run_1', '--tail', 'all'], /--tail.*integer from 0 to 100000/],
    ['a status that is none', ['http', 'http://x', '--expect', '200,99'], /Expected statuses such as 200 or 200,201/],
    ['redirects without end', ['http', 'http://x', '--follow', '11'], /integer from 0 to 10/],
    ['what a request has no use for', ['http', 'http://x', '--cwd', '/'], /unknown option '--cwd'/],
    ['a URL that is none', ['runs', '--url', 'localhost:8080'], /--url: expected http:\/\/HOST:PORT/],
  ];
  it.each(cases)('%s is told in one line with exit code 2', async (_, args, says) => {
    const { code, stdout, stderr } = await capstan(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^capstan: usage: /);
    expect(stderr).toMatch(says);
  });

  it('is neither an id nor a UUID that a run may have', async () => {
    for (const id of ['run_01h455vb4pex5vsknk084sn02q', '01893fe8-d3e8-7000-8000-0123456789AB']) {
      expect(await capstan(['show', id])).toMatchObject({ code: 3, stderr: expect.stringContaining('no connection') });
    }
  });

  it('and every hint names the program as it was started', async () => {
    const npx = { npm_command: 'exec', npm_lifecycle_event: 'npx' };
    const slip = await capstan(['runs', '--sate'], npx);
    expect(slip.stderr).toMatch(/^capstan: usage: .*\n {2}see: npx capstan runs --help\n$/);
    const json = await capstan(['logs', 'foo', '--json'], npx);
    expect(JSON.parse(json.stderr)).toMatchObject({ hint: 'look: npx capstan runs' });
    expect((await capstan(['logs', 'foo'])).stderr).toContain('\n  look: capstan runs\n');
  });

  it('takes no value from the caller’s environment for --env, and never shows one', async () => {
    const bare = await capstan(['run', '--env', 'DB_PASSWORD', '--', 'ls'], { DB_PASSWORD: 'hunter2' });
    expect(bare).toMatchObject({ code: 2, stderr: expect.stringContaining('--env: expected KEY=VALUE') });
    const slip = await capstan(['run', '--evn=DB_PASSWORD=hunter2', '--', 'ls']);
    expect(slip).toMatchObject({ code: 2, stderr: expect.stringContaining("unknown option '--evn'") });
    expect(bare.stderr + slip.stderr).not.toContain('hunter2');
  });

  it('is a JSON problem with --json, wherever that stands before a --', async () => {
    for (const args of [
      ['--json', 'rnus'],
      ['runs', '--sate', 'x', '--json'],
    ]) {
      const { code, stdout, stderr } = await capstan(args);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(JSON.parse(stderr)).toMatchObject({ title: 'usage', code: 'usage', detail: expect.any(String) });
    }
    expect((await capstan(['rnus', '--', '--json'])).stderr).toMatch(/^capstan: usage: /);
  });

  it('is no JSON because a tool, or the value of an option, is called --json', async () => {
    for (const args of [
      ['run', 'echo', '--json'],
      ['run', '--url', 'http://127.0.0.1:1', 'echo', '--json'],
      ['run', '--sate', '--', 'echo', '--json'],
      ['run', '--priority', '101', 'echo', '--json'],
      ['run', '--name', '--json', '--', 'echo'],
      ['http', 'http://x', '--data', '--json', '--sate'],
    ]) {
      const { code, stderr } = await capstan(args);
      expect({ args, isFailed: code !== 0, stderr }).toMatchObject({
        isFailed: true,
        stderr: expect.stringMatching(/^capstan: (no connection|usage): /),
      });
    }
    for (const args of [
      ['--json', 'run', 'echo'],
      ['run', '--json', 'echo'],
      ['run', '--priority', '101', '--json', 'echo'],
      ['run', '--label=x', '--json', 'echo'],
      ['audit', 'verify', '--json', '--sate'],
      ['script', 'no-such-file.sh', '--json'],
    ]) {
      const { stderr } = await capstan(args);
      expect({ args, problem: JSON.parse(stderr) }).toMatchObject({ problem: { title: expect.any(String) } });
    }
  });
});

describe('list', () => {
  it.each(['runs', 'queues', 'workers'])('behind %s is the same as without it', async (group) => {
    for (const args of [[group, 'list'], [group, '--json', 'list'], [group]]) {
      expect(await capstan(args)).toMatchObject({ code: 3, stderr: expect.stringContaining('127.0.0.1:1') });
    }
  });
});

describe('a token of the environment without a server', () => {
  it('is told with the profile that it passed over, where nobody answers', async () => {
    const env = { CAPSTAN_TOKEN: 'cap_secret', CAPSTAN_PROFILE: 'prod', CAPSTAN_PORT: '1' };
    const said = 'profile prod was passed over, because CAPSTAN_TOKEN is set; take it: --profile prod';
    const alone = await capstanHere(['runs'], { env });
    expect(alone).toMatchObject({ code: 3, stderr: expect.stringContaining(said) });
    expect(alone.stderr).not.toContain('cap_secret');
    expect((await capstan(['runs'], env)).stderr, 'beside a CAPSTAN_URL').not.toContain('passed over');
  });
});

describe('a cancel or a rerun', () => {
  it.each([
    ['neither', []],
    ['no more than --yes', ['--yes']],
    ['no more than --dry-run', ['--dry-run']],
    ['both', [RUN_ID, '--state', 'pending']],
    ['a run, as if it were many', [RUN_ID, '--dry-run']],
    ['one id that is none', [RUN_ID, 'foo']],
    ['a state that is none', ['--state', 'pendign']],
    ['a time that is none', ['--after', 'yesterday']],
    ['an origin that is none', ['--origin', 'me']],
    ['a parent that is none', ['--parent', 'x']],
  ])('names runs or filters: %s is wrong usage', async (_, args) => {
    for (const verb of ['cancel', 'rerun']) {
      const { code, stdout, stderr } = await capstan([verb, ...args]);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(/^capstan: usage: /);
    }
  });
});

describe('the help of a command', () => {
  /** Of each command that there is: the program's own completion knows them. */
  async function commands(): Promise<string[]> {
    const { stdout } = await capstan(['completion', 'bash']);
    const paths = [...stdout.matchAll(/^ {4}'([a-z -]*)'\) echo '[^']*--help/gm)].map(([, path = '']) => path);
    expect(paths.length).toBeGreaterThan(30);
    return paths;
  }

  it('fits a screen of 80 columns and 24 lines, and ends in an example where there is something to choose', async () => {
    for (const path of await commands()) {
      const { code, stdout } = await capstan([...path.split(' ').filter(Boolean), '--help']);
      const lines = stdout.trimEnd().split('\n');
      const widest = Math.max(...lines.map((line) => line.length));
      expect({ path, code, isNarrow: widest <= 80, isShort: lines.length <= 24 }).toEqual({
        path,
        code: 0,
        isNarrow: true,
        isShort: true,
      });
      const isPlain =
        /^(serve|worker|migrate|doctor|show|verify|audit|config|audit key|audit verify|completion|workers undrain|queues resume|)$/;
      if (!isPlain.test(path)) expect(stdout, path).toMatch(/\nExamples?:\n {2}\S/);
    }
  });
});

describe('the help of what takes standard input', () => {
  it.each(['run', 'script'])('says for %s that it is sent only when it is asked for', async (name) => {
    expect((await capstan([name, '--help'])).stdout).toContain('unless --stdin - asks for it');
  });
});

describe('a token on the command line', () => {
  it.each([
    ['before the command', ['--token', 'cap_secret', 'runs']],
    ['behind it', ['runs', '--token', 'cap_secret']],
    ['with =', ['show', '--token=cap_secret', 'run_1']],
    ['of a command in a group', ['audit', 'verify', '--token=cap_secret']],
    ['of a submit', ['run', '--token', 'cap_secret', '--', 'ls']],
    ['without a value', ['runs', '--token']],
  ])('%s is refused with a hint and not repeated', async (_, args) => {
    const { code, stdout, stderr } = await capstan(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('use --token-file FILE, CAPSTAN_TOKEN_FILE or CAPSTAN_TOKEN');
    expect(stderr).not.toContain('cap_secret');
  });
});

describe('a mistake in the program', () => {
  it('is no failed run: exit code 3 and the place of it, in JSON too', async () => {
    const readStdin = () => Promise.reject(new RangeError('out of the blue'));
    const plain = await capstan(['script', '-'], {}, { readStdin });
    expect(plain).toMatchObject({ code: 3, stdout: '' });
    expect(plain.stderr).toMatch(/^capstan: internal error: out of the blue\n {2,}at /);
    const json = await capstan(['script', '-', '--json'], {}, { readStdin });
    expect(JSON.parse(json.stderr)).toMatchObject({ code: 'internal', detail: 'out of the blue' });
  });

  it('of a server command is left to it', async () => {
    await expect(capstan(['serve'])).rejects.toThrow('no server command was given');
  });
});
