import { execFileSync } from 'node:child_process';
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { removeAbandoned } from '../../../src/execution/supervisor/abandoned.js';
import { removeTree } from '../../../src/execution/supervisor/folder.js';
import { compiledSource } from '../../compiled.js';

const DEEP = 'for (let i = 0; i < 60; i++) { fs.mkdirSync("d".repeat(100)); process.chdir("d".repeat(100)); }';

/** Runs as a user who is not root, to whom permissions mean something. */
async function removeAsOrdinaryUser(prepare: string): Promise<{ folder: string; outside: string }> {
  const base = mkdtempSync(join(tmpdir(), 'capstan-spec-'));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const [folder, outside] = [join(base, 'folder'), join(base, 'outside')];
  const user = userInfo().uid === 0 ? { uid: 65_534, gid: 65_534 } : {};
  if ('uid' in user) execFileSync('chown', [String(user.uid), base]);
  execFileSync('sh', ['-c', `mkdir ${folder}; : > ${outside}; cd ${folder}; ${prepare}`], user);
  const module = join(await compiledSource(), 'execution/supervisor/folder.js');
  const script = `import(${JSON.stringify(module)}).then(({ removeTree }) => removeTree(${JSON.stringify(folder)}))`;
  execFileSync(process.execPath, ['-e', script], { ...user, cwd: '/' });
  return { folder, outside };
}

describe('a tool’s folder is removed', () => {
  it.each([
    ['empty', ':'],
    ['with folders that may not be written or entered', 'mkdir -p a/b/c; : > a/b/f; chmod 500 a; chmod 000 a/b/c . '],
    ['with a thousand files', 'mkdir d; for i in $(seq 1000); do : > d/$i; done'],
    ['with names that are not text', String.raw`: > "$(printf '\377\n')"; mkdir "$(printf '\376')"`],
    ['with a path longer than one call takes', `${process.execPath} -e '${DEEP}'`],
    ['with links out of it, which are not followed', 'ln -s ../outside file; ln -s / root; ln -s . self'],
  ])('%s', async (_name, prepare) => {
    const { folder, outside } = await removeAsOrdinaryUser(prepare);
    expect(existsSync(folder)).toBe(false);
    expect(existsSync(outside)).toBe(true);
  });
});

describe('a link in the place of a folder is not followed', () => {
  function linked(name: string) {
    const base = mkdtempSync(join(tmpdir(), 'capstan-spec-'));
    onTestFinished(() => rmSync(base, { recursive: true, force: true }));
    const [temp, precious, link] = [join(base, 'temp'), join(base, 'precious'), join(base, 'temp', name)];
    mkdirSync(temp);
    mkdirSync(precious, { mode: 0o500 });
    symlinkSync(precious, link);
    return { temp, precious, link };
  }

  it.each([
    ['few files', 3],
    ['more files than are removed one by one', 300],
  ])('by whoever removes it: %s behind it stay, with their permissions', async (_name, count) => {
    const { precious, link } = linked('t1');
    execFileSync('sh', ['-c', `chmod u+w . && for i in $(seq ${count}); do : > $i; done; chmod 500 .`], {
      cwd: precious,
    });
    await removeTree(link);
    expect(readdirSync(precious)).toHaveLength(count);
    expect(statSync(precious).mode & 0o777).toBe(0o500);
  });

  it('by the next supervisor, whatever its name: anybody may put a link into the folder for temporary files', async () => {
    const { temp, precious } = linked('capstan-tools-of-mine');
    execFileSync('chmod', ['700', precious]);
    writeFileSync(join(precious, 'data'), 'mine');
    utimesSync(precious, 1, 1);
    await removeAbandoned(mkdtempSync(join(temp, 'capstan-tools-')));
    expect(readdirSync(precious)).toEqual(['data']);
  });

  it('nor is a file removed', async () => {
    const { precious } = linked('t1');
    const file = join(precious, 'file');
    execFileSync('sh', ['-c', 'chmod u+w . && : > file'], { cwd: precious });
    await removeTree(file);
    expect(existsSync(file)).toBe(true);
  });
});

describe('a folder that a killed supervisor left behind', () => {
  it('S4-19 is removed by the next one; that of a living supervisor, a young one and a stranger are left alone', async () => {
    const base = mkdtempSync(join(tmpdir(), 'capstan-spec-'));
    onTestFinished(() => rmSync(base, { recursive: true, force: true }));
    const made = (name: string) => {
      execFileSync('sh', ['-c', `mkdir ${name}; mkfifo ${name}/keeper; : > ${name}/secret`], { cwd: base });
      return join(base, name);
    };
    const [dead, living, stranger] = [made('capstan-tools-dead'), made('capstan-tools-live'), made('other-dead')];
    const readFd = openSync(join(living, 'keeper'), constants.O_RDONLY | constants.O_NONBLOCK);
    onTestFinished(() => closeSync(readFd));
    const [young, own] = [made('capstan-tools-young'), made('capstan-tools-own')];
    for (const folder of [dead, living, stranger]) utimesSync(folder, Date.now() / 1_000 - 61, Date.now() / 1_000 - 61);
    await removeAbandoned(own);
    expect([dead, living, stranger, young, own].map((folder) => existsSync(folder))).toEqual([
      false,
      true,
      true,
      true,
      true,
    ]);
  });

  it('S4-19 is told by the time that the file system keeps, whatever this process takes for the time', async () => {
    const base = mkdtempSync(join(tmpdir(), 'capstan-spec-'));
    onTestFinished(() => rmSync(base, { recursive: true, force: true }));
    const [young, own] = ['capstan-tools-young', 'capstan-tools-own'].map((name) => join(base, name));
    for (const folder of [young ?? '', own ?? '']) mkdirSync(folder);
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 3_600_000);
    onTestFinished(() => void vi.restoreAllMocks());
    await removeAbandoned(own ?? '');
    expect(existsSync(young ?? '')).toBe(true);
  });
});
