/** The completion of bash, as bash itself has it. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { capstan, cleanEnv, inFolder, mainFile, startProcess } from './cli.fixture.js';

/** Words as bash splits them at blanks, = and colons; the last one is at the cursor. */
type Line = readonly string[];

let script = '';
let main = '';

beforeAll(async () => {
  main = await mainFile();
  script = (await capstan(['completion', 'bash'])).stdout;
});

/** What is offered for each line, in one bash. */
async function offered(lines: readonly Line[], folder: string): Promise<string[][]> {
  const quoted = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;
  const asked = lines.map(
    (line) =>
      `COMP_WORDS=(${line.map(quoted).join(' ')}); COMP_CWORD=${line.length - 1}; _capstan; (IFS=$'\\t'; echo "\${COMPREPLY[*]}")`,
  );
  const program = `capstan() { "${process.execPath}" "${main}" "$@"; }\n`;
  await writeFile(join(folder, 'try.sh'), `${program}${script}\n${asked.join('\n')}\n`);
  const env = cleanEnv({ HOME: folder });
  const { code, stdout, stderr } = await startProcess('bash', ['--norc', '--noprofile', 'try.sh'], {
    cwd: folder,
    env,
  }).finished();
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split('\t').filter((word) => word !== ''));
}

describe('bash', () => {
  it('is offered commands, options and the words that may stand at a place', async () => {
    const cases: [Line, string[]][] = [
      [
        ['capstan', 'ru'],
        ['run', 'runs'],
      ],
      [
        ['capstan', 'audit', 're'],
        ['receipt', 'report'],
      ],
      [['capstan', 'workers', 'd'], ['drain']],
      [['capstan', 'runs', '--st'], ['--state']],
      [['capstan', 'cancel', '--pa'], ['--parent']],
      [['capstan', 'runs', '--state', 'f'], ['failed']],
      [['capstan', 'runs', '--state', 'failed,ti'], ['failed,timed_out']],
      [['capstan', 'runs', '--kind', '=', 'h'], ['http']],
      [
        ['capstan', 'runs', '--origin', ''],
        ['api', 'schedule', 'trigger', 'parent'],
      ],
      [['capstan', 'script', '--interpreter', 'p'], ['python3']],
      [
        ['capstan', 'completion', ''],
        ['bash', 'zsh'],
      ],
      [['capstan', 'doctor', '--a'], ['--all']],
    ];
    await inFolder(async (folder) => {
      const found = await offered(
        cases.map(([line]) => line),
        folder,
      );
      expect(found).toEqual(cases.map(([, words]) => words));
    });
  });

  it('knows a command by its place: the value of an option is none, and behind the words of a tool nothing is ours', async () => {
    const cases: [Line, string[]][] = [
      [
        ['capstan', '--profile', 'audit', 'work'],
        ['workers', 'worker'],
      ],
      [['capstan', 'runs', '--queue', 'audit', '--kind', 'h'], ['http']],
      [['capstan', '--url', 'http', ':', '//x', 'runs', '--st'], ['--state']],
      [['capstan', 'runs', '--label', 'a', '=', 'b', '--st'], ['--state']],
      [['capstan', 'run', '--wait', '--', 'ls', '--st'], []],
      [['capstan', 'run', 'ls', '--st'], []],
    ];
    await inFolder(async (folder) => {
      const found = await offered(
        cases.map(([line]) => line),
        folder,
      );
      expect(found).toEqual(cases.map(([, words]) => words));
    });
  });

  it('is offered a file by its name, whatever is in it', async () => {
    await inFolder(async (folder) => {
      for (const name of ['a*c', 'abc', 'my notes.txt', 'my  *.txt']) await writeFile(join(folder, name), '');
      const found = await offered(
        [
          ['capstan', 'script', 'a*'],
          ['capstan', 'runs', '--token-file', 'my'],
        ],
        folder,
      );
      expect(found.map((names) => names.sort())).toEqual([['a*c'], ['my  *.txt', 'my notes.txt']]);
    });
  });

  it('is offered files where a file is named, and profiles by their names', async () => {
    await inFolder(async (folder) => {
      await writeFile(join(folder, 'deploy.sh'), '');
      await mkdir(join(folder, 'deep'));
      const set = ['config', 'set', 'prod', '--url', 'http://127.0.0.1:1'];
      await capstan(set, { env: { HOME: folder } });
      const found = await offered(
        [
          ['capstan', 'script', 'dep'],
          ['capstan', 'runs', '--token-file', 'dep'],
          ['capstan', 'verify', 'x', 'dep'],
          ['capstan', 'verify', '--evidence', 'de'],
          ['capstan', 'run', 'cat', 'dep'],
          ['capstan', 'runs', '--profile', ''],
          ['capstan', 'config', 'use', 'p'],
        ],
        folder,
      );
      expect(found).toEqual([...Array(3).fill(['deploy.sh']), ['deep'], ['deploy.sh'], ['prod'], ['prod']]);
    });
  });
});

describe('a completion', () => {
  it('is for a shell that there is one for, and is no JSON', async () => {
    for (const args of [[], ['fish'], ['bash', '--json']]) {
      const { code, stdout } = await capstan(['completion', ...args]);
      expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' });
    }
  });
});
