import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { capstan, inFolder } from './cli.fixture.js';
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

interface Files {
  readonly flag: string;
  readonly variable: string;
  readonly dataDir: string;
  readonly folder: string;
}

async function withFiles<T>(use: (files: Files) => Promise<T>): Promise<T> {
  return inFolder(async (folder) => {
    const [flag, variable, dataDir] = ['flag', 'variable', '.capstan'].map((name) => join(folder, name)) as string[];
    await mkdir(dataDir ?? '');
    await writeFile(flag ?? '', 'cap_from-flag-file\n');
    await writeFile(variable ?? '', 'cap_from-variable-file\n');
    await writeFile(join(dataDir ?? '', 'admin-token'), 'cap_from-data-dir\n');
    return use({ flag: flag ?? '', variable: variable ?? '', dataDir: dataDir ?? '', folder });
  });
}

/** What the server was told by the next request. */
function authorization(server: StandIn): string | undefined {
  return server.asked.at(-1)?.headers.authorization;
}

function portOf({ url }: StandIn): string {
  return new URL(url).port;
}

describe('the token', () => {
  it('is the one of --token-file, before CAPSTAN_TOKEN, before CAPSTAN_TOKEN_FILE, before the data folder’s own', async () => {
    await withFiles(async ({ flag, variable, folder }) => {
      const env: Record<string, string> = {
        CAPSTAN_PORT: portOf(one),
        CAPSTAN_TOKEN: 'cap_from-variable',
        CAPSTAN_TOKEN_FILE: variable,
      };
      const sent: (string | undefined)[] = [];
      const ask = async (args: string[]) => {
        const { code, stderr } = await capstan(args, { env, cwd: folder });
        expect({ code, stderr }).toEqual({ code: 0, stderr: 'capstan: no such runs\n' });
        sent.push(authorization(one));
      };
      await ask(['runs', '--token-file', flag]);
      await ask(['runs']);
      delete env.CAPSTAN_TOKEN;
      await ask(['runs']);
      delete env.CAPSTAN_TOKEN_FILE;
      await ask(['runs']);
      expect(sent).toEqual([
        'Bearer cap_from-flag-file',
        'Bearer cap_from-variable',
        'Bearer cap_from-variable-file',
        'Bearer cap_from-data-dir',
      ]);
    });
  });

  it('in the data folder is looked for where CAPSTAN_DATA_DIR says', async () => {
    await withFiles(async ({ dataDir }) => {
      await capstan(['runs'], { env: { CAPSTAN_PORT: portOf(one), CAPSTAN_DATA_DIR: dataDir }, cwd: '/' });
      expect(authorization(one)).toBe('Bearer cap_from-data-dir');
    });
  });

  it('in the data folder goes to this machine’s own server alone, at the address its settings name', async () => {
    await withFiles(async ({ folder }) => {
      const own = { CAPSTAN_PORT: portOf(one) };
      for (const args of [
        ['runs', '--url', other.url],
        ['runs', '--url', `http://localhost:${portOf(one)}`],
      ]) {
        const { code } = await capstan(args, { env: own, cwd: folder });
        expect(code).toBe(0);
        const server = args.includes(other.url) ? other : one;
        expect(authorization(server)).toBeUndefined();
      }
      await capstan(['runs'], { env: { ...own, CAPSTAN_URL: other.url }, cwd: folder });
      expect(authorization(other)).toBeUndefined();
      await capstan(['runs', '--url', `${one.url}/`], { env: own, cwd: folder });
      expect(authorization(one)).toBe('Bearer cap_from-data-dir');
    });
  });

  it('that stands beside a CAPSTAN_URL is not sent to another host', async () => {
    await withFiles(async ({ variable, flag }) => {
      const credentials: Record<string, string>[] = [{ CAPSTAN_TOKEN: 'cap_x' }, { CAPSTAN_TOKEN_FILE: variable }];
      for (const credential of credentials) {
        const asked = other.asked.length;
        const env = { CAPSTAN_URL: one.url, ...credential };
        const { code, stderr } = await capstan(['runs', '--url', other.url], { env });
        expect(code).toBe(3);
        expect(stderr).toContain(`belongs to ${one.url} (CAPSTAN_URL) and is not sent to ${other.url}`);
        expect(stderr).not.toMatch(/cap_/);
        expect(other.asked.length).toBe(asked);
        expect(await capstan(['runs', '--url', other.url, '--token-file', flag], { env })).toMatchObject({ code: 0 });
        expect(authorization(other)).toBe('Bearer cap_from-flag-file');
        expect(await capstan(['runs', '--url', `${one.url}/`], { env })).toMatchObject({ code: 0 });
      }
    });
  });

  it('without a CAPSTAN_URL beside it is for the host that the command line names', async () => {
    await capstan(['runs', '--url', other.url], { env: { CAPSTAN_TOKEN: 'cap_from-variable' } });
    expect(authorization(other)).toBe('Bearer cap_from-variable');
  });

  it('is not carried along by a redirect', async () => {
    const asked = other.asked.length;
    const door = await standIn(() => ({ status: 307, headers: { location: `${other.url}/v1/runs` } }));
    const { code, stderr } = await capstan(['runs'], { env: { CAPSTAN_URL: door.url, CAPSTAN_TOKEN: 'cap_x' } });
    await door.close();
    expect(code).toBe(3);
    expect(stderr).toContain(`points to ${other.url}/v1/runs: name that server instead`);
    expect(other.asked.length).toBe(asked);
  });

  it('that can’t be read, or is none, is told without its text', async () => {
    await inFolder(async (folder) => {
      const key = join(folder, 'id_ed25519');
      await writeFile(key, '-----BEGIN PRIVATE KEY-----\nhunter2\n');
      const wrong = await capstan(['runs', '--token-file', key, '--url', one.url]);
      expect(wrong).toMatchObject({ code: 3, stderr: expect.stringContaining('holds no token') });
      // It has no end: no more of it is read than a token could be.
      const endless = await capstan(['runs', '--token-file', '/dev/zero', '--url', one.url]);
      expect(endless).toMatchObject({ code: 3, stderr: expect.stringContaining('holds no token') });
      await writeFile(key, `cap_x${' '.repeat(5_000)}`);
      const cut = await capstan(['runs', '--token-file', key, '--url', one.url]);
      expect(cut, 'a part of a file passed for the whole').toMatchObject({ code: 3, stdout: '' });
      expect(cut.stderr).toContain('holds no token');
      expect(wrong.stderr).not.toContain('hunter2');
      const missing = await capstan(['runs', '--url', one.url], { env: { CAPSTAN_TOKEN_FILE: `${folder}/none` } });
      expect(missing).toMatchObject({ code: 3, stderr: expect.stringContaining('does not exist') });
    });
  });

  it('in a URL is refused and not repeated', async () => {
    const { code, stderr } = await capstan(['runs'], { env: { CAPSTAN_URL: 'https://me:hunter2@example.org' } });
    expect(code).toBe(2);
    expect(stderr).toContain('CAPSTAN_URL: a URL with a user or password in it is not taken');
    expect(stderr).not.toContain('hunter2');
  });

  it('is looked up below a path that the URL names', async () => {
    await capstan(['runs', '--url', `${one.url}/behind/a/proxy`], { env: { CAPSTAN_TOKEN: 'cap_x' } });
    expect(one.asked.at(-1)?.path).toBe('/behind/a/proxy/v1/runs');
  });
});
