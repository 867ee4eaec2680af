/** The completion of zsh, as somebody sees it who types and presses TAB. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { capstan, cleanEnv, inFolder, mainFile, startProcess, until } from './cli.fixture.js';

const TAB = '\t';
const CLEAR_LINE = '\u0015';

describe('zsh', () => {
  it('completes commands, options, words, profiles and files with TAB', async () => {
    const main = await mainFile();
    const { stdout: script } = await capstan(['completion', 'zsh']);
    await inFolder(async (folder) => {
      await writeFile(join(folder, 'deploy.sh'), '');
      const set = ['config', 'set', 'prod', '--url', 'http://127.0.0.1:1'];
      await capstan(set, { env: { HOME: folder } });
      const setup = [
        "PS1='> '",
        'autoload -Uz compinit; compinit -u -D',
        `capstan() { "${process.execPath}" "${main}" "$@"; }`,
        'source ./capstan.zsh',
        'print ready:$?',
      ];
      await writeFile(join(folder, 'capstan.zsh'), script);
      await writeFile(join(folder, 'setup.zsh'), `${setup.join('\n')}\n`);
      const env = cleanEnv({ HOME: folder, TERM: 'dumb', SHELL: '/bin/sh', LC_ALL: 'C.UTF-8' });
      const zsh = startProcess('script', ['-qec', 'stty cols 200; exec zsh -f -i', '/dev/null'], {
        cwd: folder,
        env,
        isTyping: true,
      });
      zsh.child.stdin.write('source ./setup.zsh\n');
      await until('zsh is ready', () => zsh.stdout().includes('ready:0'), 60_000);
      const cases = [
        ['capstan config us', 'capstan config use '],
        ['capstan audit veri', 'capstan audit verify '],
        ['capstan runs --sta', 'capstan runs --state='],
        ['capstan runs --kind ht', 'capstan runs --kind http '],
        ['capstan runs --state failed,tim', 'capstan runs --state failed,timed_out,'],
        ['capstan --profile pr', 'capstan --profile prod '],
        ['capstan script dep', 'capstan script deploy.sh '],
        ['capstan run --wait -- cat dep', 'capstan run --wait -- cat deploy.sh '],
      ] as const;
      for (const [typed, completed] of cases) {
        const from = zsh.stdout().length;
        zsh.child.stdin.write(typed + TAB);
        await until(`${typed} is completed`, () => zsh.stdout().slice(from).includes(completed), 30_000);
        zsh.child.stdin.write(`${CLEAR_LINE}print next${from}\n`);
        await until('the line is gone', () => zsh.stdout().includes(`\nnext${from}`), 30_000);
      }
      zsh.child.stdin.write('exit\n');
      expect((await zsh.finished()).code).toBe(0);
    });
  });
});
