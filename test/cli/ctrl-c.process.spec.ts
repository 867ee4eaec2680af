import { describe, expect, it } from 'vitest';
import { start, startOnTerminal, until } from './cli.fixture.js';
import { onStage } from './stage.fixture.js';
import { type Asked, endedJson, problem, RUN_ID, runningJson } from './stand-in.fixture.js';

const CTRL_C = '\u0003';
const CANCELED = endedJson('canceled', { code: 'canceled', kind: 'requested', detail: 'on request' });

function cancels(asked: readonly Asked[]): number {
  return asked.filter(({ path }) => path.endsWith('/cancel')).length;
}

describe('Ctrl-C while waiting', () => {
  it('without a terminal detaches at once, saying once that the run goes on and what can be done', async () => {
    await onStage(async (stage, call, server) => {
      stage.run = runningJson();
      stage.write('stdout', 'begun\n');
      const running = await start(['script', '--wait', '-'], { ...call, stdin: 'sleep 60\n' });
      await until('its output is copied', () => running.stdout() === 'begun\n');
      running.child.kill('SIGINT');
      const { code, signal, stdout, stderr } = await running.finished();
      expect({ code, signal, stdout }).toEqual({ code: 130, signal: null, stdout: 'begun\n' });
      expect(stderr.match(/goes on/g)).toHaveLength(1);
      expect(stderr).toContain(`follow it: capstan logs -f ${RUN_ID}\n`);
      expect(stderr).toContain(`cancel it: capstan cancel ${RUN_ID}\n`);
      expect(cancels(server.asked)).toBe(0);
    });
  });

  it('with --json is one problem document', async () => {
    await onStage(async (stage, call) => {
      stage.run = runningJson();
      const running = await start(['run', '--wait', '--json', '--', 'ls'], call);
      await until('the stream is watched', () => stage.viewers.size === 1);
      running.child.kill('SIGINT');
      const { code, stdout, stderr } = await running.finished();
      expect({ code, stdout }).toEqual({ code: 130, stdout: '' });
      expect(JSON.parse(stderr)).toMatchObject({ code: 'interrupted', run: RUN_ID });
    });
  });

  it('once on a terminal goes on copying for 3 s, then leaves the run alone', async () => {
    await onStage(async (stage, call, server) => {
      stage.run = runningJson();
      const running = await startOnTerminal('run --wait -- ls', { ...call, isTyping: true });
      await until('the stream is watched', () => stage.viewers.size === 1);
      stage.write('stdout', 'an open line');
      await until('its output is copied', () => running.stdout().includes('an open line'));
      running.child.stdin.write(CTRL_C);
      await until('it is told', () => running.stdout().includes('goes on'));
      stage.write('stdout', 'still copied\n');
      const { code, stdout } = await running.finished();
      expect(code).toBe(130);
      expect(stdout).toContain('still copied\r\n');
      expect(stdout.match(/goes on/g)).toHaveLength(1);
      expect(stdout).toContain(
        `an open line^C\r\ncapstan: ${RUN_ID} goes on\r\n  follow it: capstan logs -f ${RUN_ID}\r\n` +
          `  cancel it: capstan cancel ${RUN_ID}, or Ctrl-C again within 3 s\r\n`,
      );
      expect(cancels(server.asked)).toBe(0);
    });
  });

  it('twice on a terminal cancels the run, waits for the answer and says so, with exit code 130', async () => {
    await onStage(async (stage, call, server) => {
      stage.run = runningJson();
      stage.cancelReply = { body: CANCELED };
      const running = await startOnTerminal('run --wait -- ls', { ...call, isTyping: true });
      await until('the stream is watched', () => stage.viewers.size === 1);
      running.child.stdin.write(CTRL_C);
      await until('it is told', () => running.stdout().includes('Ctrl-C again within 3 s'));
      // The end of the run comes by its stream before the cancel is answered, and isn't what was waited for.
      stage.onCancel = () => stage.end(CANCELED);
      running.child.stdin.write(CTRL_C);
      const { code, stdout } = await running.finished();
      expect(code).toBe(130);
      expect(stdout.match(new RegExp(`capstan: ${RUN_ID} canceled\\r\\n`, 'g'))).toHaveLength(1);
      expect(cancels(server.asked)).toBe(1);
    });
  });

  it('twice says that a tool is still being stopped, and why a cancel was refused', async () => {
    for (const [reply, says, exit] of [
      [{ status: 202, body: runningJson() }, `capstan: ${RUN_ID} is being stopped\r\n`, 130],
      [problem(403, 'forbidden', { detail: 'not yours' }), 'capstan: Title of forbidden: not yours\r\n', 3],
    ] as const) {
      await onStage(async (stage, call) => {
        stage.run = runningJson();
        stage.cancelReply = reply;
        const running = await startOnTerminal('run --wait -- ls', { ...call, isTyping: true });
        await until('the stream is watched', () => stage.viewers.size === 1);
        running.child.stdin.write(CTRL_C);
        await until('it is told', () => running.stdout().includes('Ctrl-C again within 3 s'));
        running.child.stdin.write(CTRL_C);
        const { code, stdout } = await running.finished();
        expect({ code, said: stdout.includes(says) }).toEqual({ code: exit, said: true });
      });
    }
  });

  it('a third time ends the program though the cancel is not answered', async () => {
    await onStage(async (stage, call, server) => {
      stage.run = runningJson();
      stage.cancelReply = { live: () => undefined };
      const running = await startOnTerminal('run --wait -- ls', { ...call, isTyping: true });
      await until('the stream is watched', () => stage.viewers.size === 1);
      running.child.stdin.write(CTRL_C);
      await until('it is told', () => running.stdout().includes('Ctrl-C again within 3 s'));
      running.child.stdin.write(CTRL_C);
      await until('the cancel is sent', () => cancels(server.asked) === 1);
      running.child.stdin.write(CTRL_C);
      expect((await running.finished()).code).toBe(130);
    });
  });

  it('finds the run ended meanwhile, and exits with its code', async () => {
    await onStage(async (stage, call) => {
      stage.run = runningJson();
      const running = await startOnTerminal('run --wait -- ls', { ...call, isTyping: true });
      await until('the stream is watched', () => stage.viewers.size === 1);
      running.child.stdin.write(CTRL_C);
      await until('it is told', () => running.stdout().includes('Ctrl-C again within 3 s'));
      stage.end(endedJson('failed', { code: 'tool_failed', exitCode: 7, detail: 'exit code 7' }));
      expect((await running.finished()).code).toBe(7);
    });
  });
});
