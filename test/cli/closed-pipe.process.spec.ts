import { describe, expect, it } from 'vitest';
import { Failure } from '../../src/cli/failure.js';
import { type Call, cleanEnv, mainFile, startProcess } from './cli.fixture.js';
import { capstanHere } from './here.fixture.js';
import { onStage } from './stage.fixture.js';
import { endedJson, RUN_ID, runningJson } from './stand-in.fixture.js';

describe('a pipe that its reader closed', () => {
  /** What reaches standard error when `head` has read one line; `redirect` is of the program. */
  async function cutShort(call: Call, args: string, redirect = '') {
    const program = `"${process.execPath}" "${await mainFile()}"`;
    const line = `{ ${program} ${args} ${redirect}; echo "exit $?" >&3; } 3>&2 | head -n 1`;
    return startProcess('sh', ['-c', line], { env: cleanEnv(call.env) }).finished();
  }

  const GOES_ON =
    `capstan: standard output was closed; ${RUN_ID} goes on to its own end\n` +
    `  follow it: capstan logs -f ${RUN_ID}\n  cancel it: capstan cancel ${RUN_ID}\n`;

  it('ends the program with the exit code of a broken pipe, silently where nothing was begun', async () => {
    await onStage(async (stage, call) => {
      stage.run = endedJson('succeeded', { exitCode: 0 });
      stage.write('stdout', 'line\n'.repeat(200_000));
      for (const args of [`logs ${RUN_ID}`, `logs --follow ${RUN_ID}`]) {
        const { stdout, stderr } = await cutShort(call, args);
        expect({ args, stdout, stderr }).toEqual({ args, stdout: 'line\n', stderr: 'exit 141\n' });
      }
    });
  });

  it('leaves a run behind that goes on: that is said once, as far as somebody listens', async () => {
    await onStage(async (stage, call) => {
      stage.run = runningJson();
      stage.write('stdout', 'line\n'.repeat(200_000));
      expect(await cutShort(call, 'run --wait -- ls')).toMatchObject({
        stdout: 'line\n',
        stderr: `capstan: ${RUN_ID} submitted\n${GOES_ON}exit 141\n`,
      });
      const both = await cutShort(call, 'run --wait -- ls', '2>&1');
      expect(both).toMatchObject({ stdout: `capstan: ${RUN_ID} submitted\n`, stderr: 'exit 141\n' });
    });
  });

  it('before the id of a new run was taken makes no secret of it', async () => {
    const readerGone = () => Promise.reject(new Failure('readerGone', { title: 'pipe closed' }));
    await onStage(async (_, call) => {
      const stdout = { isTerminal: false, columns: undefined, isLineOpen: false, write: readerGone };
      const plain = await capstanHere(['run', '--', 'ls'], { env: call.env ?? {}, stdout });
      expect(plain).toMatchObject({ code: 141, stderr: GOES_ON });
      const json = await capstanHere(['run', '--json', '--', 'ls'], { env: call.env ?? {}, stdout });
      expect(json).toMatchObject({ code: 141, stderr: '' });
      const full = new Failure('unable', { title: 'output', detail: 'cannot write', code: 'output' });
      const disk = { ...stdout, write: () => Promise.reject(full) };
      const { code, stderr } = await capstanHere(['run', '--', 'ls'], { env: call.env ?? {}, stdout: disk });
      expect(code).toBe(3);
      expect(stderr).toContain(`cannot write\n  follow it: capstan logs -f ${RUN_ID}\n`);
    });
  });
});
