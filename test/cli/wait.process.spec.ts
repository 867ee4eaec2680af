import { describe, expect, it } from 'vitest';
import { at, type Call, capstan, cleanEnv, mainFile, start, startProcess, until } from './cli.fixture.js';
import {
  type Answer,
  endedJson,
  outputReply,
  problem,
  type Reply,
  RUN_ID,
  runJson,
  runningJson,
  type StandIn,
  standIn,
} from './stand-in.fixture.js';

type Json = Readonly<Record<string, unknown>>;

/** One run as a server keeps it; a test moves it on. */
class Stage {
  run: Json = runJson();
  readonly output = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  /** Answers before the run is looked at. */
  readonly mishaps: Reply[] = [];

  readonly answer: Answer = (asked) => {
    if (asked.method === 'POST') return { status: 201, body: this.run };
    const mishap = this.mishaps.shift();
    if (mishap) return mishap;
    if (asked.path === `/v1/runs/${RUN_ID}`) return { body: this.run };
    const stream = asked.query.get('stream');
    const both = Buffer.concat([this.output.stdout, this.output.stderr]);
    return outputReply(asked, stream === 'stdout' || stream === 'stderr' ? this.output[stream] : both);
  };

  write(stream: 'stdout' | 'stderr', text: string): void {
    this.output[stream] = Buffer.concat([this.output[stream], Buffer.from(text)]);
  }
}

async function onStage<T>(use: (stage: Stage, call: Call, server: StandIn) => Promise<T>): Promise<T> {
  const stage = new Stage();
  const server = await standIn(stage.answer);
  try {
    return await use(stage, at(server.url), server);
  } finally {
    await server.close();
  }
}

