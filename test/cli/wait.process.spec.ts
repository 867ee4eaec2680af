import { describe, expect, it } from 'vitest';
import { systemTiming } from '../../src/platform/time.js';
import { capstan, start, startOnTerminal, until } from './cli.fixture.js';
import { capstanHere } from './here.fixture.js';
import { onStage, type Stage } from './stage.fixture.js';
import { endedJson, problem, RUN_ID, runJson, runningJson, standIn } from './stand-in.fixture.js';

type Json = Readonly<Record<string, unknown>>;

const SUBMITTED = `capstan: ${RUN_ID} submitted\n`;
const SUCCEEDED = endedJson('succeeded', { exitCode: 0 });

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
        expect(finished.stderr).toBe(`${SUBMITTED}capstan: ${RUN_ID} ${line}\n`);
      });
    },
  );

  it('says at the end how many reports of the tool were refused', async () => {
    const refused = (stage: Stage, seq: number) =>
      stage.event('run.report_refused', { source: 'events', line: 1 }, seq);
    const ENDED = `${SUBMITTED}capstan: ${RUN_ID} succeeded after 3.20s\n`;
    const npx = { npm_command: 'exec', npm_lifecycle_event: 'npx' };
    const cases: [count: number, env: Record<string, string>, says: string][] = [
      [1, {}, `capstan: 1 report of the tool was refused; see: capstan events ${RUN_ID}\n`],
      [2, npx, `capstan: 2 reports of the tool were refused; see: npx capstan events ${RUN_ID}\n`],
    ];
    for (const [count, env, says] of cases) {
      await onStage(async (stage, call) => {
        stage.event('progress', { percent: 1 }, 1);
        for (let seq = 2; seq < 2 + count; seq += 1) refused(stage, seq);
        stage.end(SUCCEEDED);
        const { code, stderr } = await capstan(['run', '--wait', 'ls'], { env: { ...call.env, ...env } });
        expect({ code, stderr }).toEqual({ code: 0, stderr: `${ENDED}${says}` });
        const json = await capstan(['run', '--wait', '--json', 'ls'], call);
        expect(json).toMatchObject({ code: 0, stderr: '' });
      });
    }
  });

  it('copies both streams while the run goes on, each byte once and unchanged, over one connection', async () => {
    await onStage(async (stage, call, server) => {
      const running = await start(['run', '--wait', '--', 'ls'], call);
      await until('the stream is watched', () => stage.viewers.size === 1);
      stage.run = runningJson();
      stage.write('stdout', Buffer.from('one\u0000\r\n\u001b[31m\xff\xe2', 'latin1'));
      stage.write('stderr', 'warning\n');
      await until('the first output is copied', () => running.stdout().includes('one'));
      await until('the first warning is copied', () => running.stderr().includes('warning'));
      stage.write('stdout', 'two');
      await until('more output is copied', () => running.stdout().endsWith('two'));
      stage.write('stdout', ' and the last');
      stage.write('stderr', 'bye\n');
      stage.end(endedJson('failed', { code: 'tool_failed', exitCode: 4, detail: 'exit code 4' }));
      const { code, bytes, stderr } = await running.finished();
      expect(code).toBe(4);
      expect(bytes.equals(stage.output.stdout)).toBe(true);
      const remarks = stderr.split('\n').filter((line) => !line.startsWith('capstan: '));
      expect(remarks).toEqual(['warning', 'bye', '']);
      expect(server.asked.map(({ method, path }) => `${method} ${path}`)).toEqual([
        'POST /v1/runs',
        `GET /v1/runs/${RUN_ID}/stream`,
      ]);
    });
  });

  it('goes on behind the last message of a connection that broke off, with no byte lost or twice', async () => {
    await onStage(async (stage, call, server) => {
      stage.run = runningJson();
      const running = await start(['run', '--wait', '--', 'ls'], call);
      for (const [index, part] of ['first\n', 'second\n', 'third\n'].entries()) {
        await until('the stream is watched', () => stage.viewers.size === 1);
        stage.write('stdout', part);
        await until(`${part.trim()} is copied`, () => running.stdout().endsWith(part));
        // A derived event comes again after a resume: it has no place of its own in the order.
        stage.event('run.started', { fence: 1 });
        stage.event('progress', { percent: index }, index + 1);
        stage.breakOff();
        await until('the connection is gone', () => stage.viewers.size === 0);
        stage.write('stderr', `away ${index}\n`);
      }
      await until('the stream is watched', () => stage.viewers.size === 1);
      stage.end(SUCCEEDED);
      const { code, stdout, stderr } = await running.finished();
      expect({ code, stdout }).toEqual({ code: 0, stdout: 'first\nsecond\nthird\n' });
      expect(stderr).toBe(`${SUBMITTED}away 0\naway 1\naway 2\ncapstan: ${RUN_ID} succeeded after 3.20s\n`);
      const resumed = server.asked.filter(({ path }) => path.endsWith('/stream')).slice(1);
      expect(resumed).toHaveLength(3);
      for (const { headers } of resumed) expect(headers['last-event-id']).toMatch(/^\d+\.1\.\d+$/);
    });
  });

  it('takes up again a message that was cut in its middle', async () => {
    await onStage(async (stage, call) => {
      stage.run = runningJson();
      const running = await start(['run', '--wait', '--', 'ls'], call);
      await until('the stream is watched', () => stage.viewers.size === 1);
      stage.write('stdout', 'whole\n');
      await until('it is copied', () => running.stdout() === 'whole\n');
      stage.raw('id: 9.9.9\nevent: output\ndata: {"fence":1,"batch":2,"stream":"stdout","data":"aGFs');
      stage.breakOff();
      await until('the connection is gone', () => stage.viewers.size === 0);
      stage.write('stdout', 'half\n');
      stage.end(SUCCEEDED);
      expect(await running.finished()).toMatchObject({ code: 0, stdout: 'whole\nhalf\n' });
    });
  });

  it('outlives lost connections and busy answers, and says so once for each time', async () => {
    await onStage(async (stage, call) => {
      stage.mishaps.push({ hangUp: true }, problem(503, 'unavailable'), { status: 502, body: '<html>Bad Gateway' });
      stage.write('stdout', 'x'.repeat(100_000));
      stage.run = SUCCEEDED;
      const { code, stdout, stderr } = await capstan(['run', '--wait', '--', 'ls'], call);
      expect({ code, length: stdout.length }).toEqual({ code: 0, length: 100_000 });
      expect(stderr).toContain('broke off');
      expect(stderr.match(/; trying again\n/g)).toHaveLength(1);
    });
  });

  it('waits for a server that is away for longer than any other request would', async () => {
    await onStage(async (stage, call) => {
      stage.run = SUCCEEDED;
      let elapsedMs = 0;
      const timing = {
        monotonicMs: () => elapsedMs,
        random: () => 0.5,
        delay: async (ms: number, signal?: AbortSignal) => {
          if (ms >= 45_000) return systemTiming.delay(ms, signal);
          elapsedMs += 20_000;
        },
      };
      stage.mishaps.push(...Array.from({ length: 10 }, () => problem(503, 'unavailable')));
      const { code, stderr } = await capstanHere(['run', '--wait', '--', 'ls'], { env: call.env ?? {}, timing });
      expect({ code, tries: stderr.match(/trying again/g)?.length }).toEqual({ code: 0, tries: 1 });
    });
  });

  it('gives a silent connection up and asks anew', async () => {
    await onStage(async (stage, call) => {
      stage.run = runningJson();
      let isSilent = false;
      const timing = {
        ...systemTiming,
        delay: async (ms: number, signal?: AbortSignal) => {
          if (ms !== 45_000) return systemTiming.delay(ms, signal);
          while (!isSilent && !signal?.aborted) await systemTiming.delay(5, signal);
          // Of one connection only: the next one stays.
          if (!signal?.aborted) isSilent = false;
        },
      };
      const ended = capstanHere(['run', '--wait', '--', 'ls'], { env: call.env ?? {}, timing });
      await until('the stream is watched', () => stage.viewers.size === 1);
      const [first] = stage.viewers.keys();
      isSilent = true;
      await until('another connection is there', () => stage.viewers.size === 1 && !stage.viewers.has(first!));
      stage.end(SUCCEEDED);
      expect(await ended).toMatchObject({ code: 0 });
    });
  });

  it('does not rush at a server that closes every stream at once, and gives up in the end', async () => {
    const pauses: number[] = [];
    let elapsedMs = 0;
    const timing = {
      monotonicMs: () => elapsedMs,
      random: () => 1,
      delay: async (ms: number, signal?: AbortSignal) => {
        if (ms >= 45_000 || signal !== undefined) return systemTiming.delay(ms, signal);
        pauses.push(ms);
        elapsedMs += ms;
      },
    };
    const server = await standIn(({ method }) => {
      if (method === 'POST') return { status: 201, body: runJson() };
      return { headers: { 'content-type': 'text/event-stream' }, body: ': hello\n\n' };
    });
    const env = { CAPSTAN_URL: server.url, CAPSTAN_TOKEN: 'cap_x' };
    const { code, stderr } = await capstanHere(['run', '--wait', '--', 'ls'], { env, timing });
    await server.close();
    expect(code).toBe(3);
    expect(stderr).toContain('breaks off each time before it brings anything');
    expect(stderr).toContain(`capstan logs -f ${RUN_ID}`);
    expect(pauses.slice(0, 6)).toEqual([200, 400, 800, 1600, 3000, 3000]);
    expect(elapsedMs).toBeLessThanOrEqual(300_000);
  });

  it('says once what a run that nobody takes is waiting for', async () => {
    await onStage(async (stage, call) => {
      stage.run = runJson({ queue: 'gpu' });
      const timing = {
        ...systemTiming,
        delay: (ms: number, signal?: AbortSignal) => systemTiming.delay(ms === 3_000 ? 0 : ms, signal),
      };
      const stderr: string[] = [];
      const outlet = {
        isTerminal: false,
        columns: undefined,
        isLineOpen: false,
        write: async (data: string | Uint8Array) => void stderr.push(String(data)),
      };
      const shell = { env: call.env ?? {}, timing, stderr: outlet };
      const ended = capstanHere(['run', '--wait', '--', 'ls'], shell);
      await until('it is said', () => stderr.length === 2);
      await until('the stream is watched', () => stage.viewers.size === 1);
      stage.end(SUCCEEDED);
      await ended;
      expect(stderr).toEqual([
        SUBMITTED,
        `capstan: ${RUN_ID} is pending; no worker has taken it yet (queue gpu)\n  see why: capstan why ${RUN_ID}\n`,
        `capstan: ${RUN_ID} succeeded after 3.20s\n`,
      ]);
    });
  });

  it('with --json copies nothing and prints the ended run alone', async () => {
    await onStage(async (stage, call, server) => {
      stage.run = endedJson('failed', { code: 'tool_failed', exitCode: 9, detail: 'exit code 9' });
      stage.write('stdout', 'noise');
      const { code, stdout, stderr } = await capstan(['run', '--wait', '--json', '--', 'ls'], call);
      expect({ code, stderr }).toEqual({ code: 9, stderr: '' });
      expect(JSON.parse(stdout)).toEqual(stage.run);
      expect(server.asked.at(-1)?.query.get('tail')).toBe('0');
    });
  });

  it('ends with exit code 124 when its limit has passed, and leaves the run alone', async () => {
    await onStage(async (stage, call, server) => {
      stage.run = runningJson();
      const limited = ['run', '--wait-limit', '300ms'];
      const { code, stderr } = await capstan([...limited, '--', 'ls'], call);
      expect(code).toBe(124);
      expect(stderr).toContain(`capstan: wait time over: ${RUN_ID} is running and goes on\n`);
      expect(stderr).toContain(`capstan logs -f ${RUN_ID}`);
      expect(stderr).toContain(`capstan cancel ${RUN_ID}`);
      expect(server.asked.filter(({ method }) => method === 'POST')).toHaveLength(1);
      const json = await capstan([...limited, '--json', '--', 'ls'], call);
      expect({ code: json.code, stdout: json.stdout }).toEqual({ code: 124, stdout: '' });
      expect(JSON.parse(json.stderr)).toMatchObject({ code: 'wait_over', run: RUN_ID });
    });
  });

  it('names what tells why, where the run has not begun when its limit has passed', async () => {
    await onStage(async (_stage, call) => {
      const { code, stderr } = await capstan(['run', '--wait-limit', '300ms', '--', 'ls'], call);
      expect(code).toBe(124);
      expect(stderr).toContain(`${RUN_ID} is pending and goes on\n`);
      expect(stderr).toContain(`\n  see why: capstan why ${RUN_ID}\n`);
    });
  });

  it('knows from the stream where the run stands when its limit has passed', async () => {
    await onStage(async (stage, call) => {
      const running = await start(['run', '--wait-limit', '2s', '--', 'ls'], call);
      await until('the stream is watched', () => stage.viewers.size === 1);
      stage.event('run.claimed', { worker: 'wrk_1', workerName: 'r1', fence: 1 });
      expect((await running.finished()).stderr).toContain(`${RUN_ID} is claimed and goes on\n`);
    });
  });

  it('that loses its server for good names the run, with exit code 3', async () => {
    await onStage(async (stage, call) => {
      stage.run = runningJson();
      const running = await start(['run', '--wait', '--', 'ls'], call);
      await until('the stream is watched', () => stage.viewers.size === 1);
      stage.mishaps.push(problem(410, 'run_removed'));
      stage.breakOff();
      const { code, stderr } = await running.finished();
      expect(code).toBe(3);
      expect(stderr).toContain('capstan: Title of run_removed\n');
      expect(stderr).toContain(`capstan logs -f ${RUN_ID}`);
    });
  });

  it('tells dropped output on standard error, on a line of its own: standard output is the tool’s', async () => {
    await onStage(async (stage, call) => {
      stage.write('stdout', 'begun');
      stage.write('stderr', 'unfinished');
      stage.cut(4_194_304);
      stage.write('stdout', 'tail');
      stage.cut(null);
      stage.write('stdout', ' behind');
      stage.cut(null);
      stage.cut(5);
      stage.run = SUCCEEDED;
      const { code, stdout, stderr } = await capstan(['run', '--wait', '--', 'ls'], call);
      expect({ code, stdout }).toEqual({ code: 0, stdout: 'beguntail behind' });
      const cuts = stderr.split('\n').filter((line) => line.startsWith('[capstan: '));
      expect(cuts).toEqual([
        '[capstan: bytes 15-4194318 of the output were dropped: it outgrew CAPSTAN_OUTPUT_LIMIT]',
        `[capstan: output was dropped here and maybe further on: it outgrew CAPSTAN_OUTPUT_LIMIT; all that is kept: capstan logs ${RUN_ID}]`,
        '[capstan: 5 bytes of the output were dropped: it outgrew CAPSTAN_OUTPUT_LIMIT]',
      ]);
      expect(stderr).toContain('unfinished\n[capstan: ');
    });
  });

  it('refuses what is no stream of a run', async () => {
    const streams = [
      { body: '<html>', headers: { 'content-type': 'text/html' } },
      { body: 'event: output\ndata: {\n\n', headers: { 'content-type': 'text/event-stream' } },
      {
        body: 'event: output\ndata: {"stream":"stdin","data":""}\n\n',
        headers: { 'content-type': 'text/event-stream' },
      },
    ];
    for (const stream of streams) {
      const server = await standIn(({ method }) => (method === 'POST' ? { status: 201, body: runJson() } : stream));
      const env = { CAPSTAN_URL: server.url, CAPSTAN_TOKEN: 'cap_x' };
      const { code, stderr } = await capstanHere(['run', '--wait', '--', 'ls'], { env });
      await server.close();
      expect(code).toBe(3);
      expect(stderr).toContain('this is not the answer of a Capstan server');
    }
  });
});

