import { describe, expect, it } from 'vitest';
import { cutLine } from '../../src/runs/output.rules.js';
import { capstan, start, until } from './cli.fixture.js';
import { onStage, Stage } from './stage.fixture.js';
import { type Asked, endedJson, outputReply, RUN_ID, runningJson, standIn } from './stand-in.fixture.js';

const FAILED = endedJson('failed', { code: 'tool_failed', exitCode: 2, detail: 'exit code 2' });
const SUCCEEDED = endedJson('succeeded', { exitCode: 0 });

function lines(text: string): unknown[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
}

describe('logs', () => {
  it('prints the stored bytes unchanged, of both streams or of one', async () => {
    await onStage(async (stage, call, server) => {
      stage.run = SUCCEEDED;
      const bytes = Buffer.from([0, 1, 0xff, 0xfe, 0x0d, 0x0a, 0x1b, 0x5b, 0x41, 0x80]);
      stage.output.stdout = bytes;
      stage.write('stderr', 'oops');
      const both = await capstan(['logs', RUN_ID], call);
      expect({ code: both.code, stderr: both.stderr }).toEqual({ code: 0, stderr: '' });
      expect(both.bytes.equals(Buffer.concat([bytes, Buffer.from('oops')]))).toBe(true);
      expect(server.asked.map(({ path, query }) => `${path}?${query}`)).toEqual([`/v1/runs/${RUN_ID}/output?`]);
      expect((await capstan(['logs', RUN_ID, '--stream', 'stderr'], call)).stdout).toBe('oops');
      expect((await capstan(['logs', '--stream', 'stdout', RUN_ID], call)).bytes.equals(bytes)).toBe(true);
    });
  });

  it('asks for the last lines alone with --tail', async () => {
    await onStage(async (_, call, server) => {
      await capstan(['logs', RUN_ID, '--tail', '20', '--stream', 'stdout'], call);
      expect(server.asked.map(({ query }) => query.toString())).toEqual(['stream=stdout&tail=20']);
    });
  });

  it('goes on behind the byte where a transfer broke off, also where nobody knows ranges', async () => {
    const stage = new Stage();
    const whole = Array.from({ length: 50_000 }, (_, i) => `line ${i}\n`).join('');
    stage.write('stdout', whole);
    for (const knowsRanges of [true, false]) {
      let asks = 0;
      const flaky = await standIn(async (asked) => {
        const headers = knowsRanges ? asked.headers : { ...asked.headers, range: undefined };
        const reply = await stage.answer({ ...asked, headers });
        asks += 1;
        return asks <= 3 ? { ...reply, hangUp: { afterBytes: 100_001 * (knowsRanges ? 1 : asks) } } : reply;
      });
      const { code, stdout } = await capstan(['logs', RUN_ID], { env: { CAPSTAN_URL: flaky.url } });
      await flaky.close();
      expect({ knowsRanges, code, asks }).toEqual({ knowsRanges, code: 0, asks: 4 });
      expect(stdout === whole).toBe(true);
    }
  });

  describe('of a run whose output is dropped while the connection is away', () => {
    const BEFORE = Buffer.from('a'.repeat(100_000) + 'b'.repeat(100_000));
    const AFTER = Buffer.from('a'.repeat(100_000) + 'c'.repeat(100_000));

    /** The first connection breaks off in the midst of the text; the next one answers with another. */
    async function logs(text: Buffer, [before, after]: string[], more: { ranges?: false; args?: string[] } = {}) {
      let asks = 0;
      const flaky = await standIn((asked: Asked) => {
        asks += 1;
        const known = more.ranges === false ? { ...asked, headers: { ...asked.headers, range: undefined } } : asked;
        const reply = outputReply(known, asks === 1 ? BEFORE : text);
        const headers = { ...reply.headers, 'capstan-output-cut': (asks === 1 ? before : after) ?? '' };
        return { ...reply, headers, ...(asks === 1 ? { hangUp: { afterBytes: 150_000 } } : {}) };
      });
      const finished = await capstan(['logs', RUN_ID, ...(more.args ?? [])], { env: { CAPSTAN_URL: flaky.url } });
      await flaky.close();
      return { ...finished, asks };
    }

    it('fails rather than go on behind a byte that has moved, also where nobody knows ranges', async () => {
      for (const more of [{}, { ranges: false as const }]) {
        const { code, stdout, stderr, asks } = await logs(AFTER, ['4096', '8192'], more);
        expect({ code, asks, isBegun: BEFORE.toString().startsWith(stdout) }).toEqual({
          code: 3,
          asks: 2,
          isBegun: true,
        });
        expect(stderr).toContain('capstan: output: the connection broke off, and more of the output was dropped');
        expect(stderr).toContain(`  ask again: capstan logs ${RUN_ID}\n  follow it: capstan logs -f ${RUN_ID}\n`);
      }
      const json = await logs(AFTER, ['0', '8192'], { args: ['--json'] });
      expect({ code: json.code, stdout: json.stdout }).toEqual({ code: 3, stdout: '' });
      expect(JSON.parse(json.stderr)).toMatchObject({ code: 'output_moved', hint: expect.stringContaining('logs -f') });
    });

    it('does not take fewer bytes than it has for the end', async () => {
      const shorter = await logs(AFTER.subarray(0, 1_000), ['4096', '4096']);
      expect(shorter).toMatchObject({ code: 3, stderr: expect.stringContaining('more of the output was dropped') });
    });

    it('goes on when what is missing is the same as before', async () => {
      const { code, stdout } = await logs(BEFORE, ['4096', '4096']);
      expect({ code, isWhole: stdout === BEFORE.toString() }).toEqual({ code: 0, isWhole: true });
    });
  });

  it('does not pass half of the last lines for all of them', async () => {
    const stage = new Stage();
    stage.write('stdout', 'line\n'.repeat(50_000));
    const flaky = await standIn(async (asked) => ({ ...(await stage.answer(asked)), hangUp: { afterBytes: 100_000 } }));
    const { code, stderr } = await capstan(['logs', RUN_ID, '--tail', '50000'], { env: { CAPSTAN_URL: flaky.url } });
    await flaky.close();
    expect(code).toBe(3);
    expect(stderr).toContain('broke off in the midst of the last lines');
  });

  it('is one JSON document with --json: text, or base64 when it is none', async () => {
    await onStage(async (stage, call) => {
      stage.write('stderr', 'grüße\n');
      stage.output.stdout = Buffer.from([0xff, 0x00]);
      const text = await capstan(['logs', RUN_ID, '--stream', 'stderr', '--json'], call);
      expect(JSON.parse(text.stdout)).toEqual({ run: RUN_ID, stream: 'stderr', encoding: 'utf8', data: 'grüße\n' });
      const bytes = await capstan(['--json', 'logs', RUN_ID, '--stream', 'stdout'], call);
      expect(JSON.parse(bytes.stdout)).toEqual({ run: RUN_ID, stream: 'stdout', encoding: 'base64', data: '/wA=' });
    });
  });
});