describe('--wait', () => {
  const ends: [end: Json, code: number, line: string][] = [
    [endedJson('succeeded', { exitCode: 3, detail: 'exit code 3' }), 0, 'succeeded after 3.20s'],
    [
      endedJson('failed', { code: 'tool_failed', exitCode: 7, detail: 'exit code 7' }),
      7,
      'failed: exit code 7 (tool_failed) after 3.20s',
    ],
    [
      endedJson('failed', { code: 'tool_failed', signal: 'SIGSEGV', detail: 'signal SIGSEGV' }),
      1,
      'failed: signal SIGSEGV (tool_failed) after 3.20s',
    ],
    [
      endedJson('canceled', { code: 'canceled', kind: 'requested', exitCode: 0, detail: 'on request' }),
      1,
      'canceled: on request (canceled) after 3.20s',
    ],
  ];
  it.each(ends)(
    'of a run with the end %# exits with its code and says on standard error how it ended',
    async (run, code, line) => {
      await onStage(async (stage, call) => {
        stage.run = run;
        const finished = await capstan(['run', '--wait', '--', 'ls'], call);
        expect({ code: finished.code, stdout: finished.stdout }).toEqual({ code, stdout: '' });
        expect(finished.stderr).toBe(`capstan: ${RUN_ID} submitted\ncapstan: ${RUN_ID} ${line}\n`);
      });
    },
  );

  it('copies both streams while the run goes on, each byte once and unchanged', async () => {
    await onStage(async (stage, call, server) => {
      const running = await start(['run', '--wait', '--', 'ls'], call);
      await until('the run is submitted', () => running.stderr().includes('submitted'));
      stage.run = runningJson();
      stage.write('stdout', 'one\u0000\r\n\u001b[31m');
      stage.write('stderr', 'warning\n');
      await until('the first output is copied', () => running.stdout().includes('one'));
      await until('the first warning is copied', () => running.stderr().includes('warning'));
      stage.write('stdout', 'two');
      await until('more output is copied', () => running.stdout().endsWith('two'));
      // What is stored between the last look and the end must not be missed.
      stage.write('stdout', ' and the last');
      stage.write('stderr', 'bye\n');
      stage.run = endedJson('failed', { code: 'tool_failed', exitCode: 4, detail: 'exit code 4' });
      const { code, stdout, stderr } = await running.finished();
      expect({ code, stdout }).toEqual({ code: 4, stdout: 'one\u0000\r\n\u001b[31mtwo and the last' });
      const remarks = stderr.split('\n').filter((line) => !line.startsWith('capstan: '));
      expect(remarks).toEqual(['warning', 'bye', '']);
      const ranges = server.asked.filter(({ path }) => path.endsWith('/output')).map(({ headers }) => headers.range);
      expect(ranges).toContain('bytes=11-');
    });
  });

  it('outlives lost connections and busy answers', async () => {
    await onStage(async (stage, call) => {
      stage.mishaps.push({ hangUp: true }, problem(503, 'unavailable'), { status: 502, body: '<html>Bad Gateway' });
      stage.write('stdout', 'x'.repeat(100_000));
      stage.run = endedJson('succeeded', { exitCode: 0 });
      const { code, stdout, stderr } = await capstan(['run', '--wait', '--', 'ls'], call);
      expect({ code, length: stdout.length }).toEqual({ code: 0, length: 100_000 });
      expect(stderr).toContain('broke off');
      expect(stderr).toContain('; trying again\n');
    });
  });

  it('goes on behind the byte where a transfer broke off', async () => {
    await onStage(async (stage, call) => {
      const whole = Array.from({ length: 50_000 }, (_, i) => `line ${i}\n`).join('');
      stage.run = endedJson('succeeded', { exitCode: 0 });
      stage.write('stdout', whole);
      const { answer } = stage;
      let breaks = 0;
      const flaky = await standIn(async (asked) => {
        const reply = await answer(asked);
        const isOutput = asked.path.endsWith('/output') && asked.query.get('stream') === 'stdout';
        return isOutput && breaks++ < 3 ? { ...reply, hangUp: { afterBytes: 100_001 } } : reply;
      });
      const { code, stdout } = await capstan(['run', '--wait', '--', 'ls'], {
        env: { ...call.env, CAPSTAN_URL: flaky.url },
      });
      await flaky.close();
      expect(code).toBe(0);
      expect(stdout === whole).toBe(true);
      expect(breaks).toBe(4);
    });
  });

  it('copies each byte once from a server or proxy that knows no ranges', async () => {
    await onStage(async (stage, call) => {
      stage.run = runningJson();
      const { answer } = stage;
      const plain = await standIn((asked) => answer({ ...asked, headers: { ...asked.headers, range: undefined } }));
      const running = await start(['run', '--wait', '--', 'ls'], { env: { ...call.env, CAPSTAN_URL: plain.url } });
      for (const part of ['first\n', 'second\n', 'third\n']) {
        stage.write('stdout', part);
        await until(`${part.trim()} is copied`, () => running.stdout().endsWith(part));
      }
      stage.run = endedJson('succeeded', { exitCode: 0 });
      const { code, stdout } = await running.finished();
      await plain.close();
      expect({ code, stdout }).toEqual({ code: 0, stdout: 'first\nsecond\nthird\n' });
    });
  });

  it('with --json copies nothing and prints the ended run alone', async () => {
    await onStage(async (stage, call) => {
      stage.run = endedJson('failed', { code: 'tool_failed', exitCode: 9, detail: 'exit code 9' });
      stage.write('stdout', 'noise');
      const { code, stdout, stderr } = await capstan(['run', '--wait', '--json', '--', 'ls'], call);
      expect({ code, stderr }).toEqual({ code: 9, stderr: '' });
      expect(JSON.parse(stdout)).toEqual(stage.run);
    });
  });

  it('ends with exit code 124 when its limit has passed, and leaves the run alone', async () => {
    await onStage(async (stage, call, server) => {
      stage.run = runningJson();
      const limited = ['run', '--wait-limit', '300ms'];
      const { code, stderr } = await capstan([...limited, '--', 'ls'], call);
      expect(code).toBe(124);
      expect(stderr).toContain(`capstan: wait time over: ${RUN_ID} is running and goes on\n`);
      expect(stderr).toContain(`capstan logs --follow ${RUN_ID}`);
      expect(stderr).toContain(`capstan cancel ${RUN_ID}`);
      expect(server.asked.filter(({ method }) => method === 'POST')).toHaveLength(1);
      const json = await capstan([...limited, '--json', '--', 'ls'], call);
      expect({ code: json.code, stdout: json.stdout }).toEqual({ code: 124, stdout: '' });
      expect(JSON.parse(json.stderr)).toMatchObject({ code: 'wait_over', run: RUN_ID });
    });
  });

  it('ends at Ctrl-C with exit code 130, saying once that the run goes on and what can be done', async () => {
    await onStage(async (stage, call, server) => {
      stage.run = runningJson();
      stage.write('stdout', 'begun\n');
      const running = await start(['script', '--wait', '-'], { ...call, stdin: 'sleep 60\n' });
      await until('its output is copied', () => running.stdout() === 'begun\n');
      running.child.kill('SIGINT');
      const { code, signal, stdout, stderr } = await running.finished();
      expect({ code, signal, stdout }).toEqual({ code: 130, signal: null, stdout: 'begun\n' });
      expect(stderr.match(/goes on/g)).toHaveLength(1);
      expect(stderr).toContain(`follow it: capstan logs --follow ${RUN_ID}\n`);
      expect(stderr).toContain(`cancel it: capstan cancel ${RUN_ID}\n`);
      expect(server.asked.filter(({ method }) => method === 'POST')).toHaveLength(1);
    });
  });

  it('that loses its server names the run, with exit code 3', async () => {
    await onStage(async (stage, call, server) => {
      stage.run = runningJson();
      const running = await start(['run', '--wait', '--', 'ls'], call);
      await until('the run is followed', () => server.asked.length > 3);
      stage.mishaps.push(problem(410, 'run_removed'));
      const { code, stderr } = await running.finished();
      expect(code).toBe(3);
      expect(stderr).toContain('capstan: Title of run_removed\n');
      expect(stderr).toContain(`capstan logs --follow ${RUN_ID}`);
    });
  });

  it('says so when output was dropped before it could be copied', async () => {
    await onStage(async (stage, call) => {
      stage.run = runningJson();
      stage.write('stdout', '0123456789');
      const running = await start(['run', '--wait', '--', 'ls'], call);
      await until('the output is copied', () => running.stdout() === '0123456789');
      stage.output.stdout = Buffer.from('0123');
      await until('the gap is told', () => running.stderr().includes('a part of its output is missing here'));
      stage.write('stdout', 'tail');
      stage.run = endedJson('succeeded', { exitCode: 0 });
      const { code, stdout } = await running.finished();
      expect({ code, stdout }).toEqual({ code: 0, stdout: '0123456789tail' });
    });
  });
});

