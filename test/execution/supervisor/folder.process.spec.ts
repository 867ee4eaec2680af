import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
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
