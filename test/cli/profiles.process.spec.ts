/** `config set`, `use`, `list`, `remove`, and which server and token a command takes. */
import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { capstan, inFolder, start, startProcess, until } from './cli.fixture.js';
import { type Answer, type StandIn, standIn } from './stand-in.fixture.js';

const EMPTY: Answer = () => ({ body: { items: [], next: null } });

let one: StandIn;
let other: StandIn;

beforeAll(async () => {
  [one, other] = [await standIn(EMPTY), await standIn(EMPTY)];
});

afterAll(async () => {
  await Promise.all([one.close(), other.close()]);
});

interface Home {
  readonly env: Readonly<Record<string, string>>;
  readonly file: string;
  /** Fails the test when the exit code isn't 0; standard output otherwise. */
  done(args: readonly string[], more?: Readonly<Record<string, string>>): Promise<string>;
}

/** A home with the profiles `one` and `other`, of which the first is in use. */
async function atHome<T>(use: (home: Home) => Promise<T>): Promise<T> {
  return inFolder(async (folder) => {
    const env = { HOME: folder };
    const done = async (args: readonly string[], more = {}) => {
      const { code, stdout, stderr } = await capstan(args, { env: { ...env, ...more }, cwd: folder });
      expect({ args, code, stderr }).toMatchObject({ code: 0 });
      return stdout;
    };
    for (const [name, server] of Object.entries({ one, other })) {
      const args = ['config', 'set', name, '--url', server.url, '--token-stdin'];
      expect(await capstan(args, { env, stdin: `cap_of-${name}\n` })).toMatchObject({ code: 0 });
    }
    return use({ env, done, file: join(folder, '.config', 'capstan', 'config.json') });
  });
}

/** Whom the last of `runs` asked, and with what. */
async function askedBy(run: () => Promise<unknown>): Promise<string> {
  const before = [one.asked.length, other.asked.length];
  await run();
  const asked = [one, other].flatMap((server, index) =>
    server.asked.slice(before[index]).map(({ headers }) => `${index === 0 ? 'one' : 'other'} ${headers.authorization}`),
  );
  return asked.join();
}