describe('a pipe that its reader closed', () => {
  it('ends the program silently, with the exit code of a broken pipe', async () => {
    await onStage(async (stage, call) => {
      stage.run = endedJson('succeeded', { exitCode: 0 });
      stage.write('stdout', 'line\n'.repeat(200_000));
      const program = `"${process.execPath}" "${await mainFile()}"`;
      for (const args of [`logs ${RUN_ID}`, `logs --follow ${RUN_ID}`, 'run --wait -- ls']) {
        const line = `{ ${program} ${args}; echo "exit $?" >&3; } 3>&2 | head -n 1`;
        const { stdout, stderr } = await startProcess('sh', ['-c', line], { env: cleanEnv(call.env) }).finished();
        expect(stdout).toBe('line\n');
        expect(stderr.replace(`capstan: ${RUN_ID} submitted\n`, '')).toBe('exit 141\n');
      }
    });
  });
});

describe('logs', () => {
  it('prints the stored bytes unchanged, of both streams or of one', async () => {
    await onStage(async (stage, call, server) => {
      stage.run = endedJson('succeeded', { exitCode: 0 });
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

  it('--follow goes on until the run ends, with exit code 0 whatever the end', async () => {
    await onStage(async (stage, call) => {
      stage.run = runningJson();
      stage.write('stdout', 'a');
      const running = await start(['logs', '--follow', RUN_ID], call);
      await until('the first output is copied', () => running.stdout() === 'a');
      stage.write('stdout', 'b');
      stage.run = endedJson('failed', { code: 'tool_failed', exitCode: 2, detail: 'exit code 2' });
      const { code, stdout, stderr } = await running.finished();
      expect({ code, stdout }).toEqual({ code: 0, stdout: 'ab' });
      expect(stderr).toBe(`capstan: ${RUN_ID} failed: exit code 2 (tool_failed) after 3.20s\n`);
    });
  });
});