describe('logs -f', () => {
  it('goes on until the run ends, both streams as they came, with exit code 0 whatever the end', async () => {
    await onStage(async (stage, call) => {
      stage.run = runningJson();
      stage.write('stdout', 'a');
      const running = await start(['logs', '-f', RUN_ID], call);
      await until('the first output is copied', () => running.stdout() === 'a');
      stage.write('stderr', 'b');
      await until('what comes is copied', () => running.stdout() === 'ab');
      stage.cut(7);
      stage.write('stdout', 'c');
      stage.end(FAILED);
      const { code, stdout, stderr } = await running.finished();
      expect(code).toBe(0);
      expect(stdout).toBe(`ab${cutLine(undefined, 2, 9)}c`);
      expect(stderr).toBe(`capstan: ${RUN_ID} failed: exit code 2 (tool_failed) after 3.20s\n`);
    });
  });

  it('of one stream copies no other, and with --tail 0 only what comes', async () => {
    await onStage(async (stage, call, server) => {
      stage.run = runningJson();
      stage.write('stderr', 'before\n');
      const running = await start(['logs', '-f', '--stream', 'stderr', '--tail', '0', RUN_ID], call);
      await until('the stream is watched', () => stage.viewers.size === 1);
      stage.write('stdout', 'another stream\n');
      stage.write('stderr', 'after\n');
      await until('it is copied', () => running.stdout() !== '');
      stage.breakOff();
      await until('it is watched again', () => stage.viewers.size === 1 && server.asked.length === 3);
      stage.end(SUCCEEDED);
      expect(await running.finished()).toMatchObject({ code: 0, stdout: 'after\n' });
      // Behind a message the beginning is decided: a tail would leave out what came in between.
      const asked = server.asked.filter(({ path }) => path.endsWith('/stream')).map(({ query }) => query.toString());
      expect(asked).toEqual(['stream=stderr&tail=0', 'stream=stderr']);
    });
  });

  it('with --json is one document a line as it comes, named for what it is', async () => {
    await onStage(async (stage, call) => {
      stage.run = runningJson();
      const running = await start(['logs', '-f', '--json', RUN_ID], call);
      await until('the stream is watched', () => stage.viewers.size === 1);
      stage.event('run.started', { fence: 1 });
      stage.write('stdout', 'grüße\n');
      await until('it is printed', () => running.stdout().includes('grüße'));
      stage.write('stderr', Buffer.from([0xff]));
      stage.cut(null);
      stage.end(FAILED);
      const { code, stdout, stderr } = await running.finished();
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(lines(stdout)).toEqual([
        { event: expect.objectContaining({ seq: null, type: 'run.started', data: { fence: 1 } }) },
        { output: expect.objectContaining({ stream: 'stdout', batch: 1, encoding: 'utf8', data: 'grüße\n' }) },
        { output: expect.objectContaining({ stream: 'stderr', batch: 2, encoding: 'base64', data: '/w==' }) },
        { cut: { fence: 1, after: 2, next: 13, bytes: null } },
        { end: FAILED },
      ]);
    });
  });

  it('ends at Ctrl-C with exit code 130 and says that the run goes on, and how to cancel it', async () => {
    await onStage(async (stage, call, server) => {
      stage.run = runningJson();
      const told = `capstan: ${RUN_ID} goes on\n  cancel it: capstan cancel ${RUN_ID}\n`;
      for (const [more, stderr] of [
        [[], told],
        [['--json'], expect.stringContaining('"code":"interrupted"')],
      ] as const) {
        const running = await start(['logs', '-f', RUN_ID, ...more], call);
        await until('the stream is watched', () => stage.viewers.size === 1);
        running.child.kill('SIGINT');
        expect(await running.finished()).toMatchObject({ code: 130, stderr });
        await until('nobody watches', () => stage.viewers.size === 0);
      }
      expect(server.asked.every(({ method }) => method === 'GET')).toBe(true);
    });
  });
});