describe('the status line of --wait', () => {
  it('shows a person where the run stands and what its tool says, and gives way to output', async () => {
    await onStage(async (stage, call) => {
      stage.run = runJson({ queue: 'deploys' });
      const running = await startOnTerminal('run --wait -- ls', call);
      await until('it waits', () => / pending in queue deploys \d+s/.test(running.stdout()));
      stage.event('run.started', {});
      stage.event('progress', { percent: 40.4, step: 'restore\u001b[2J' }, 1);
      await until('its progress is shown', () => / running \d+s, 40% restore\u{FFFD}\[2J/u.test(running.stdout()));
      stage.write('stdout', 'whole\nopen');
      await until('its output is copied', () => running.stdout().includes('open'));
      const from = running.stdout().indexOf('open');
      // A status would begin with what clears its line, and take the open one along.
      expect(running.stdout().slice(0, from)).toMatch(/\[Kwhole\r\n$/);
      // The status looks once a second: two of its looks pass, and it stays away from the open line.
      const lookedTwiceAt = performance.now() + 2_500;
      await until('the status has looked twice', () => performance.now() > lookedTwiceAt);
      expect(running.stdout().slice(from)).toBe('open');
      stage.write('stdout', ' line\n');
      await until('the status is back', () => running.stdout().slice(from).includes('running'));
      stage.end(SUCCEEDED);
      const { code, stdout } = await running.finished();
      expect(code).toBe(0);
      expect(stdout.slice(from)).toMatch(/^open line\r\n/);
      expect(stdout).toMatch(/\[Kcapstan: run_\w+ succeeded after 3\.20s\r\n$/);
    });
  });
});