/** The writing end of a pipe that somebody reads. */
function whenRead(pipe: string): number | undefined {
  try {
    return openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
}

describe('a profile', () => {
  it('is kept in a file of the user alone, which no command shows the token of', async () => {
    await atHome(async ({ done, file, env }) => {
      expect((await stat(file)).mode & 0o777).toBe(0o600);
      expect((await stat(join(file, '..'))).mode & 0o777).toBe(0o700);
      const shown = [
        await done(['config', 'list']),
        await done(['config', 'list', '--json']),
        await done(['config', 'show']),
        await done(['config', 'show', '--json']),
        await done(['config', 'use', 'other', '--json']),
      ].join();
      expect(shown).toContain('one');
      expect(shown).not.toContain('cap_of');
      expect(await done(['config', 'list', '--quiet'])).toBe('one\nother\n');
      const { stderr } = await capstan(['config', 'set', 'x', '--token', 'cap_secret'], { env });
      expect(stderr).toContain('--token is not taken');
      expect(stderr).not.toContain('cap_secret');
    });
  });

  it('lies in XDG_CONFIG_HOME when that is an absolute path', async () => {
    await atHome(async ({ done, env, file }) => {
      const elsewhere = join(env.HOME ?? '', 'elsewhere');
      await done(['config', 'set', 'x', '--url', one.url], { XDG_CONFIG_HOME: elsewhere });
      expect(await done(['config', 'list', '-q'], { XDG_CONFIG_HOME: elsewhere })).toBe('x\n');
      expect((await stat(join(elsewhere, 'capstan', 'config.json'))).isFile()).toBe(true);
      expect(await done(['config', 'list', '-q'], { XDG_CONFIG_HOME: 'relative' })).toBe('one\nother\n');
      expect(await readFile(file, 'utf8')).not.toContain('"x"');
    });
  });

  it('is chosen by --profile, before the environment, before CAPSTAN_PROFILE, before the one in use', async () => {
    await atHome(async ({ done }) => {
      expect(await askedBy(() => done(['runs']))).toBe('one Bearer cap_of-one');
      expect(await askedBy(() => done(['runs'], { CAPSTAN_PROFILE: 'other' }))).toBe('other Bearer cap_of-other');
      expect(await askedBy(() => done(['runs', '--profile', 'one'], { CAPSTAN_PROFILE: 'other' }))).toBe(
        'one Bearer cap_of-one',
      );
      const named = { CAPSTAN_URL: other.url, CAPSTAN_TOKEN: 'cap_of-env', CAPSTAN_PROFILE: 'one' };
      expect(await askedBy(() => done(['runs'], named))).toBe('other Bearer cap_of-env');
      expect(await askedBy(() => done(['--profile', 'one', 'runs'], named))).toBe('one Bearer cap_of-one');
      await done(['config', 'use', 'other']);
      expect(await askedBy(() => done(['runs']))).toBe('other Bearer cap_of-other');
      expect(await done(['config', 'show'])).toContain(`server\t${other.url}/\tprofile other\n`);
      await done(['config', 'use', '--none']);
      expect(await done(['config', 'show'])).toContain('\tthis machine\n');
    });
  });

  it('has a token that goes to its own host alone', async () => {
    await atHome(async ({ done, env, file }) => {
      expect(await askedBy(() => done(['runs', '--url', other.url]))).toBe('other undefined');
      expect(await askedBy(() => done(['runs', '--url', `${one.url}/`]))).toBe('one Bearer cap_of-one');
      // A token of the environment was not given for the host of a profile.
      const { code } = await capstan(['runs'], { env: { ...env, CAPSTAN_TOKEN: 'cap_of-env', CAPSTAN_PORT: '1' } });
      expect(code).toBe(3);
      await done(['config', 'set', 'one', '--url', `${one.url}/below`]);
      expect(await askedBy(() => done(['runs']))).toBe('one Bearer cap_of-one');
      const moved = await capstan(['config', 'set', 'one', '--url', other.url], { env });
      expect(moved.stderr).toContain(`its token was for ${one.url}, and is gone`);
      expect(await askedBy(() => done(['runs']))).toBe('other undefined');
      expect(await readFile(file, 'utf8')).not.toContain('cap_of-one');
    });
  });

  it('is not read while others may read it, and the way out is told', async () => {
    await atHome(async ({ env, file }) => {
      const asked = one.asked.length;
      for (const mode of [0o640, 0o604, 0o620]) {
        await chmod(file, mode);
        const { code, stdout, stderr } = await capstan(['runs'], { env });
        expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
        expect(stderr).toContain(`others may read or write it (mode 0${mode.toString(8)})\n  chmod 600 ${file}\n`);
      }
      expect(one.asked.length).toBe(asked);
      await chmod(file, 0o400);
      expect(await capstan(['runs'], { env })).toMatchObject({ code: 0 });
    });
  });

  it('in a damaged file is a fault that names the file and shows nothing of it, unless nothing of it is needed', async () => {
    await atHome(async ({ env, file }) => {
      const token = join(env.HOME ?? '', 'token');
      await writeFile(token, 'cap_x');
      for (const text of [
        '',
        '{',
        'cap_secret',
        '[]',
        '{}',
        '{"profiles":{"a":"cap_secret"}}',
        '{"profiles":{"a":{"url":1}}}',
        '{"profiles":{},"current":7}',
        '{"profiles":{"a b":{"url":"http://x"}}}',
      ]) {
        await writeFile(file, text);
        const { code, stdout, stderr } = await capstan(['runs'], { env });
        expect({ text, code, stdout }).toEqual({ text, code: 2, stdout: '' });
        expect(stderr).toContain(`${file} is damaged: `);
        expect(stderr).not.toContain('cap_secret');
        expect(await capstan(['config', 'set', 'x', '--url', one.url], { env })).toMatchObject({ code: 2 });
        expect(await readFile(file, 'utf8'), 'a damaged file was written over').toBe(text);
      }
      expect(await capstan(['config', 'show'], { env })).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(`${file} is damaged`),
      });
      const named = { ...env, CAPSTAN_URL: one.url, CAPSTAN_TOKEN: 'cap_x' };
      expect(await capstan(['runs'], { env: named })).toMatchObject({ code: 0 });
      expect(await capstan(['runs', '--url', one.url, '--token-file', token], { env })).toMatchObject({ code: 0 });
    });
  });

  it('may lie behind a link, which stays one', async () => {
    await atHome(async ({ done, env }) => {
      const [kept, folder] = [join(env.HOME ?? '', 'dotfiles'), join(env.HOME ?? '', 'xdg')];
      await mkdir(join(folder, 'capstan'), { recursive: true });
      await writeFile(kept, '{"profiles":{}}', { mode: 0o600 });
      await symlink(kept, join(folder, 'capstan', 'config.json'));
      await done(['config', 'set', 'x', '--url', one.url], { XDG_CONFIG_HOME: folder });
      expect(JSON.parse(await readFile(kept, 'utf8'))).toEqual({
        current: 'x',
        profiles: { x: { url: one.url, token: null } },
      });
    });
  });

  it('that is none is wrong usage, with the nearest one', async () => {
    await atHome(async ({ env }) => {
      const cases: [string[], RegExp][] = [
        [['runs', '--profile', 'ohter'], /--profile ohter: there is no profile of that name\n {2}did you mean other\?/],
        [['config', 'use', 'constructor'], /there is no profile of that name/],
        [['config', 'use'], /expected the name of a profile, or --none/],
        [['config', 'remove', 'x'], /there is no profile of that name/],
        [['config', 'set', '__proto__', '--url', 'http://x'], /a profile is called by/],
        [['config', 'set', 'new'], /profile new is new: --url URL is missing/],
        [['config', 'set', 'one'], /nothing to set/],
        [['config', 'set', 'one', '--url', 'https://me:pw@x'], /a URL with a user or password in it is not taken/],
        [['runs', '--profile', 'one', '--url', other.url], /--profile names the server: leave --url out/],
      ];
      for (const [args, says] of cases) {
        const { code, stdout, stderr } = await capstan(args, { env });
        expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' });
        expect(stderr).toMatch(says);
      }
    });
  });

  it('that is removed while the token of another is awaited stays away', async () => {
    await atHome(async ({ done, env, file }) => {
      const pipe = join(env.HOME ?? '', 'pipe');
      expect(await startProcess('mkfifo', [pipe], {}).finished()).toMatchObject({ code: 0 });
      const setting = await start(['config', 'set', 'other', '--token-file', pipe], { env });
      // It can be opened without waiting once somebody reads there.
      let writer: number | undefined;
      await until('the token is awaited', () => {
        writer ??= whenRead(pipe);
        return writer !== undefined;
      });
      await done(['config', 'remove', 'one']);
      await done(['config', 'set', 'third', '--url', one.url]);
      writeSync(writer ?? -1, 'cap_new');
      closeSync(writer ?? -1);
      expect(await setting.finished()).toMatchObject({ code: 0 });
      const text = await readFile(file, 'utf8');
      expect(text).not.toContain('cap_of-one');
      expect(JSON.parse(text)).toEqual({
        current: 'third',
        profiles: { other: { url: other.url, token: 'cap_new' }, third: { url: one.url, token: null } },
      });
    });
  });

  it('is kept when others are set at the same time', async () => {
    await atHome(async ({ done, file }) => {
      const names = ['a', 'b', 'c', 'd', 'e', 'f'];
      await Promise.all(names.map((name) => done(['config', 'set', name, '--url', one.url])));
      expect((await done(['config', 'list', '-q'])).trim().split('\n').sort()).toEqual([...names, 'one', 'other']);
      expect(await readdir(join(file, '..'))).toEqual(['config.json']);
    });
  });

  it('is not changed beside somebody who changes them too; a lock that was left behind is named', async () => {
    await atHome(async ({ env, file }) => {
      const before = await readFile(file, 'utf8');
      await writeFile(`${file}.lock`, '');
      const { code, stdout, stderr } = await capstan(['config', 'remove', 'one'], { env });
      expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
      expect(stderr).toContain(`${file}.lock says that another capstan changes the profiles\n`);
      expect(stderr).toContain(`rm ${file}.lock\n`);
      expect(await readFile(file, 'utf8')).toBe(before);
      expect(await capstan(['runs'], { env })).toMatchObject({ code: 0 });
    });
  });

  it('that is removed takes its token along, and is in use no more', async () => {
    await atHome(async ({ done, file }) => {
      await done(['config', 'remove', 'one']);
      const text = await readFile(file, 'utf8');
      expect(JSON.parse(text)).toMatchObject({ current: null, profiles: { other: {} } });
      expect(text).not.toContain('cap_of-one');
    });
  });

  it('needs a place: without a home there are none', async () => {
    const env = { CAPSTAN_URL: one.url, CAPSTAN_TOKEN: 'cap_x' };
    expect(await capstan(['runs'], { env })).toMatchObject({ code: 0 });
    const { code, stderr } = await capstan(['config', 'set', 'x', '--url', one.url]);
    expect(code).toBe(2);
    expect(stderr).toContain('neither HOME nor XDG_CONFIG_HOME is set');
  });
});
